"""Lines of topology.conf from the tiers of the Kubernetes nodes of all workers.

slurmctld gives no job to a node that the file leaves out. So a worker without labels is below a
switch, or in a block, named `unknown` (in another fabric than `root`: `<fabric>.unknown`).
slurmctld ends at a file that is no tree. So a path that contradicts those of more workers is
rejected, and its workers are there as well. Source: topology.conf(5); seen with Slurm 26.05.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from penstock.decide.topology import labels
from penstock.slurm import hostlist

ROOT: Final = "root"
BLOCK_SIZE: Final = 18
_UNKNOWN: Final = "unknown"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_TOO_LONG: Final = re.compile(r"[0-9]{19,}\Z")
"""Slurm reads the number at the end of a name into 64 bits, and ends at a longer one."""

Kind = Literal["tree", "block"]


def kind_of(plugin: str) -> Kind | None:
    """The kind of a TopologyPlugin that has a file of this form; None for another one."""
    kinds: dict[str, Kind] = {"topology/tree": "tree", "topology/block": "block"}
    return kinds.get(plugin)


@dataclass(frozen=True, slots=True)
class PlacedWorker:
    """A worker by its Slurm node. `tiers` are empty without a Kubernetes node or its labels."""

    name: str
    fabric: str = ROOT
    tiers: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class TopologyConf:
    """The lines, and words about workers whose labels are rejected, by Slurm node."""

    lines: tuple[str, ...]
    rejected: Mapping[str, str]


def topology_conf(
    kind: Kind, workers: Iterable[PlacedWorker], block_size: int = BLOCK_SIZE
) -> TopologyConf:
    """The file in which each worker is once."""
    by_name = {one.name: one for one in workers}
    if kind == "block":
        return _blocks(by_name, block_size if block_size > 0 else BLOCK_SIZE)
    return _tree(by_name)


def _blocks(workers: Mapping[str, PlacedWorker], size: int) -> TopologyConf:
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    rejected: dict[str, str] = {}
    for one in workers.values():
        fabric, wrong = _fabric(one)
        block = one.tiers.get(0, "")
        if block and (problem := _name_problem(block)):
            block, wrong = "", problem
        if wrong:
            rejected[one.name] = wrong
        nodes[_safe(block) if block else _unknown(fabric)].append(one.name)
    lines = [f"BlockName={name} Nodes={hostlist.compress(nodes[name])}" for name in sorted(nodes)]
    return TopologyConf((*lines, f"BlockSizes={size}"), rejected)


class _Tree:
    """Switches with their parents, each path checked against those before it."""

    def __init__(self, fabrics: Iterable[str]) -> None:
        self.nodes: defaultdict[str, list[str]] = defaultdict(list)
        self.parents: dict[str, str] = {}
        self._fabrics = frozenset(fabrics)

    def problem(self, path: tuple[str, ...]) -> str:
        """Why the tree cannot have a path from a leaf to its fabric; empty if it can.

        Each path ends at a fabric, which has no parent, so there are no cycles.
        """
        leaf, *above = path
        if len(set(path)) < len(path):
            return f"switch {next(one for one in path if path.count(one) > 1)} is above itself"
        for one in path[:-1]:
            if one in self._fabrics:
                return f"switch {one} has the name of a fabric"
        if leaf in self.parents.values():
            return f"switch {leaf} has switches below it, and cannot have nodes"
        for one in above:
            if one in self.nodes:
                return f"switch {one} has nodes, and cannot have switches below it"
        for child, parent in pairwise(path):
            if (known := self.parents.get(child, parent)) != parent:
                return f"switch {child} is below {known} already, not below {parent}"
        return ""

    def add(self, path: tuple[str, ...], workers: Iterable[str]) -> None:
        """Have workers below the leaf of a path."""
        self.nodes[path[0]].extend(workers)
        self.parents.update(pairwise(path))

    def lines(self) -> list[str]:
        children: defaultdict[str, list[str]] = defaultdict(list)
        for child, parent in self.parents.items():
            children[parent].append(child)
        found = [
            f"SwitchName={one} Switches={hostlist.compress(below)}"
            for one, below in children.items()
        ]
        for leaf, names in self.nodes.items():
            found.append(f"SwitchName={leaf} Nodes={','.join(sorted(names, key=_natural))}")
        return sorted(found)


def _tree(workers: Mapping[str, PlacedWorker]) -> TopologyConf:
    rejected: dict[str, str] = {}
    wanted: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    unplaced: list[tuple[str, str]] = []
    fabrics: set[str] = set()
    for one in workers.values():
        fabric, wrong = _fabric(one)
        fabrics.add(fabric)
        switches = labels.switches(one.tiers)
        problems = [_name_problem(switch) for switch in switches]
        wrong = wrong or next(filter(None, problems), "")
        if wrong:
            rejected[one.name] = wrong
        if wrong or not switches:
            unplaced.append((fabric, one.name))
            continue
        path = (*map(_safe, switches), fabric)
        # A spine may have the name of its fabric: then it is the root.
        wanted[path[:-1] if path[-2:] == (fabric, fabric) and len(path) > 2 else path].append(
            one.name
        )
    tree = _Tree(fabrics)
    for fabric, names in _by_fabric(unplaced).items():
        tree.add((_unknown(fabric), fabric), names)
    # What most workers have in common stands against a mistake at one of them.
    weight = Counter[tuple[str, str]]()
    for path, names in wanted.items():
        for part in _parts(path):
            weight[part] += len(names)
    order = sorted((-min(weight[part] for part in _parts(path)), path) for path in wanted)
    for _, path in order:
        names = wanted[path]
        if problem := tree.problem(path):
            rejected |= dict.fromkeys(names, problem)
            tree.add((_unknown(path[-1]), path[-1]), names)
        else:
            tree.add(path, names)
    return TopologyConf(tuple(tree.lines()), rejected)


def _parts(path: tuple[str, ...]) -> list[tuple[str, str]]:
    """What a path states: which switch is below which, and which of them has nodes or switches."""
    return [*pairwise(path), (path[0], ""), *(("", one) for one in path[1:-1])]


def _by_fabric(unplaced: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for fabric, name in unplaced:
        found.setdefault(fabric, []).append(name)
    return found


def _fabric(worker: PlacedWorker) -> tuple[str, str]:
    """Its fabric, and why that is not the declared one."""
    given = worker.fabric or ROOT
    if _NAME.fullmatch(given) and not _is_reserved(given):
        return _safe(given), ""
    return ROOT, f"fabric {given[:63]!r} is no name of a switch"


def _name_problem(name: str) -> str:
    if not _NAME.fullmatch(name):
        return f"{name[:63]!r} is no name of a switch or block"
    return f"the name {name} is reserved" if _is_reserved(name) else ""


def _is_reserved(name: str) -> bool:
    return name == _UNKNOWN or name.endswith(f".{_UNKNOWN}")


def _unknown(fabric: str) -> str:
    return _UNKNOWN if fabric == ROOT else f"{fabric}.{_UNKNOWN}"


def _safe(name: str) -> str:
    return f"{name}_" if _TOO_LONG.search(name) else name


def _natural(name: str) -> tuple[str, int, str]:
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem, int(digits or 0), name
