"""Values of all runs by the names of their figures."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.figures import Figure
from bench.slurmcluster import job_step


@dataclass
class Measured:
    """What the runs have given so far."""

    pairs: list[job_step.Pair] = field(default_factory=list[job_step.Pair])
    starts: dict[str, list[dict[str, float]]] = field(
        default_factory=dict[str, list[dict[str, float]]]
    )
    """Moments of each start, by what was started."""
    load: list[str] = field(default_factory=list[str])
    _values: dict[tuple[str, str], list[float]] = field(
        default_factory=dict[tuple[str, str], list[float]]
    )

    def add(self, name: str, unit: str, value: float) -> None:
        """Add one value of a figure."""
        self._values.setdefault((name, unit), []).append(value)

    def add_start(self, title: str, moments: dict[str, float]) -> None:
        """Add the moments of a start."""
        self.starts.setdefault(title, []).append(moments)

    def figures(self) -> tuple[Figure, ...]:
        """All figures, in the order in which they came."""
        values = (Figure(*key, tuple(values)) for key, values in self._values.items())
        return (*values, *job_step.figures(self.pairs))
