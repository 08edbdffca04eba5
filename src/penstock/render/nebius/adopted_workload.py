"""Workloads of the original operator, which keep their pod template until its spec changes.

They have the names, selectors and meaning of Penstock's. slurmctld and logins were StatefulSets of
OpenKruise; a StatefulSet of `apps/v1` with their template takes over their pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.nebius import names
from penstock.api.nebius.common import NodeContainer
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place
from penstock.render.parts import empty_values as empty
from penstock.render.parts.digest import canonical_json, digest
from penstock.render.parts.kept_template import with_note, without_template
from penstock.render.parts.plain import plain

_FORM: Final = "n1:"
"""What a note begins with. Another form of it needs another beginning."""
_OF_NO_POD: Final = frozenset(
    {
        "size",
        "enabled",
        "openMetrics",
        "sshRootPublicKeys",
        "sshdServiceType",
        "sshdServiceAnnotations",
        "sshdServiceLoadBalancerIP",
        "sshdServiceLoadBalancerSourceRanges",
        "sshdServiceNodePort",
        "userIsolation",
        "mariadbOperator",
        "podMonitorConfig",
        "slurmConfig",
        "reconfigurePollInterval",
        "reconfigureWaitTimeout",
    }
)
"""Fields of a daemon that reach its pods by files, Services or counts only, or not at all."""
_OF_FILES: Final = (
    "slurmConfig",
    "customSlurmConfig",
    "mpiConfig",
    "plugStackConfig",
    "healthCheckConfig",
    "cgroupVersion",
    "customCgroupConfig",
    "topology",
    "partitionConfiguration",
    "workerFeatures",
)
"""Fields of a SlurmCluster that are lines of Slurm's files."""


@dataclass(frozen=True, slots=True)
class DeclaredPods:
    """Pods of one workload as the user declares them: images by container, and a hash of all."""

    images: Mapping[str, str]
    note: str


def slurmctld(cluster: ClusterInputs) -> DeclaredPods:
    """Those of slurmctld. Its files are declared with it: nobody in the pod could reload them."""
    node = cluster.spec.slurm_nodes.controller
    every = plain(cluster.spec)
    files: Json = {name: every[name] for name in _OF_FILES if name in every}
    files["accounting"] = plain(cluster.spec.slurm_nodes.accounting.slurm_config)
    files["nodeSets"] = sorted(one.metadata.name for one in cluster.node_sets)
    return _declared(
        cluster,
        node,
        {"slurmctld": node.slurmctld, "munge": node.munge, "sssd": node.sssd},
        node.k8s_node_filter_name,
        files,
    )


def login(cluster: ClusterInputs) -> DeclaredPods:
    """Those of logins."""
    node = cluster.spec.slurm_nodes.login
    containers = {"sshd": node.sshd, "munge": node.munge, "sssd": node.sssd}
    return _declared(cluster, node, containers, node.k8s_node_filter_name)


def slurmrestd(cluster: ClusterInputs) -> DeclaredPods:
    """Those of slurmrestd."""
    node = cluster.spec.slurm_nodes.rest
    return _declared(cluster, node, {"slurmrestd": node.rest}, node.k8s_node_filter_name)


def slurmdbd(cluster: ClusterInputs) -> DeclaredPods:
    """Those of slurmdbd. The original's pod does not reload a changed slurmdbd.conf."""
    node = cluster.spec.slurm_nodes.accounting
    containers = {"accounting": node.slurmdbd, "munge": node.munge}
    return _declared(cluster, node, containers, node.k8s_node_filter_name)


def sconfigcontroller(cluster: ClusterInputs) -> DeclaredPods:
    """Those of sconfigcontroller."""
    node = cluster.spec.sconfig_controller
    return _declared(cluster, node, {"sconfigctrl": node.container}, node.node.k8s_node_filter_name)


def exporter(cluster: ClusterInputs) -> DeclaredPods:
    """Those of the exporter. Its PodMonitor is no part of the pod."""
    node = cluster.spec.slurm_nodes.exporter
    return _declared(
        cluster, node, {"exporter": node.exporter_container}, node.k8s_node_filter_name
    )


def _declared(
    cluster: ClusterInputs,
    node: KubeStruct,
    containers: Mapping[str, NodeContainer | None],
    node_filter: str,
    files: Json | None = None,
) -> DeclaredPods:
    declared = {k: v for k, v in plain(node).items() if k not in _OF_NO_POD}
    named = {names.JAIL, *_sources(declared)}
    found = {
        "node": declared,
        "place": filter_place(cluster.spec, node_filter),
        "volumes": {
            one.name: plain(one) for one in cluster.spec.volume_sources if one.name in named
        },
        "files": files or {},
    }
    images = {name: one.image for name, one in containers.items() if one is not None and one.image}
    return declared_pods(images, found)


def declared_pods(images: Mapping[str, str], found: Json) -> DeclaredPods:
    """Pods with these images, of which the rest is declared by these fields."""
    return DeclaredPods(images, _FORM + digest(canonical_json(empty.said(found))))


def _sources(value: Any) -> Iterator[str]:
    """Names of entries of spec.volumeSources anywhere in a part of the spec."""
    if isinstance(value, dict):
        for key, one in cast("Json", value).items():
            if key == "volumeSourceName":
                yield str(one)
            else:
                yield from _sources(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _sources(one)


def has_images(template: Json, images: Mapping[str, str]) -> bool:
    """Whether each of these containers of a pod template has its image."""
    spec: Json = template.get("spec") or {}
    every = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    live = {one["name"]: one.get("image") for one in every}
    return all(live.get(name) == image for name, image in images.items())


def kept(manifest: Json, note: str) -> Json:
    """The manifest of a workload whose pods stay; those of a StatefulSet are of other revisions."""
    found = without_template(manifest, note)
    if manifest["kind"] == "StatefulSet":
        found["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return found


def successor(manifest: Json, advanced: Json, note: str) -> Json:
    """The StatefulSet of `apps/v1` that takes over the pods of OpenKruise's, to be created.

    `manifest` is Penstock's own. Pods that are missing are created from the template of
    OpenKruise's, but without its readiness gate: only its controller would set that condition.
    """
    spec: Json = advanced["spec"]
    template: Json = spec["template"]
    pod = {k: v for k, v in template["spec"].items() if k != "readinessGates"}
    found: Json = {
        "replicas": manifest["spec"]["replicas"],
        "serviceName": spec["serviceName"],
        "podManagementPolicy": spec.get("podManagementPolicy") or "OrderedReady",
        "revisionHistoryLimit": 0,
        "updateStrategy": {"type": "OnDelete"},
        "selector": spec["selector"],
        "template": {**template, "spec": pod},
    }
    if claims := cast("list[Json]", spec.get("volumeClaimTemplates") or []):
        found["volumeClaimTemplates"] = [_pvc_template(one) for one in claims]
    return {**with_note(manifest, note), "spec": found}


def _pvc_template(template: Json) -> Json:
    meta: Any = template["metadata"]
    named = {key: meta[key] for key in ("name", "labels", "annotations") if meta.get(key)}
    return {"metadata": named, "spec": template["spec"]}
