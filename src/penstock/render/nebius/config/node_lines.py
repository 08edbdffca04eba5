"""The workers of a SlurmCluster as lines of slurm.conf, and the numbers that follow their count.

Workers register themselves as dynamic nodes, so no line names them: a NodeSet line has them by
their feature. Only ephemeral nodes, which slurmctld itself starts, have NodeName lines.
Source: slurm.conf(5), NODE CONFIGURATION, NODE SET CONFIGURATION, MaxNodeCount and MaxArraySize.
"""

from __future__ import annotations

from penstock.api.nebius import names
from penstock.api.nebius.nodeset import NodeSet
from penstock.render.config import node_set
from penstock.render.config.sections import FEWEST_NODES, node_count_of
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import one_line
from penstock.slurm.conf.document import Document
from penstock.slurm.daemons import SLURMD_PORT
from penstock.translate.nebius.cluster import cluster
from penstock.translate.nebius.worker_set import node_set_workers

_SLURMS_MOST_NODES = 65536
_SLURMS_MOST_ARRAY = 4000001
_FEWEST_ARRAY = 1024
_ARRAY_PER_WORKER = 5


def worker_count(inputs: ConfigInputs) -> int:
    """Declared workers of all node sets, ephemeral ones included."""
    worker = inputs.cluster.spec.slurm_nodes.worker
    own = (worker.size or 0) if worker is not None else 0
    return max(own, 0) + sum(max(one.spec.replicas, 0) for one in inputs.node_sets)


def max_node_count(inputs: ConfigInputs, file: str) -> int:
    """MaxNodeCount: room for twice the workers, in steps that double; it never shrinks.

    `file` is the one of `published` that has the operator's own keys.
    """
    found = max(FEWEST_NODES, node_count_of(inputs.published.get(file, "")))
    while found < min(2 * worker_count(inputs), _SLURMS_MOST_NODES):
        found *= 2
    return found


def max_array_size(inputs: ConfigInputs, file: str) -> int:
    """MaxArraySize: five tasks for each worker; it never shrinks, as job arrays rely on it."""
    old = Document.parse(inputs.published.get(file, "")).get("MaxArraySize") or ""
    before = int(old) if old.isascii() and old.isdecimal() else 0
    wanted = min(_ARRAY_PER_WORKER * worker_count(inputs), _SLURMS_MOST_ARRAY)
    return max(_FEWEST_ARRAY, min(before, _SLURMS_MOST_ARRAY), wanted)


def node_sets(inputs: ConfigInputs) -> list[str]:
    """A NodeSet line for each node set, by name; two of one name have one line."""
    found = cluster(inputs.cluster, inputs.node_sets).node_sets
    return list(dict.fromkeys(line for one in found for line in node_set.lines(one)))


def feature_sets(inputs: ConfigInputs) -> list[str]:
    """NodeSet lines of spec.workerFeatures that name one; none of them replaces a node set's."""
    taken = {one.name for one in cluster(inputs.cluster, inputs.node_sets).node_sets}
    return [
        f"NodeSet={one_line(one.nodeset_name)} Feature={one_line(one.name)}"
        for one in inputs.cluster.spec.worker_features
        if one.nodeset_name and one.nodeset_name not in taken and inputs.is_older
    ]


def node_range(nodeset: NodeSet, least: int = 0) -> str:
    """The Slurm nodes of a NodeSet, at least so many, as a host list; empty without any."""
    name, count = nodeset.metadata.name, max(nodeset.spec.replicas, least)
    if count <= 1:
        return f"{name}-0" if count == 1 else ""
    return f"{name}-[0-{count - 1}]"


def ephemeral(inputs: ConfigInputs) -> list[NodeSet]:
    """NodeSets whose nodes jobs power up, by name."""
    return [one for one in inputs.sorted_node_sets if one.spec.ephemeral_nodes]


def cloud_nodes(inputs: ConfigInputs) -> list[str]:
    """NodeName lines of ephemeral nodes: slurmctld gives them jobs before their pods exist."""
    domain = f"{names.service(inputs.name, 'nodeset')}.{inputs.namespace}.svc"
    return [
        f"NodeName={nodes} State=CLOUD NodeAddr={nodes}.{domain} "
        f"Port={one.spec.slurmd.port or SLURMD_PORT} {one_line(node_set_workers(one).parameters)}"
        for one in ephemeral(inputs)
        if (nodes := node_range(one, inputs.power_saved.get(one.metadata.name, 0)))
    ]


def slurmd_ports(inputs: ConfigInputs) -> list[int]:
    """Ports of slurmd that node sets declare, sorted."""
    worker = inputs.cluster.spec.slurm_nodes.worker
    own = [worker.slurmd.port] if worker is not None else []
    every = [*own, *(one.spec.slurmd.port for one in inputs.node_sets)]
    return sorted({one or SLURMD_PORT for one in every})


def has_gpus(inputs: ConfigInputs) -> bool:
    """Whether some workers have GPUs."""
    return any(one.spec.gpu.enabled for one in inputs.node_sets)
