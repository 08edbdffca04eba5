"""Values of panels as a reader sees them, by Grafana's names of units."""

from __future__ import annotations

import math
from typing import Final

from dashboards.model import Unit

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL: Final = ("", " k", " M", " G")
_TIMES: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"))


def shown(value: float, unit: str) -> str:
    """The value with its unit, in few characters."""
    if math.isnan(value):
        return "none"
    match unit:
        case Unit.SHARE:
            return f"{_digits(100 * value)} %"
        case Unit.BYTES:
            return _scaled(value, 1024, _BINARY, " ")
        case Unit.SECONDS:
            return _time(value)
        case Unit.PER_SECOND:
            return f"{_digits(value)}/s"
        case Unit.PER_MINUTE:
            return f"{_digits(value)}/min"
        case _:
            return _scaled(value, 1000, _DECIMAL, "")


def _digits(value: float) -> str:
    """Three digits, and no zeros at the end."""
    if value and abs(value) < 1:
        return f"{value:.2g}" if abs(value) >= 1e-4 else "0"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}".removesuffix(".0")


def _scaled(value: float, step: int, names: tuple[str, ...], gap: str) -> str:
    power = 0
    while abs(value) >= step and power < len(names) - 1:
        value, power = value / step, power + 1
    return f"{_digits(value)}{gap}{names[power]}"


def _time(value: float) -> str:
    for size, name in _TIMES:
        if abs(value) >= size:
            return f"{_digits(value / size)} {name}"
    return "0 s"
