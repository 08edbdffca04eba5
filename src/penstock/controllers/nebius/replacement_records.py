"""The records of replaced machines in the annotation of a SlurmCluster."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from penstock.api.cluster.marks import MAX_DRAINED, REPLACE_NODES, REPLACEMENTS
from penstock.api.kubernetes.kinds import Node
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.decide.node_replacement import Replacement, is_open, read_records

_read = lru_cache(maxsize=256)(read_records)
"""Records of an annotation's text."""


def records_of(cluster: SlurmCluster) -> tuple[Replacement, ...] | None:
    """The records of a cluster; None for an annotation that does not parse."""
    return _read(cluster.metadata.annotations.get(REPLACEMENTS, ""))


def replacing(clusters: Iterable[SlurmCluster], node: Node) -> str:
    """Key of the SlurmCluster that has the machine of a node replaced; empty for none."""
    for one in clusters:
        found = records_of(one)
        if found and not one.metadata.deleting and is_open(found, node.metadata.uid):
            return one.metadata.key
    return ""


def is_concerned(cluster: SlurmCluster) -> bool:
    """Whether machines of a cluster are replaced, or a replacement has not ended."""
    if REPLACE_NODES in cluster.metadata.annotations:
        return True
    return any(not one.ended for one in records_of(cluster) or ())


def replacements_changed(old: SlurmCluster | None, new: SlurmCluster | None) -> bool:
    """Whether another number of machines is replaced, or a record changed."""
    return _facts(old) != _facts(new)


def _facts(cluster: SlurmCluster | None) -> object:
    if cluster is None:
        return None
    keys = (REPLACE_NODES, REPLACEMENTS, MAX_DRAINED)
    found = [cluster.metadata.annotations.get(key) for key in keys]
    return found, cluster.metadata.deleting
