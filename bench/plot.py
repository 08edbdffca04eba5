"""Small plots as SVG: lines over a logarithmic axis, drawn so that they read in light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 300, 220
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 44, 36
INK, LINE, LIMIT = "#888", "#2f7ed8", "#c0392b"


@dataclass(frozen=True)
class Panel:
    """One plot. `limit` is drawn as a line of its own."""

    title: str
    unit: str
    points: Sequence[tuple[float, float]]
    limit: float | None = None


def svg(panels: Sequence[Panel], across: str) -> str:
    """The panels side by side; `across` is the label of the horizontal axis."""
    drawn = "\n".join(
        f'<g transform="translate({number * WIDTH} 0)">\n{_panel(panel, across)}\n</g>'
        for number, panel in enumerate(panels)
    )
    width = WIDTH * len(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" font-family="sans-serif" font-size="11" fill="{INK}">\n{drawn}\n</svg>\n'
    )


def ticks(top: float) -> list[float]:
    """Round numbers from 0 to at least `top`, about five of them."""
    if top <= 0:
        return [0.0, 1.0]
    rough = top / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * number for number in range(math.ceil(round(top / step, 9)) + 1)]


def _panel(panel: Panel, across: str) -> str:
    values = [y for _, y in panel.points] + ([panel.limit] if panel.limit is not None else [])
    rows = ticks(max(values))
    lowest, highest = (math.log10(x) for x in (panel.points[0][0], panel.points[-1][0]))

    def at_x(x: float) -> float:
        share = (math.log10(x) - lowest) / ((highest - lowest) or 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def at_y(y: float) -> float:
        return round(HEIGHT - BOTTOM - y / rows[-1] * (HEIGHT - TOP - BOTTOM), 1)

    parts = [
        f'<text x="{LEFT}" y="16" font-size="12" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{LEFT}" y="31">{escape(panel.unit)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{escape(across)}</text>',
    ]
    for row in rows:
        parts.append(_line(LEFT, at_y(row), WIDTH - RIGHT, at_y(row), INK, "0.4"))
        parts.append(f'<text x="{LEFT - 6}" y="{at_y(row) + 4}" text-anchor="end">{row:g}</text>')
    for x, _ in panel.points:
        y = HEIGHT - BOTTOM + 14
        parts.append(f'<text x="{at_x(x)}" y="{y}" text-anchor="middle">{x:g}</text>')
    if panel.limit is not None:
        y = at_y(panel.limit)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, LIMIT, "1", dashed=True))
    path = " ".join(f"{at_x(x)},{at_y(y)}" for x, y in panel.points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="2"/>')
    parts += [
        f'<circle cx="{at_x(x)}" cy="{at_y(y)}" r="3" fill="{LINE}"/>' for x, y in panel.points
    ]
    return "\n".join(parts)


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, width: str, *, dashed: bool = False
) -> str:
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" '
        f'stroke-width="{width}"{dashes}/>'
    )
