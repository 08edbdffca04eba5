"""Which ordinals of an ephemeral NodeSet are active, when slurmctld asked for others.

Slurm's ResumeProgram and SuspendProgram write them. A call of theirs can be lost: the API server is
away, the object is gone, slurmctld restarts. The state of the node is not lost, so it decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.model.worker_names import WorkerNames
from penstock.slurm.state import Node


@dataclass(frozen=True, slots=True)
class ActiveNodes:
    """The ordinals to write, sorted, and those that differ from the written ones."""

    wanted: tuple[int, ...]
    resumed: tuple[int, ...] = ()
    suspended: tuple[int, ...] = ()


def first_active(replicas: int, initial: int) -> tuple[int, ...]:
    """The active ordinals with which a NodeSet begins."""
    return tuple(range(max(0, min(initial, replicas))))


def left_active(
    pods: Collection[int], size: int, names: WorkerNames, nodes: Mapping[str, Node]
) -> frozenset[int]:
    """The active ordinals where nothing else is left to show them: those of the pods that exist.

    A pod whose node is powered down was to go when the object was lost: nobody asks for that again.
    """
    kept = (number for number in pods if not _is_down(nodes.get(names.host(number))))
    return frozenset(number for number in kept if 0 <= number < size)


def _is_down(node: Node | None) -> bool:
    if node is None or node.is_powering_up:
        return False
    return not node.state.isdisjoint({"POWERED_DOWN", "POWERING_DOWN"})


def active_nodes(
    active: Collection[int], size: int, names: WorkerNames, nodes: Mapping[str, Node]
) -> ActiveNodes:
    """What slurmctld powers up and is not active, or powers down and is.

    A node that is just powered down counts as it is written: before its first boot it is so as
    well. `nodes` must be newer than `active`: a job may get a node as soon as it is powered down.
    """
    written = set(active)
    resumed, suspended = list[int](), list[int]()
    for number in range(size):
        node = nodes.get(names.host(number))
        if node is None:
            continue
        if node.is_powering_up and number not in written:
            resumed.append(number)
        elif "POWERING_DOWN" in node.state and not node.is_powering_up and number in written:
            suspended.append(number)
    wanted = (written | set(resumed)) - set(suspended)
    return ActiveNodes(tuple(sorted(wanted)), tuple(resumed), tuple(suspended))
