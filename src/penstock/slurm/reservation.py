"""A reservation of Slurm, as decisions read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation. `start` and `end` are Unix seconds; `nodes` are named one by one."""

    name: str
    start: int = 0
    end: int = 0
    nodes: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
