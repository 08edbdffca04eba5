"""The workers of one set as lines of slurm.conf.

Source: slurm.conf(5), NODE SET CONFIGURATION and PARTITION CONFIGURATION.
"""

from __future__ import annotations

from penstock.model.cluster import SlurmNodeSet
from penstock.slurm.conf.lines import is_one_line


def lines(node_set: SlurmNodeSet) -> list[str]:
    """The node set, and the partition over it if it has one.

    No partition of parameters that reach into other lines: the NodeSet is invalid then, and a
    partition that has jobs keeps its former line.
    """
    name = node_set.name
    found = [f"NodeSet={name} Feature={name}"]
    if node_set.partition is not None and is_one_line(node_set.partition):
        found.append(f"PartitionName={name} Nodes={name} {node_set.partition}".rstrip())
    return found
