"""`ranges.json`: figures as they were measured, and the limits that `--check` holds them to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, Result

FILE = Path(__file__).parent / "ranges.json"

Ranges = dict[str, Any]


def read() -> Ranges:
    """Read the file, by bench."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


@dataclass(frozen=True)
class Limit:
    """The largest allowed value of a figure."""

    value: float
    of: str
    """`median`, or `min`: what the software needs where other work on the machine disturbs it."""

    def compared_value(self, figure: Figure) -> float:
        """The value that is compared."""
        return figure.low if self.of == "min" else figure.median


def limits(ranges: Ranges, bench: str) -> dict[str, Limit]:
    """Limits by figure; figures without one are not there."""
    figures: dict[str, Any] = ranges.get(bench, {}).get("figures", {})
    return {
        name: Limit(one["limit"], one.get("limit_of", "median"))
        for name, one in figures.items()
        if "limit" in one
    }


def beyond(ranges: Ranges, bench: str, result: Result) -> list[str]:
    """A sentence for each figure that is over its limit, or that a limit names in vain."""
    measured = {figure.name: figure for figure in result.figures}
    said: list[str] = []
    for name, limit in limits(ranges, bench).items():
        figure = measured.get(name)
        if figure is None:
            said.append(f"{bench}: {name} has a limit but was not measured")
        elif (value := limit.compared_value(figure)) > limit.value:
            said.append(
                f"{bench}: {name} has a {limit.of} of {value:.2f} {figure.unit} "
                f"({figure.low:.2f} to {figure.high:.2f}), the limit is {limit.value:g}"
            )
    return said


def written(ranges: Ranges, bench: str, result: Result, circumstances: dict[str, Any]) -> Ranges:
    """The ranges with these figures for one bench; limits stay."""
    held = limits(ranges, bench)
    figures: dict[str, Any] = {}
    for figure in result.figures:
        one: dict[str, Any] = {
            "unit": figure.unit,
            "min": round(figure.low, 2),
            "median": round(figure.median, 2),
            "max": round(figure.high, 2),
        }
        if limit := held.get(figure.name):
            one |= {"limit": limit.value, "limit_of": limit.of}
        figures[figure.name] = one
    return {**ranges, bench: {"measured": circumstances, "figures": figures}}


def save(ranges: Ranges) -> None:
    """Write the file."""
    FILE.write_text(json.dumps(ranges, indent=2) + "\n")
