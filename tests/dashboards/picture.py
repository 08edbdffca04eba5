"""Draws a dashboard from its JSON and the answers of a Prometheus, as SVG.

Grafana is no part of it: places, titles, queries and units are those of the JSON, and the values
those of the Prometheus. The picture has colours for a light and a dark page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any, Final

from dashboards.units import shown

Json = dict[str, Any]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, and values by Unix seconds."""

    labels: Mapping[str, str]
    points: Points


Fetch = Callable[[str], Sequence[Series]]
"""Series of an expression over the time of the picture."""

COLUMN: Final = 40
UNIT_H: Final = 24
GAP: Final = 8
TOP: Final = 46
WIDTH: Final = 24 * COLUMN + GAP
SMALL: Final = 6.4
"""Pixels of a character of 11.5 px, on average."""
TITLE: Final = 8
_COLOURS: Final = (
    ("#2f6fb3", "#6fa8dc"),
    ("#c2651a", "#f0a860"),
    ("#3b8a4f", "#7cc58f"),
    ("#a8434b", "#e88b91"),
    ("#7156a5", "#b6a2e0"),
    ("#8a6d1f", "#d8bd68"),
    ("#1f8a8a", "#6fcfcf"),
    ("#b04a8a", "#e596c6"),
)
_LEGEND_H: Final = 17
_LABEL: Final = re.compile(r"\{\{(\w+)\}\}")


def _style() -> str:
    light = " ".join(
        f".s{n} {{ stroke: {one}; }} .f{n} {{ fill: {one}; }}"
        for n, (one, _) in enumerate(_COLOURS)
    )
    dark = " ".join(
        f".s{n} {{ stroke: {one}; }} .f{n} {{ fill: {one}; }}"
        for n, (_, one) in enumerate(_COLOURS)
    )
    return f"""
text {{ font: 11.5px system-ui, sans-serif; fill: #3b4754; }}
.page {{ fill: #f2f4f6; }} .panel {{ fill: #ffffff; stroke: #d5dbe1; }} .grid {{ stroke: #e3e7eb; }}
.title {{ font-size: 13px; font-weight: 600; fill: #1c2733; }}
.big {{ font-size: 26px; fill: #1c2733; }} .line {{ fill: none; stroke-width: 1.6; }}
.head {{ font-size: 17px; font-weight: 600; fill: #1c2733; }}
.area {{ opacity: 0.14; stroke: none; }} {light}
@media (prefers-color-scheme: dark) {{
text {{ fill: #b9c3cd; }} .page {{ fill: #11151a; }} .panel {{ fill: #1a2027; stroke: #333d47; }}
.grid {{ stroke: #2b333c; }} .title, .big, .head {{ fill: #e3e9ef; }} {dark} }}
"""


def draw(document: Json, fetch: Fetch) -> str:
    """The picture of a dashboard."""
    panels: list[Json] = document["panels"]
    last = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels)
    height = TOP + last * UNIT_H + GAP
    title = escape(document["title"])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        f"<title>Dashboard {title}, drawn from its JSON and the answers of a Prometheus</title>",
        f"<style>{_style()}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text class="head" x="{2 * GAP}" y="29">{title}</text>',
    ]
    for panel in panels:
        lines += _panel(panel, fetch)
    return "\n".join([*lines, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    w: float
    h: float


def _panel(panel: Json, fetch: Fetch) -> Iterator[str]:
    place: Json = panel["gridPos"]
    box = _Box(
        place["x"] * COLUMN + GAP,
        TOP + place["y"] * UNIT_H,
        place["w"] * COLUMN - GAP,
        place["h"] * UNIT_H - GAP,
    )
    if panel["type"] == "row":
        yield _text(box.x + GAP, box.y + 13, panel["title"], "title", box.w)
        return
    yield (f'<rect class="panel" x="{box.x}" y="{box.y}" width="{box.w}" height="{box.h}" rx="4"/>')
    yield _text(box.x + 10, box.y + 18, panel["title"], "title", box.w - 14)
    unit: str = panel["fieldConfig"]["defaults"].get("unit", "")
    if panel["type"] == "table":
        yield from _table(panel, box, fetch)
        return
    named = [
        (name(target["legendFormat"], one.labels), one)
        for target in panel["targets"]
        for one in fetch(target["expr"])
    ]
    if not named:
        yield _text(box.x + box.w / 2 - 24, box.y + box.h / 2 + 8, "no data", "", box.w)
    elif panel["type"] == "stat":
        yield from _number(named, unit, box)
    else:
        yield from _curves(named, unit, box, panel["fieldConfig"]["defaults"])


def name(legend: str, labels: Mapping[str, str]) -> str:
    """The name of a series, by the pattern of its query."""
    if legend == "__auto":
        return ""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend) or "none"


def fit(text: str, width: float, per: float = SMALL) -> str:
    """The text, cut where it is wider than so many pixels."""
    most = max(1, floor(width / per))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(x: float, y: float, text: str, kind: str, width: float, anchor: str = "start") -> str:
    per = TITLE if kind == "title" else SMALL
    of_kind = f' class="{kind}"' if kind else ""
    cut = escape(fit(text, width, per), quote=False)
    return f'<text{of_kind} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{cut}</text>'


def _number(named: Sequence[tuple[str, Series]], unit: str, box: _Box) -> Iterator[str]:
    each = (box.w - 16) / len(named)
    for number, (called, one) in enumerate(named):
        middle = box.x + 8 + each * (number + 0.5)
        value = escape(shown(one.points[-1][1], unit))
        below = box.y + box.h - (24 if called else 16)
        at = f'x="{middle:.0f}" y="{below:.0f}" text-anchor="middle"'
        yield f'<text class="big" {at}>{value}</text>'
        if called:
            yield _text(middle, box.y + box.h - 8, called, "", each - 6, "middle")


def _ticks(highest: float, unit: str) -> list[float]:
    """Four or fewer round values from 0 to the highest."""
    if highest <= 0:
        return [0.0, 1.0]
    base = 1024.0 ** floor(log10(highest) / log10(1024)) if unit == "bytes" else 1.0
    rough = highest / base / 4
    power = 10 ** floor(log10(rough))
    step = next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= rough)
    return [base * step * number for number in range(ceil(highest / base / step) + 1)]


