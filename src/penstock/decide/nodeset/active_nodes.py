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


def first_active(replicas: int, initial: int, pods: Collection[int] | None) -> tuple[int, ...]:
    """The active ordinals of an object that does not exist: those of `pods`.

    None means a NodeSet without a status, which begins with the `initial` number.
    """
    if pods is None:
        return tuple(range(max(0, min(initial, replicas))))
    return tuple(sorted(number for number in set(pods) if 0 <= number < replicas))


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
