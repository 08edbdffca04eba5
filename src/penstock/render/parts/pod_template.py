"""Parts that the pods of all daemons have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, LocalObjectReference
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.render.parts import merge
from penstock.render.parts.script import script
from penstock.slurm.auth.key_files import SLURM_JWKS

ETC = "slurm-etc"
LOGS = "slurm-logfile"


def etc_mount() -> Json:
    """Slurm's configuration, where every daemon looks for it."""
    return {"name": ETC, "mountPath": "/etc/slurm", "readOnly": True}


def logs_mount() -> Json:
    """Where the daemon logs and the side container listens."""
    return {"name": LOGS, "mountPath": "/var/log/slurm"}


def pod_labels(template: PodTemplate, ours: Mapping[str, str]) -> dict[str, str]:
    """Labels of a pod's template: the user's, then ours, without those of a chart's release.

    In a template these would restart every pod with each release; `decide.pod.chart_labels` gives
    them to the pods themselves.
    """
    user = template.metadata.labels or {}
    return {k: v for k, v in user.items() if k not in app_labels.CHART_LABELS} | dict(ours)


def metadata(
    template: PodTemplate,
    labels: Mapping[str, str],
    hashes: Mapping[str, str],
    spec: Json,
) -> Json:
    """A pod's metadata: the user's template, our labels, the hashes that are known.

    The object's own labels and annotations stay out of it: a `kubectl annotate` restarts nothing.
    """
    return {
        "labels": pod_labels(template, labels),
        "annotations": {
            **(template.metadata.annotations or {}),
            **{key: value for key, value in hashes.items() if value},
            app_labels.DEFAULT_CONTAINER: spec["containers"][0]["name"],
        },
    }


def template(
    user: PodTemplate, labels: Mapping[str, str], hashes: Mapping[str, str], base: Json
) -> Json:
    """A workload's pod template: `base` with what the user lays over it."""
    spec = merge.pod_spec(base, user.spec)
    if account := spec.get("serviceAccountName"):
        # The API server writes the old name of the field too, and takes the account from there
        # again when only the new one is removed. Source: Kubernetes API reference, PodSpec v1.
        spec.setdefault("serviceAccount", account)
    return {"metadata": metadata(user, labels, hashes, spec), "spec": spec}


def strategy(template: PodTemplate) -> Json:
    """How a Deployment replaces pods of which a machine has room for one only; empty for others.

    A new pod in the host's network waits for the ports of the one that it replaces, which by
    default goes after it. Source: Deployment, maxSurge, whose default is 25 % rounded up.
    """
    if not template.spec.get("hostNetwork"):
        return {}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def object_metadata(name: str, namespace: str, labels: Mapping[str, str], *owners: Json) -> Json:
    """Metadata of an object that we make."""
    out: Json = {"name": name, "namespace": namespace}
    if labels:
        out["labels"] = dict(labels)
    if owners:
        out["ownerReferences"] = list(owners)
    return out


def logfile(image: str, path: str, user: Json) -> Json:
    """The side container that prints what the daemon writes to `path`."""
    base: Json = {
        "name": "logfile",
        "image": image,
        "command": ["sh", "-c", script("logfile")],
        "env": [{"name": "SOCKET", "value": path}],
        "restartPolicy": "Always",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [logs_mount()],
    }
    return merge.container(base, user)


def memory(name: str) -> Json:
    """A volume in memory that lives as long as the pod."""
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def projected(name: str, mode: int, sources: Sequence[Json]) -> Json:
    """Files from several objects in one directory."""
    return {"name": name, "projected": {"defaultMode": mode, "sources": list(sources)}}


def secret_source(name: str, *files: tuple[str, str, int | None]) -> Json:
    """Files of a Secret: key, file name, mode (None: the volume's)."""
    return {"secret": {"name": name, "items": [_item(*file) for file in files]}}


def config_map_source(name: str, *files: tuple[str, str, int | None]) -> Json:
    """Files of a ConfigMap, all of them when none is named."""
    source: Json = {"name": name}
    if files:
        source["items"] = [_item(*file) for file in files]
    return {"configMap": source}


def _item(key: str, path: str, mode: int | None) -> Json:
    item: Json = {"key": key, "path": path}
    if mode is not None:
        item["mode"] = mode
    return item


def ring_sources(name: str, ring: str, mode: int | None = None) -> list[Json]:
    """`slurm.jwks` from an entry of a key ring, where there is one."""
    source = secret_source(name, (ring, SLURM_JWKS, mode))
    source["secret"]["optional"] = True
    return [source]


def http_probe(path: str, port: str, **settings: int) -> Json:
    """A probe that asks one of the health paths that Slurm's daemons serve."""
    return {"httpGet": {"path": path, "port": port}, **settings}


def tcp_probe(port: str, **settings: int) -> Json:
    """A probe that only connects."""
    return {"tcpSocket": {"port": port}, **settings}


def spread(labels: Mapping[str, Any]) -> Json:
    """Affinity that keeps two pods with these labels off one Kubernetes node."""
    return _apart({"matchLabels": dict(labels)})


def spread_expression(key: str, value: str) -> Json:
    """As `spread`, written as a match expression."""
    return _apart({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]})


def _apart(selector: Json) -> Json:
    return {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }


def names_of(*references: tuple[LocalObjectReference, ...] | None) -> list[str]:
    """Names in several lists of references, each once, in their order."""
    return list(dict.fromkeys(ref.name for refs in references for ref in refs or () if ref.name))