def _curves(
    named: Sequence[tuple[str, Series]], unit: str, box: _Box, defaults: Json
) -> Iterator[str]:
    rows = _legend_rows([called for called, _ in named], box.w - 20)
    left, right = box.x + 62, box.x + box.w - 14
    top, bottom = box.y + 32, box.y + box.h - 26 - _LEGEND_H * len(rows)
    values = [v for _, one in named for _, v in one.points if isfinite(v)]
    stacked = "stacking" in defaults.get("custom", {})
    highest = defaults.get("max") or max(values, default=0.0)
    begin = min(one.points[0][0] for _, one in named)
    end = max(one.points[-1][0] for _, one in named)
    ticks = _ticks(highest, unit)
    for tick in ticks:
        y = bottom - (bottom - top) * tick / ticks[-1]
        yield f'<path class="grid" d="M{left:.0f} {y:.1f}H{right:.0f}"/>'
        yield _text(left - 6, y + 4, shown(tick, unit), "", 56, "end")
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        at = datetime.fromtimestamp(begin + share * (end - begin), UTC)
        x = left + share * (right - left)
        yield _text(x, bottom + 15, f"{at:%H:%M:%S}", "", 80, anchor)
    for number, (_, one) in enumerate(named):
        place = [
            (
                left + (right - left) * ((at - begin) / (end - begin) if end > begin else 0.5),
                bottom - (bottom - top) * min(value, ticks[-1]) / ticks[-1],
            )
            for at, value in one.points
            if isfinite(value)
        ]
        yield from _line(place, one.points, number % len(_COLOURS), bottom if stacked else None)
    for line, row in enumerate(rows):
        y = bottom + 33 + _LEGEND_H * line
        for x, number, text in row:
            if number >= 0:
                colour = f"f{number % len(_COLOURS)}"
                at = f'x="{box.x + 10 + x:.0f}" y="{y - 8:.0f}"'
                yield f'<rect class="{colour}" {at} width="10" height="3"/>'
            yield _text(box.x + 24 + x, y - 3, text, "", box.w - 40 - x)


def _line(
    place: Sequence[tuple[float, float]], points: Points, colour: int, floor_y: float | None
) -> Iterator[str]:
    """A curve with gaps where the series had no value for a while."""
    steps = sorted(b - a for (a, _), (b, _) in pairwise(points))
    gap = 3 * steps[len(steps) // 2] if steps else 0
    path, before = "", None
    for (x, y), (at, _) in zip(place, points, strict=False):
        path += f"{'L' if before is not None and at - before <= gap else 'M'}{x:.1f} {y:.1f}"
        before = at
    if len(place) == 1:
        path += "h1.5"
    yield f'<path class="line s{colour}" d="{path}"/>'
    if floor_y is not None and len(place) > 1:
        yield (
            f'<path class="area f{colour}" d="{path.replace("M", "L").replace("L", "M", 1)}'
            f'L{place[-1][0]:.1f} {floor_y:.1f}L{place[0][0]:.1f} {floor_y:.1f}z"/>'
        )


def _legend_rows(names: Sequence[str], width: float) -> list[list[tuple[float, int, str]]]:
    """Places of the names in at most two lines: x, number of the series, and text."""
    rows: list[list[tuple[float, int, str]]] = [[]]
    x = 0.0
    for number, text in enumerate(names):
        if not text:
            return []
        wide = 30 + SMALL * len(text) + 1.5 * sum(one.isupper() for one in text)
        if x and x + wide > width:
            rest = len(names) - number
            if len(rows) == 2:
                rows[-1][-1] = (rows[-1][-1][0], -1, f"and {rest + 1} more")
                return rows
            rows.append([])
            x = 0.0
        rows[-1].append((x, number, fit(text, width - x - 30)))
        x += wide
    return rows


def _table(panel: Json, box: _Box, fetch: Fetch) -> Iterator[str]:
    options = {one["id"]: one["options"] for one in panel["transformations"]}
    labels: list[str] = options["filterFieldsByName"]["include"]["names"]
    heads: Json = options["organize"]["renameByName"]
    each = (box.w - 20) / len(labels)
    most = floor((box.h - 52) / 18)
    found = [one for target in panel["targets"] for one in fetch(target["expr"])]
    # A table shows what there is at the end of the time.
    last = max((one.points[-1][0] for one in found), default=0.0)
    rows = [one for one in found if one.points[-1][0] == last]
    for column, label in enumerate(labels):
        x = box.x + 10 + each * column
        yield _text(x, box.y + 38, heads[label], "title", each - 8)
        for row, one in enumerate(rows[:most]):
            value = f"{one.points[-1][1]:.0f}" if label == "Value" else one.labels.get(label, "")
            yield _text(x, box.y + 58 + 18 * row, value, "", each - 8)
    yield f'<path class="grid" d="M{box.x + 10:.0f} {box.y + 44:.0f}h{box.w - 20:.0f}"/>'
