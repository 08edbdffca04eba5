"""NodeSet: the worker pods and the objects that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names, tolerations
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.parts import merge
from penstock.render.parts.digest import config_digest
from penstock.render.parts.disruption_budget import disruption_budget
from penstock.render.parts.node_pin import pin_to_node
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import metadata, object_metadata
from penstock.render.parts.revision import Revision
from penstock.render.parts.service import Port, service
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset.pod_spec import pod_spec, pvc_volumes, ssh_files
from penstock.render.slinky.nodeset.revision import controller_revision, revision
from penstock.render.slinky.volumes import has_ring
from penstock.slurm import daemons

__all__ = [
    "Revision",
    "controller_revision",
    "node_pod",
    "node_pvcs",
    "objects",
    "pod",
    "revision",
    "shared_objects",
    "worker_pvcs",
]


def shared_objects(cluster: ClusterInputs) -> list[Json]:
    """Headless Service and PodDisruptionBudget of all workers of a cluster.

    Every NodeSet of the cluster is an owner, none of them the managing one; no NodeSet, no objects.
    The budget forbids each eviction of a pod that carries the pod-protect label, so it is there
    whether or not a NodeSet asks for protection. In DaemonSet mode `spec.replicas` has no meaning.
    """
    if not cluster.nodesets:
        return []
    name, namespace = cluster.controller.metadata.name, cluster.namespace
    ordered = sorted(cluster.nodesets, key=lambda nodeset: nodeset.metadata.name)
    owners = [owner(nodeset, controller=False) for nodeset in ordered]
    counted = all(one.spec.scaling_mode == "StatefulSet" for one in ordered)
    return [
        service(
            names.worker_service(name),
            namespace,
            {app_labels.APP_NAME: "slurmd", slinky_labels.CLUSTER: name},
            (Port("slurmd", daemons.SLURMD_PORT, "slurmd"),),
            *owners,
            headless=True,
        ),
        disruption_budget(
            names.worker_budget(name),
            namespace,
            {slinky_labels.POD_PROTECT: app_labels.TRUE, slinky_labels.CLUSTER: name},
            *owners,
            counted=counted,
        ),
    ]


def objects(nodeset: NodeSet) -> list[Json]:
    """What one NodeSet has for all its pods: the ConfigMap for sshd, when users may log in."""
    files = ssh_files(nodeset)
    if not files:
        return []
    labels = slinky_labels.worker_labels(nodeset.metadata.name, nodeset.spec.controller_ref.name)
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": object_metadata(
                names.worker_ssh_config(nodeset),
                nodeset.metadata.namespace,
                labels,
                owner(nodeset),
            ),
            "data": files,
        }
    ]


def worker_pvcs(nodeset: NodeSet, ordinal: int) -> list[Json]:
    """The PersistentVolumeClaims of the pod of an ordinal. They have no owner: they outlive it."""
    return _pvcs(nodeset, partial(names.worker_pvc, nodeset, ordinal=ordinal))


def node_pvcs(nodeset: NodeSet, slurm_node: str) -> list[Json]:
    """The PersistentVolumeClaims of the pod of a Slurm node in DaemonSet mode."""
    return _pvcs(nodeset, partial(names.node_pvc, nodeset, slurm_node=slurm_node))


def _pvcs(nodeset: NodeSet, called: Callable[[str], str]) -> list[Json]:
    labels = slinky_labels.worker_labels(nodeset.metadata.name, nodeset.spec.controller_ref.name)
    out: list[Json] = []
    for claim in nodeset.spec.volume_claim_templates or ():
        given: Json = merge.prune(claim.get("metadata") or {})
        meta = object_metadata(
            called(given.get("name", "")),
            nodeset.metadata.namespace,
            {**given.get("labels", {}), **labels},
        )
        if annotations := given.get("annotations"):
            meta["annotations"] = annotations
        out.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": meta,
                "spec": merge.prune(claim.get("spec") or {}),
            }
        )
    return out


def pod(
    cluster: ClusterInputs,
    nodeset: NodeSet,
    ordinal: int,
    *,
    revision_hash: str = "",
    topology: str = "",
    kubernetes_node: str = "",
    sssd_conf_hash: str = "",
) -> Json:
    """The pod of an ordinal, as it is to be created.

    `revision_hash` is that of `revision(nodeset)`, which is taken when it is empty. `topology` is
    what is known of the pod's place before it is scheduled; the annotation may also be set later.
    `kubernetes_node` is the one that it must run on; any when it is empty. `sssd_conf_hash`
    is of the sssd.conf that the pod begins with; a later one does not replace it.
    """
    name = names.pod_name(nodeset, ordinal)
    spec = merge.pod_spec(pod_spec(cluster, nodeset), nodeset.spec.template.spec)
    called = partial(names.worker_pvc, nodeset, ordinal=ordinal)
    spec["volumes"] = merge.by_key(spec["volumes"], pvc_volumes(nodeset, called), "name")
    if kubernetes_node:
        pin_to_node(spec, kubernetes_node)
    labels = {slinky_labels.POD_INDEX: names.padded(nodeset, ordinal)}
    host = names.slurm_node_name(nodeset, ordinal)
    hashes = {slinky_labels.TOPOLOGY: topology, slinky_labels.SSSD_CONF_HASH: sssd_conf_hash}
    hashes |= _ring(cluster)
    return _pod(nodeset, name, host, spec, labels, revision_hash, hashes)


def node_pod(
    cluster: ClusterInputs,
    nodeset: NodeSet,
    name: str,
    slurm_node: str,
    kubernetes_node: str,
    *,
    revision_hash: str,
    sssd_conf_hash: str = "",
) -> Json:
    """The pod of a Kubernetes node in DaemonSet mode.

    `slurm_node` is the name of its Slurm node, unless the pod has `hostNetwork`.
    """
    spec = merge.pod_spec(pod_spec(cluster, nodeset), nodeset.spec.template.spec)
    called = partial(names.node_pvc, nodeset, slurm_node=slurm_node)
    spec["volumes"] = merge.by_key(spec["volumes"], pvc_volumes(nodeset, called), "name")
    tolerated = [*tolerations.DAEMON]
    if spec.get("hostNetwork"):
        tolerated.append(tolerations.HOST_NETWORK)
    spec["tolerations"] = merge.union(spec["tolerations"], tolerated)
    pin_to_node(spec, kubernetes_node)
    hashes = {slinky_labels.SSSD_CONF_HASH: sssd_conf_hash} | _ring(cluster)
    return _pod(nodeset, name, slurm_node, spec, {}, revision_hash, hashes)


def _ring(cluster: ClusterInputs) -> dict[str, str]:
    return {marks.KEY_RING: app_labels.TRUE} if has_ring(cluster) else {}


def _pod(
    nodeset: NodeSet,
    name: str,
    host: str,
    spec: Json,
    own: Mapping[str, str],
    revision_hash: str,
    hashes: Mapping[str, str],
) -> Json:
    labels = {
        **slinky_labels.worker_labels(nodeset.metadata.name, nodeset.spec.controller_ref.name),
        slinky_labels.POD_NAME: name,
        **own,
        slinky_labels.SCALING_MODE: nodeset.spec.scaling_mode,
        slinky_labels.REVISION_HASH: revision_hash or revision(nodeset).hash,
    }
    if spec.get("hostNetwork"):
        # The hostname is that of the Kubernetes node.
        spec.pop("hostname", None)
    else:
        spec["hostname"] = host
        labels[slinky_labels.POD_HOSTNAME] = host
    known = {key: hashes.get(key, "") for key in (slinky_labels.TOPOLOGY, marks.KEY_RING)}
    if files := ssh_files(nodeset):
        known[slinky_labels.SSHD_CONF_HASH] = config_digest(files)
        known[slinky_labels.SSSD_CONF_HASH] = hashes.get(slinky_labels.SSSD_CONF_HASH, "")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **object_metadata(name, nodeset.metadata.namespace, {}, owner(nodeset)),
            **metadata(nodeset.spec.template, labels, known, spec),
        },
        "spec": spec,
    }
