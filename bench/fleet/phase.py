"""What the operator does in a stretch of time, by all counts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from bench.fleet.operator import Counts, Operator


@dataclass(frozen=True)
class Used:
    """What was used. The operator's CPU in seconds, and calls to Slurm."""

    seconds: float
    cpu: float
    slurm: int
    counts: Counts

    @property
    def words(self) -> str:
        """For people."""
        asked = ", ".join(f"{n} {what}" for what, n in sorted(self.counts.requests.items()))
        return (
            f"{self.seconds:.1f} s, operator {self.cpu:.2f} CPU-s, {self.counts.reconciles} "
            f"reconciles, {self.slurm} Slurm calls; {asked or 'no request'}"
        )


class Place(Protocol):
    """Where the operator's calls to Slurm are counted."""

    def calls(self) -> int:
        """Requests to slurmrestd so far."""
        ...


class Phase:
    """Begun by `begin`, ended by `end`."""

    def __init__(self, place: Place, operator: Operator, before: Counts) -> None:
        self._place = place
        self._operator = operator
        self._before = before
        self._calls = place.calls()
        self._cpu = operator.cpu
        self.began = time.monotonic()

    @classmethod
    async def begin(cls, place: Place, operator: Operator) -> Phase:
        """From now on; reading the operator's counters is not counted."""
        return cls(place, operator, await operator.counts())

    async def end(self) -> Used:
        """Until now."""
        cpu = self._operator.cpu - self._cpu
        calls = self._place.calls() - self._calls
        seconds = time.monotonic() - self.began
        counts = (await self._operator.counts()).since(self._before)
        return Used(seconds, cpu, calls, counts)
