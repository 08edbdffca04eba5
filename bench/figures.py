"""What a measurement gives: figures with their spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One quantity, measured several times. Smaller is better."""

    name: str
    unit: str
    values: tuple[float, ...]
    """At least one."""

    @property
    def low(self) -> float:
        """The smallest: the run that was disturbed least."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The middle: one run that was disturbed does not move it."""
        return statistics.median(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)


@dataclass(frozen=True)
class Result:
    """The figures of one bench, and what a reader needs to understand them."""

    figures: tuple[Figure, ...]
    notes: str = ""
    """Text that is printed under the table, as a breakdown of one figure."""


def gathered(runs: list[Mapping[str, float]], unit: str) -> tuple[Figure, ...]:
    """A figure for each name that every run has, in the order of the first run."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    return tuple(Figure(name, unit, tuple(run[name] for run in runs)) for name in names)


def in_units(units: Mapping[str, str], runs: Sequence[Mapping[str, float]]) -> tuple[Figure, ...]:
    """A figure for each name that has a unit, which every run has."""
    return tuple(
        Figure(name, unit, tuple(run[name] for run in runs)) for name, unit in units.items()
    )


def breakdown(runs: list[dict[str, float]]) -> str:
    """Where the time goes, as a table: seconds after the apply, in the order of their medians."""
    steps = sorted(gathered(list(runs), "s"), key=lambda one: one.median)
    width = max(len(one.name) for one in steps)
    lines = [f"{'seconds after apply began':{width}}     min  median     max"]
    lines += [
        f"{one.name:{width}}  {one.low:6.2f}  {one.median:6.2f}  {one.high:6.2f}" for one in steps
    ]
    return "\n".join(lines)
