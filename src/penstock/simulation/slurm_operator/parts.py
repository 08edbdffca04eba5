"""Parts of manifests in the form of slurm-operator."""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Mapping
from typing import Any, cast

from penstock.api.kubernetes.meta import Json

DAEMONS = {"slurmctld": "controller", "slurmrestd": "restapi", "slurmdbd": "accounting"}


def digest(data: Mapping[str, str]) -> str:
    """SHA-256 over the values in the order of their keys."""
    return hashlib.sha256("".join(data[key] for key in sorted(data)).encode()).hexdigest()


def sub(of: Json, key: str) -> Json:
    """A mapping within another; empty when it is not there."""
    return cast("Json", of.get(key) or {})


def feature(nodeset: Json) -> str:
    """The feature of a NodeSet's nodes, and the name of its partition."""
    host: str = sub(sub(nodeset["spec"], "template"), "spec").get("hostname") or ""
    return host.strip("-") or nodeset["metadata"]["name"]


def selector(daemon: str, instance: str) -> Json:
    """What a workload selects its pods by."""
    return {"app.kubernetes.io/name": daemon, "app.kubernetes.io/instance": instance}


def labels(daemon: str, instance: str) -> Json:
    """Labels of what is made for an object."""
    component = {**DAEMONS, "slurmd": "worker", "login": "login"}[daemon]
    return {**selector(daemon, instance), "app.kubernetes.io/component": component}


def owner(of: Json, *, controller: bool = True) -> Json:
    """A reference to an owner."""
    found: Json = {
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    return {**found, "controller": True} if controller else found


def bare(service: Json, daemon: str) -> Json:
    """A Service without what was copied from its object: of slurmrestd's it copies nothing."""
    meta: Json = {k: v for k, v in service["metadata"].items() if k != "annotations"}
    instance = service["spec"]["selector"]["app.kubernetes.io/instance"]
    return {**service, "metadata": {**meta, "labels": labels(daemon, instance)}}


def secret_hash(data: Mapping[str, str]) -> str:
    """SHA-256 over the decoded values in the order of their keys."""
    values = b"".join(base64.b64decode(data[key]) for key in sorted(data))
    return hashlib.sha256(values).hexdigest()


def overlaid(container: Json, user: Json, beside: Json) -> Json:
    """A user's container over its own: args behind, lists joined by name, the rest replaced."""
    wish = spoken(user)
    out: Json = {"image": beside.get("image"), **container}
    for key, value in wish.items():
        if key in ("args", "env", "volumeMounts", "ports"):
            out[key] = [*(out.get(key) or []), *value]
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = {**cast("Json", out[key]), **cast("Json", value)}
        else:
            out[key] = value
    return {key: value for key, value in out.items() if value is not None}


def logfile(daemon: str, user: Json, beside: Json) -> Json:
    """The container that prints a log."""
    script = (
        'trap "exit 0" TERM; rm -f "$SOCKET"; mkfifo -m 777 "$SOCKET"; '
        'while true; do cat "$SOCKET" || sleep 1; done & wait'
    )
    container: Json = {
        "name": "logfile",
        "command": ["sh", "-c", script],
        "env": [{"name": "SOCKET", "value": f"/var/log/slurm/{daemon}.log"}],
        "restartPolicy": "Always",
        "volumeMounts": [mount("slurm-logfile", "/var/log/slurm")],
    }
    return overlaid(container, user, beside)


def spoken(value: Any) -> Any:
    """Without values that it treats as absent: null, "", 0, false, {} and mappings of these."""
    if not isinstance(value, dict):
        return value
    found = {key: spoken(one) for key, one in cast("Json", value).items()}
    return {key: one for key, one in found.items() if one not in (None, "", 0, False, {}, [])}


def amounts(container: Json) -> Json:
    """Resources as Go writes quantities."""
    out = copy.deepcopy(container)
    limits: Json = sub(out, "resources").get("limits") or {}
    if limits.get("cpu") == 0.5:
        limits["cpu"] = "500m"
    return out


def mount(name: str, path: str, *, read_only: bool = False) -> Json:
    """A mount of a volume."""
    mount: Json = {"name": name, "mountPath": path}
    return {**mount, "readOnly": True} if read_only else mount


def memory(name: str) -> Json:
    """A volume in memory."""
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def projected(name: str, mode: int, sources: list[Json]) -> Json:
    """A volume of several sources."""
    return {"name": name, "projected": {"defaultMode": mode, "sources": sources}}


def http(path: str, port: str) -> Json:
    """What a probe asks."""
    return {"httpGet": {"path": path, "port": port}}


def port(name: str, number: int) -> Json:
    """A Service's port."""
    return {"name": name, "port": number, "protocol": "TCP", "targetPort": name}


def apart(selector: Json) -> Json:
    """Affinity that keeps pods on Kubernetes nodes of their own."""
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
