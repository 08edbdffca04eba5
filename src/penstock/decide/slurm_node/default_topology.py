"""Condition of Slurm nodes that are in no unit of the default topology and so get no job.

Under a tree or blocks, slurmctld takes nodes for a job out of switches or blocks only. A node in
none of them is registered, idle and never used, and where no node is in one each job is rejected:
"Requested topology configuration is not available". Source: topology.yaml(5), cluster_default;
topology.conf(5), topology/tree; seen with a tree.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.slurm_node import topology, topology_file
from penstock.decide.slurm_node.topology_file import FILE
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.hostlist import LIMIT, HostListError, expand
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.state import Node

_UNITS: Final = {"tree": ("switches", "switch"), "block": ("blocks", "block")}
_TRUE: Final = frozenset(
    form for word in ("true", "yes", "on") for form in (word, word.capitalize(), word.upper())
)
"""Source: YAML 1.1, bool."""
_NAMED: Final = re.compile(r"(?i)\bTopology=([^\s,]+)")


@dataclass(frozen=True, slots=True)
class Topology:
    """One topology of topology.yaml."""

    name: str
    default: bool
    unit: str
    """`switch` or `block`; empty for one in which every node may be used."""
    example: str = ""
    """A unit that may have nodes."""
    listed: tuple[str, ...] = ()
    """Host lists of nodes that the file itself puts into units."""


def finding(
    marks: WorkerMarks,
    files: Mapping[str, str],
    declared: Iterable[str],
    pods: Iterable[Pod],
    nodes: Fact[Mapping[str, Node]],
    kubernetes_nodes: Mapping[str, KubernetesNode],
) -> Finding | None:
    """Return the condition of nodes that no job can use; None for none, or if Slurm is unknown.

    `files` are those of /etc/slurm, `declared` the texts that may name a topology for a partition.
    """
    text = files.get(FILE, "")
    if not text or isinstance(nodes, Unknown):
        return None
    found = {one.name: one for one in topologies(text)}
    default = _default(found.values())
    if default is None or not default.unit:
        return None
    used = {default.name, *(name for one in declared for name in _NAMED.findall(one))}
    ways = [found[name] for name in used if name in found]
    if any(not one.unit for one in ways):
        return None
    unplaced: dict[str, str] = {}
    for pod in pods:
        node = nodes.value.get(slurm_node_name(pod))
        host = pod.spec.node_name or ""
        place = topology.wanted(marks, kubernetes_nodes.get(host))
        # A node with another place than the wanted one gets an update, or slurmctld rejected it.
        if (
            node is None
            or pod.metadata.deleting
            or place is None
            or place not in ("", node.topology)
        ):
            continue
        if not any(_has(one, node) for one in ways):
            unplaced[node.name] = host
    if not unplaced:
        return None
    first = min(unplaced)
    place = f"{marks.topology}={default.name}:{default.example or default.unit.upper()}"
    return Finding(
        False,
        SlurmNodeReason.TOPOLOGY_MISSING,
        f"{len(unplaced)} Slurm nodes are in no {default.unit} of {default.name}, the default of "
        f"{FILE}, so no job can use them: {list_some(sorted(unplaced))}. Annotate their Kubernetes "
        f"nodes, such as: kubectl annotate node {unplaced[first]} {place}",
    )


def topologies(text: str) -> tuple[Topology, ...]:
    """The topologies of a topology.yaml; none for one that cannot be judged.

    What an alias stands for may name any unit, so a file with one is not judged.
    """
    found = topology_file.read(text)
    return () if found.aliased else tuple(_topology(one) for one in found.topologies)


def _topology(given: Mapping[str, Any]) -> Topology:
    name, default = str(given.get("topology")), str(given.get("cluster_default")) in _TRUE
    for kind, (many, one) in _UNITS.items():
        if kind in given:
            units = list(_units(given[kind], many, one))
            example = next((str(unit[one]) for unit in units if "children" not in unit), "")
            listed = tuple(str(unit["nodes"]) for unit in units if unit.get("nodes"))
            return Topology(name, default, one, example, listed)
    return Topology(name, default, "")


def _units(value: Any, many: str, one: str) -> Iterator[Mapping[str, Any]]:
    there = cast("Mapping[str, Any]", value).get(many) if isinstance(value, dict) else None
    for unit in cast("list[Any]", there) if isinstance(there, list) else ():
        if isinstance(unit, dict) and one in unit:
            yield cast("Mapping[str, Any]", unit)


def _default(found: Iterable[Topology]) -> Topology | None:
    """Return the topology of partitions that name none; None when the file does not define it."""
    every = list(found)
    marked = next((one for one in every if one.default), None)
    return marked or (every[0] if len(every) == 1 else None)


def _has(one: Topology, node: Node) -> bool:
    """Return whether a node is in a unit, by its Slurm node or by the file.

    True when slurmrestd's data parser has no topologies, since the unit is unknown then.
    """
    if node.topology is None:
        return True
    parts = (part.strip().partition(":") for part in node.topology.split(","))
    if any(name == one.name and units for name, _, units in parts):
        return True
    return node.name in _listed(one.listed)


@lru_cache(maxsize=32)
def _listed(lists: tuple[str, ...]) -> frozenset[str]:
    names: list[str] = []
    for text in lists:
        # More than Slurm takes: not judged, whatever the rest may name.
        if len(names) > LIMIT:
            break
        with contextlib.suppress(HostListError):
            names += expand(text)
    return frozenset(names)
