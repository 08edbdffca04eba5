"""How one Slurm job stands, as slurmctld or slurmdbd reports it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.slurm.state import FINISHED


class JobEnd(StrEnum):
    """How a job ended, by its base state."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    ERROR = "ERROR"
    """Any other end: the job did not run as it should, and is no result of its nodes."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job, or one task of a job array. Times are Unix seconds, 0 without one."""

    id: int
    state: str
    """The base state, such as FAILED."""
    is_completing: bool = False
    """Whether it ended and still holds its nodes."""
    nodes: tuple[str, ...] = ()
    reason: str = ""
    name: str = ""
    submit_time: int = 0
    end_time: int = 0

    @property
    def end(self) -> JobEnd | None:
        """How it ended; None while it waits or runs."""
        if self.is_completing or self.state not in FINISHED:
            return None
        try:
            return JobEnd(self.state)
        except ValueError:
            return JobEnd.ERROR
