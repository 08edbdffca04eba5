"""Places for worker pods: an ordinal, or a Kubernetes node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slot:
    """What one pod and its Slurm node are called, and where it belongs.

    `ordinal` is None in DaemonSet mode. `machine` is the one Kubernetes node that the pod may run
    on; empty when the scheduler chooses.
    """

    pod: str
    host: str
    ordinal: int | None = None
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a NodeSet in DaemonSet mode shall have pods.

    `slots` are in the order of the machines, `hosts` their Slurm nodes' names by machine, and
    `problems` says by machine why it gets no pod though it fits. `last` are the machines whose pod
    goes on while no other one would come in its place.
    """

    slots: tuple[Slot, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    last: frozenset[str] = frozenset()
