"""State of Slurm's nodes and jobs, as decisions read it.

State names are slurmrestd's: a base state (`IDLE`, `ALLOCATED`, `MIXED`, `DOWN`, `ERROR`, `FUTURE`,
`UNKNOWN`) and flags (`DRAIN`, `COMPLETING`, `NOT_RESPONDING`, ...), all in one set.
Source: slurmrestd OpenAPI, `node_states` and `job_state` of v0.0.44 and v0.0.45.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


def is_draining(state: frozenset[str]) -> bool:
    """Whether a node in that state takes no new job because it was asked to drain."""
    return "DRAIN" in state and "UNDRAIN" not in state


FINISHED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
)
"""Base states of a job that ended; with COMPLETING it still holds its nodes. Flags such as
LAUNCH_FAILED may stand beside RUNNING and mean nothing. Source: squeue(1), JOB STATE CODES."""


@dataclass(frozen=True, slots=True)
class Node:
    """One Slurm node record."""

    name: str
    state: frozenset[str] = frozenset()
    reason: str = ""
    reason_user: str = ""
    """Who set the reason."""
    reason_since: int = 0
    """When it was set, in Unix seconds."""
    comment: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    address: str = ""
    hostname: str = ""
    topology: str | None = ""
    """None if this version of slurmrestd omits it."""
    weight: int = 1
    gres: str = ""
    gres_used: str = ""
    slurmd_start_time: int = 0
    """Unix seconds, as `boot_time`; 0 means never registered."""
    version: str = ""
    """Release of its slurmd, such as 26.05.5; empty before it has registered."""
    boot_time: int = field(default=0, compare=False)
    """slurmd computes it at each registration, a second more or less: it is not compared."""

    @property
    def busy(self) -> bool:
        """Whether a job runs on it or is just leaving it."""
        return bool(self.state & BUSY)

    @property
    def drain(self) -> bool:
        """Whether it takes no new job because it was asked to drain."""
        return is_draining(self.state)

    @property
    def is_powered_down(self) -> bool:
        """Whether slurmctld has powered it down, or does so: jobs start there after a boot only."""
        return bool(self.state & {"POWERED_DOWN", "POWERING_DOWN"}) and not self.is_powering_up

    @property
    def is_powering_up(self) -> bool:
        """Whether slurmctld waits for its boot: no job starts there before."""
        return "POWERING_UP" in self.state

    @property
    def drained(self) -> bool:
        """Whether it drains and is empty: the only state in which its pod may be deleted.

        A node in base state UNKNOWN has not reported since slurmctld started, so it may have jobs.
        """
        return self.drain and not self.busy and "UNKNOWN" not in self.state


@dataclass(frozen=True, slots=True)
class Job:
    """One job that is not finished, as far as nodes are concerned. Times are Unix seconds."""

    id: int
    state: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()
    start_time: int | None = None
    time_limit: int | None = None
    """Minutes; None means unlimited."""
    name: str = ""
    user: str = ""
    partition: str = ""
    everywhere: bool = False
    """Whether its nodes cannot be read, so that it counts as one that holds every node."""

    def uses(self, node: str) -> bool:
        """Whether it may be on a node of that name."""
        return self.everywhere or node in self.nodes
