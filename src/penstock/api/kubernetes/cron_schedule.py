"""Whether a text is a schedule that a CronJob takes.

Source: Kubernetes documentation, "CronJob", schedule syntax; robfig/cron v3, ParseStandard, which
the API server uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    (
        "month",
        1,
        12,
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    ("day of the week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_MACROS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_EVERY: Final = re.compile(r"@every ([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")
_NUMBER: Final = re.compile(r"[0-9]{1,4}")
_SHOWN: Final = 60


def schedule_problem(text: str) -> str:
    """What is wrong with a schedule; empty if nothing is."""
    shown = repr(text[:_SHOWN])
    if "TZ" in text:
        return f"{shown} names a time zone, which CronJobs reject in a schedule: leave it out"
    if text.startswith("@"):
        if text in _MACROS or _EVERY.fullmatch(text):
            return ""
        return f"{shown} is no schedule: write five fields, or one of {', '.join(sorted(_MACROS))}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return (
            f"{shown} has {len(fields)} fields: write five, which are minute, hour, day, month and "
            "day of the week"
        )
    for field, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        if not _is_field(field.lower(), low, high, names):
            return f"{field[:_SHOWN]!r} is no {name} of a schedule: write {low} to {high}, or *"
    return ""


def _is_field(text: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    return all(_is_range(part, low, high, names) for part in text.split(","))


def _is_range(text: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    span, slash, step = text.partition("/")
    if slash and not (_NUMBER.fullmatch(step) and int(step)):
        return False
    if span in ("*", "?"):
        return True
    ends = list(_values(span, low, names))
    if not ends or None in ends:
        return False
    numbers = [one for one in ends if one is not None]
    return all(low <= one <= high for one in numbers) and numbers == sorted(numbers)


def _values(span: str, low: int, names: tuple[str, ...]) -> Iterator[int | None]:
    parts = span.split("-")
    if len(parts) > len(("first", "last")):
        yield None
        return
    for one in parts:
        if one in names:
            yield names.index(one) + low
        else:
            yield int(one) if _NUMBER.fullmatch(one) else None
