"""Kubernetes quantities. Source: Kubernetes API reference, Quantity."""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_LARGE = {unit: Fraction(1000 ** (i + 1)) for i, unit in enumerate("kMGTPE")}
_BINARY = {f"{unit}i": Fraction(1024 ** (i + 1)) for i, unit in enumerate("KMGTPE")}
_UNITS = _SMALL | _LARGE | _BINARY


def quantity(value: str | float) -> Fraction:
    """The number that a quantity such as `500m`, `4Gi` or `2e3` stands for.

    Raises ValueError for anything else.
    """
    found = _FORM.fullmatch(str(value).strip())
    if not found:
        raise ValueError(f"not a Kubernetes quantity: {value!r}")
    number, unit = found.groups()
    if not unit:
        return Fraction(number)
    if unit in _UNITS:
        return Fraction(number) * _UNITS[unit]
    return Fraction(number) * Fraction(10) ** int(unit[1:])
