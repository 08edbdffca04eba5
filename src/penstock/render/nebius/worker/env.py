"""Environment of the slurmd container.

The entry point of Penstock's image adds the words of SLURMD_OPTIONS, which are shell text, to those
of slurmd. They are

    -Z -N NODE --conf 'WORDS' [--extra 'EXTRA']

NODE is the Slurm node, which has the name of the pod and its hostname. WORDS are the `Key=Value`
words of the node in slurm.conf. The container has no arguments of the operator. Other variables are
those of the original, whose images read them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmClusterSpec
from penstock.api.nebius.version_defaults import versioned_values
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius import auth, job_mounts
from penstock.render.nebius.container import field_variable, jail_variables, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.worker.template import WorkerTemplate
from penstock.slurm import daemons, hostlist
from penstock.slurm.node_parameters import FEATURES

_MIB: Final = 1 << 20
_TRUE, _FALSE = "true", "false"


def environment(
    cluster: ClusterInputs, workers: WorkerSet, of: WorkerTemplate, slot: WorkerSlot
) -> list[Json]:
    """The variables of one worker, before the user's own."""
    return [
        *(
            _of_node_set(cluster, of.declared_by, of)
            if isinstance(of.declared_by, NodeSet)
            else _of_cluster(cluster, of)
        ),
        *jail_variables(cluster.spec),
        *auth.variables(cluster.spec),
        variable("SLURMD_OPTIONS", _options(cluster.spec, workers, of, slot)),
        *job_mounts.variables(of.per_job),
    ]


def _options(
    spec: SlurmClusterSpec, workers: WorkerSet, of: WorkerTemplate, slot: WorkerSlot
) -> str:
    """Options of slurmd, as shell text."""
    words = node_conf(spec, workers, slot)
    has_port = any(word.lower().startswith("port=") for word in words.split())
    if of.port != daemons.SLURMD_PORT and not has_port:
        words = f"{words} Port={of.port}"
    extra = ["--extra", of.extra] if of.extra else []
    return shlex.join(["-Z", "-N", slot.slurm_node, "--conf", words, *extra])


def node_conf(spec: SlurmClusterSpec, workers: WorkerSet, slot: WorkerSlot) -> str:
    """The words of one Slurm node: those of its set, with the features of its own name."""
    if workers.kind != SLURM_CLUSTERS.kind:
        return workers.parameters
    own = [one.name for one in spec.worker_features if _stands_for(one.hostlist_expr, slot)]
    return with_features(workers.parameters, own)


def with_features(words: str, features: Iterable[str]) -> str:
    """Words of a Slurm node with more features."""
    added = list(dict.fromkeys(features))
    if not added:
        return words
    out: list[str] = []
    for word in words.split():
        key, _, value = word.partition("=")
        if key.lower() in FEATURES:
            out.append(f"{key}={','.join(dict.fromkeys([*value.split(','), *added]))}")
            added = []
        else:
            out.append(word)
    return " ".join(out if not added else [f"Features={','.join(added)}", *out])


def _stands_for(expression: str, slot: WorkerSlot) -> bool:
    try:
        return hostlist.contains(expression, slot.slurm_node)
    except ValueError:
        # Rejected when it is written; an object of an earlier version may have it.
        return False


def _of_node_set(cluster: ClusterInputs, node_set: NodeSet, of: WorkerTemplate) -> list[Json]:
    spec = node_set.spec
    found = [
        field_variable("INSTANCE_ID", "spec.nodeName"),
        variable("SLURM_CLUSTER_WITH_GPU", _TRUE if cluster.has_gpus else _FALSE),
        variable("NODESET_GPU_ENABLED", _TRUE if spec.gpu.enabled else _FALSE),
        # There is no proxy of docker's socket beside slurmd.
        variable("SOPERATOR_DOCKER_ENABLED", _FALSE),
        variable("SOPERATOR_NODE_REAL_MEMORY_BYTES", str(of.memory_mib * _MIB)),
    ]
    if of.extra:
        found.append(variable("SLURM_NODE_EXTRA", of.extra))
    if cluster.spec.cgroup_version == "v2":
        found.append(variable("CGROUP_V2", _TRUE))
    if spec.gpu.nvidia.gdr_copy_enabled:
        found.append(variable("NVIDIA_GDRCOPY", "enabled"))
    return found


def _of_cluster(cluster: ClusterInputs, of: WorkerTemplate) -> list[Json]:
    worker = cluster.spec.slurm_nodes.worker
    found = [
        field_variable("K8S_POD_NAME", "metadata.name"),
        field_variable("K8S_POD_NAMESPACE", "metadata.namespace"),
        field_variable("INSTANCE_ID", "spec.nodeName"),
        variable("K8S_SERVICE_NAME", of.service),
        variable("SLURM_CLUSTER_TYPE", cluster.cluster_type),
        variable("SLURM_REAL_MEMORY", str(of.memory_mib)),
        variable("SLURM_NODE_EXTRA", of.extra),
    ]
    if versioned_values(cluster.spec).cgroup_version == "v2":
        found.append(variable("CGROUP_V2", _TRUE))
    if worker and worker.enable_gdr_copy:
        found.append(variable("NVIDIA_GDRCOPY", "enabled"))
    features = dict.fromkeys(one.name for one in cluster.spec.worker_features)
    expressions = {one.name: one.hostlist_expr for one in reversed(cluster.spec.worker_features)}
    return [*found, *(variable(f"SLURM_FEATURE_{name}", expressions[name]) for name in features)]
