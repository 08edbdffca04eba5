"""Kubernetes quantities: `500m`, `4Gi`, `2e3`. Source: Kubernetes API reference, Quantity.

The exponent is bounded before anything is computed: `1e1000000000` is a text of twelve characters
and a number of a gigabyte. Kubernetes promises nothing above 2^63-1 or below one thousandth of a
millionth, so no quantity needs an exponent beyond 18.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Final

LONGEST: Final = 64
"""Characters of a quantity; 2^63-1 nano-units have twenty digits."""
PATTERN: Final = (
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?0*([0-9]|1[0-8]))?$"
)
"""For the schema, together with LONGEST."""
FORM: Final = "a quantity such as 500m or 4Gi (at most 64 characters, an exponent from -18 to 18)"

_FORM = re.compile(PATTERN.replace("$", r"\Z").replace("(", "(?:"), re.ASCII)
_UNIT = re.compile(r"(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)\Z", re.ASCII)
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_LARGE = {unit: Fraction(1000 ** (i + 1)) for i, unit in enumerate("kMGTPE")}
_BINARY = {f"{unit}i": Fraction(1024 ** (i + 1)) for i, unit in enumerate("KMGTPE")}
_UNITS = _SMALL | _LARGE | _BINARY


def quantity(value: str | float) -> Fraction:
    """The number that a quantity such as `500m`, `4Gi` or `2e3` stands for.

    Raises ValueError for anything else, in time that the length of the text does not change.
    """
    text = _text(value)
    if not _FORM.match(text):
        raise ValueError(f"not a Kubernetes quantity: {text!r}")
    found = _UNIT.search(text)
    if found is None:
        return Fraction(text)
    number, unit = Fraction(text[: found.start()]), found[0]
    return number * (_UNITS[unit] if unit in _UNITS else Fraction(10) ** int(unit[1:]))


def is_quantity(value: object) -> bool:
    """Whether a value from YAML is a quantity: a number or a text of that form."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return _FORM.match(_text(value)) is not None
    except ValueError:
        return False


def same_quantity(one: Any, other: Any) -> bool:
    """Whether two resource quantities mean the same: 0.5 and 500m, 1Gi and 1024Mi."""
    if not isinstance(one, (str, int, float)) or not isinstance(other, (str, int, float)):
        return False
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    try:
        return quantity(one) == quantity(other)
    except ValueError:
        return False


def _text(value: str | float) -> str:
    """Raises ValueError for a text or a number that is too long."""
    if isinstance(value, int) and value.bit_length() > 4 * LONGEST:
        raise ValueError("not a Kubernetes quantity: a number of too many digits")
    text = str(value).strip()
    if len(text) > LONGEST:
        raise ValueError(f"not a Kubernetes quantity: {text[:LONGEST]!r}...")
    return text
