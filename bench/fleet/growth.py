"""How cost grows with the fleet: the plot in docs/, drawn from the figures that are kept."""

from __future__ import annotations

from typing import Any

from bench.fleet import sizes
from bench.plot import Panel, svg
from bench.ranges import Ranges
from penstock.local.recipes import ROOT

FILE = ROOT / "docs" / "growth.svg"
PANELS = (
    ("One pod changes", sizes.CHANGE, "CPU milliseconds of the operator"),
    ("A settled minute", sizes.CPU, "CPU seconds of the operator"),
    ("Memory", sizes.MEMORY, "MiB at most"),
)


def plot(ranges: Ranges) -> str | None:
    """The plot as SVG; None while fewer than two sizes were measured."""
    figures: dict[str, Any] = {}
    for bench in (sizes.BENCH, sizes.LARGE_BENCH):
        figures |= ranges.get(bench.name, {}).get("figures", {})
    panels = [_panel(figures, *one) for one in PANELS]
    if any(len(panel.points) < 2 for panel in panels):
        return None
    return svg(panels, "workers")


def _panel(figures: dict[str, Any], title: str, what: str, unit: str) -> Panel:
    found = {
        size: one
        for size in (*sizes.SMALL, *sizes.LARGE)
        if "median" in (one := figures.get(sizes.figure_name(what, size), {}))
    }
    points = [(float(size), float(one["median"])) for size, one in found.items()]
    limits = [one["limit"] for one in found.values() if "limit" in one]
    return Panel(title, unit, points, limits[-1] if limits else None)
