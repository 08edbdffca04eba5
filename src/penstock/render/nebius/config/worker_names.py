"""Names of workers in a user's PartitionName lines.

slurmctld does not start on a line that names a dynamic node without a record, so such a name never
reaches it. A partition that has all workers of a node set has that node set; others have a node set
of their own, by a feature that the operator gives to the named workers. So the line stays right
while workers come and go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.model.partition_spec import PartitionSpec
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.slurm import hostlist
from penstock.slurm.conf.document import Document
from penstock.slurm.hostlist import HostListError
from penstock.slurm.partition.declaration import (
    DEFAULT,
    NODES,
    PARTITION,
    feature,
    node_set,
)
from penstock.slurm.partition.line_words import with_words
from penstock.translate.object_ref import object_ref

_MOST_NAMES = 2**17
"""Names of nodes that are read in one text: each costs about a microsecond. Slurm has at most half
as many nodes; a text with more stays as it is from there on."""
_WORKER = re.compile(r"(.+)-(?:0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Named:
    """The value of Nodes without names of workers, and the workers named one by one."""

    nodes: str
    workers: tuple[str, ...]


def with_node_sets(inputs: ConfigInputs, text: str) -> str:
    """Lines of slurm.conf with node sets in place of workers' names; all else stays as it is."""
    named = _named(text, _dynamic_sets(inputs))
    return with_words(text, {name: {NODES: found.nodes} for name, found in named})


def feature_lines(inputs: ConfigInputs, text: str) -> list[str]:
    """NodeSet lines for the workers that partitions of a text name one by one, by partition."""
    marked = sorted({name for name, found in _named(text, _dynamic_sets(inputs)) if found.workers})
    return [f"NodeSet={node_set(name)} Feature={feature(name)}" for name in marked]


def partition_specs(inputs: ConfigInputs, text: str) -> tuple[PartitionSpec, ...]:
    """Partitions of a text with workers one by one, for who gives these nodes their feature.

    Their other node sets and nodes are in `nodes` as well.
    """
    meta = inputs.cluster.metadata
    return tuple(
        PartitionSpec(
            declared_by=object_ref(SLURM_CLUSTERS, inputs.cluster),
            name=name,
            created=meta.creation_timestamp or "",
            is_deleting=False,
            is_valid=True,
            nodes=(*_others(name, found.nodes), *found.workers),
            worker_sets=(),
            selector=None,
            settings={},
        )
        for name, found in _named(text, _dynamic_sets(inputs))
        if found.workers
    )


def _others(partition: str, nodes: str) -> list[str]:
    return [word for word in hostlist.split(nodes) if word != node_set(partition)]


@lru_cache(maxsize=16)
def _named(text: str, sets: tuple[tuple[str, int], ...]) -> tuple[tuple[str, Named], ...]:
    """The partitions of a text that name workers; of a name given twice the last line."""
    records = {one.name: one for one in Document.parse(text).records(PARTITION)}
    found: list[tuple[str, Named]] = []
    left, sizes = _MOST_NAMES, dict(sets)
    for name, record in records.items():
        given = record.get(NODES) or ""
        count = _count(given)
        if name.upper() == DEFAULT or count > left:
            continue
        left -= count
        named = _without_workers(name, given, sizes)
        if named.nodes != given:
            found.append((name, named))
    return tuple(found)


def _count(nodes: str) -> int:
    try:
        return hostlist.count(nodes)
    except HostListError:
        return 0


def _dynamic_sets(inputs: ConfigInputs) -> tuple[tuple[str, int], ...]:
    """Node sets whose nodes register themselves, each with the number of its workers."""
    worker = inputs.cluster.spec.slurm_nodes.worker
    own = {names.IMPLICIT_NODE_SET: worker.size or 0} if worker is not None else {}
    every = own | {
        one.metadata.name: one.spec.replicas
        for one in inputs.node_sets
        if not one.spec.ephemeral_nodes
    }
    return tuple(sorted(every.items()))


def _without_workers(partition: str, nodes: str, sizes: dict[str, int]) -> Named:
    try:
        words = hostlist.split(nodes)
        every = [hostlist.expand(word) for word in words]
    except HostListError:
        return Named(nodes, ())
    kept: list[str] = []
    workers: dict[str, set[str]] = {}
    for word, expanded in zip(words, every, strict=True):
        dynamic = {name for name in expanded if _set_of(name) in sizes}
        for name in dynamic:
            workers.setdefault(_set_of(name), set()).add(name)
        rest = [name for name in expanded if name not in dynamic]
        if rest:
            kept.append(hostlist.compress(rest) if dynamic else word)
    if not workers:
        return Named(nodes, ())
    whole = {one for one, found in workers.items() if _has_all(one, sizes[one], found)}
    single = {name for one, found in workers.items() if one not in whole for name in found}
    marked = [node_set(partition)] if single else []
    words = list(dict.fromkeys([*kept, *sorted(whole), *marked]))
    return Named(",".join(words), tuple(hostlist.split(hostlist.compress(single))))


def _set_of(name: str) -> str:
    found = _WORKER.fullmatch(name)
    return found[1] if found else ""


def _has_all(node_set_name: str, size: int, found: set[str]) -> bool:
    return size > 0 and all(f"{node_set_name}-{n}" in found for n in range(size))
