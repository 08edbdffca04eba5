"""The partitions of a SlurmCluster as lines of slurm.conf.

Source: slurm.conf(5), PARTITION CONFIGURATION.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.nebius.configuration import PartitionSpec
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import one_line
from penstock.slurm.partition.declaration import ALL, PARTITION
from penstock.translate.nebius.cluster import cluster

DEFAULT_PARTITIONS = (
    "PartitionName=main Nodes=ALL Default=YES PriorityTier=10 MaxTime=INFINITE State=UP "
    "OverSubscribe=YES",
    "PartitionName=hidden Nodes=ALL Default=NO PriorityTier=10 PreemptMode=OFF Hidden=YES "
    "MaxTime=INFINITE State=UP OverSubscribe=YES",
)
"""Those of `configType: default`; checks of the nodes run in the hidden one."""


@dataclass(frozen=True, slots=True)
class LostRef:
    """A NodeSet that a partition names and that does not exist; empty when it names none."""

    partition: str
    node_set: str

    def __str__(self) -> str:
        if not self.node_set:
            return f"partition {self.partition} names no NodeSet"
        return f"partition {self.partition} names NodeSet {self.node_set}, which does not exist"


def lines(inputs: ConfigInputs) -> list[str]:
    """PartitionName lines as declared, in the order in which they are declared."""
    declared = inputs.cluster.spec.partition_configuration
    match declared.config_type:
        case "default":
            return list(DEFAULT_PARTITIONS)
        case "custom":
            return [line for raw in declared.raw_config if (line := _raw(raw))]
        case "structured":
            known = _known_sets(inputs)
            return [_structured(one, known) for one in declared.partitions]


def lost_refs(inputs: ConfigInputs) -> tuple[LostRef, ...]:
    """References of structured partitions that lead to no node, in the order of the partitions."""
    declared = inputs.cluster.spec.partition_configuration
    if declared.config_type != "structured":
        return ()
    known = _known_sets(inputs)
    found: list[LostRef] = []
    for one in declared.partitions:
        if one.is_all:
            continue
        if not one.node_set_refs and "nodes=" not in one.config.lower():
            found.append(LostRef(one.name, ""))
        found += (LostRef(one.name, ref) for ref in one.node_set_refs if ref not in known)
    return tuple(found)


def _known_sets(inputs: ConfigInputs) -> frozenset[str]:
    model = cluster(inputs.cluster, inputs.node_sets)
    return frozenset(one.name for one in model.node_sets)


def _raw(text: str) -> str:
    """A line of `rawConfig`; empty for one that is no partition, which validation rejects."""
    line = one_line(text)
    return line if line.lower().startswith(PARTITION.lower()) else ""


def _structured(one: PartitionSpec, known: frozenset[str]) -> str:
    """A partition over node sets. Without a known one it has no nodes, and its jobs wait."""
    sets = [ALL] if one.is_all else [ref for ref in one.node_set_refs if ref in known]
    words = [f"{PARTITION}={one_line(one.name)}"]
    if sets:
        words.append(f"Nodes={','.join(dict.fromkeys(sets))}")
    return " ".join(filter(None, (*words, one_line(one.config))))
