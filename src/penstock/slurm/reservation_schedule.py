"""When a scheduled update takes place: windows of a reservation from start, duration and flags.

Source of the flags: scontrol(1), RESERVATIONS, Flags; slurmrestd's OpenAPI v0.0.45.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.base import duration as durations

DAY_S = 86_400
EVERY = {
    "HOURLY": 3600,
    "DAILY": DAY_S,
    "WEEKDAY": DAY_S,
    "WEEKEND": DAY_S,
    "WEEKLY": 7 * DAY_S,
}
"""Flags by which a reservation comes again, and the shortest time between two, in seconds."""
OURS = ("MAINT", "IGNORE_JOBS")
"""Flags that the reservation has anyhow."""
CHOSEN = ("FLEX", "MAGNETIC", "NO_HOLD_JOBS_AFTER_END", "OVERLAP", "STATIC", "USER_DELETE")
"""Flags that a user may add."""
FORCE_START = "FORCE_START"
SPELLINGS = {"NO_HOLD_JOBS_AFTER": "NO_HOLD_JOBS_AFTER_END", "STATIC_ALLOC": "STATIC"}
"""Flags that scontrol calls otherwise than slurmrestd."""
_WEEKDAYS = {"WEEKDAY": range(5), "WEEKEND": range(5, 7)}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when, in Unix seconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The first window, which flag makes it come again, and the user's other flags."""

    first: Window
    every: str = ""
    flags: tuple[str, ...] = ()

    def window(self, now: float) -> Window | None:
        """The one that runs, or that comes next; None when the only one is over.

        Windows repeat by UTC. Slurm goes by the local time of slurmctld's host, and moves its
        reservation on by itself; where that is not in UTC the two differ in summer.
        """
        first, step = self.first, EVERY.get(self.every)
        if now < first.end:
            return first
        if step is None:
            return None
        start = first.start + step * math.floor((now - first.end) / step + 1)
        while not self._on(start):
            start += step
        return Window(start, start + first.end - first.start)

    def _on(self, start: int) -> bool:
        days = _WEEKDAYS.get(self.every)
        return days is None or datetime.fromtimestamp(start, UTC).weekday() in days


def schedule(start_time: str | None, duration: str, flags: Sequence[str] | None) -> Schedule:
    """The schedule of a declaration.

    `start_time` is RFC 3339 text, `duration` one as Go writes it, `flags` are as their user wrote
    them. Raises ValueError where `schedule_problems` finds something.
    """
    start = _start(start_time or "")
    # Slurm counts in minutes.
    length = 60 * math.ceil(durations.seconds(duration) / 60)
    given = _flags(flags)
    every = next((flag for flag in EVERY if flag in given), "")
    return Schedule(
        Window(start, start + length), every, tuple(flag for flag in CHOSEN if flag in given)
    )


def schedule_problems(
    start_time: str | None, duration: str, flags: Sequence[str] | None, *, needed: bool
) -> Iterator[tuple[str, str]]:
    """Field and what to write instead, for all that is wrong; `needed` by the strategy's type."""
    if start_time:
        try:
            _start(start_time)
        except ValueError as error:
            yield "startTime", str(error)
    elif needed:
        yield "startTime", "set a time, such as 2027-01-31T04:00:00Z"
    length = None
    try:
        length = durations.seconds(duration)
    except ValueError as error:
        yield "duration", str(error)
    if length is not None and length < 60:
        yield "duration", "Slurm reserves 1m at least"
    given = _flags(flags)
    again = [flag for flag in given if flag in EVERY]
    if len(again) > 1:
        yield "flags", f"{' and '.join(again)} do not go together: keep one"
    if length is not None and any(length > EVERY[flag] for flag in again):
        yield "duration", f"{duration} is longer than from one to the next ({again[0]})"
    if FORCE_START in given and not again:
        words = f"{FORCE_START} needs one of {', '.join(EVERY)}"
        yield "flags", f"{words}; a window that has begun is used as it is"
    known = {*EVERY, *OURS, *CHOSEN, FORCE_START}
    for index, flag in enumerate(flags or ()):
        if _plain(flag) not in known:
            takes = ", ".join((*EVERY, *CHOSEN, FORCE_START))
            yield f"flags[{index}]", f"{flag!r} is none of {takes}"


def _flags(flags: Iterable[str] | None) -> list[str]:
    return sorted({_plain(flag) for flag in flags or ()})


def _plain(flag: str) -> str:
    found = flag.strip().upper()
    return SPELLINGS.get(found, found)


def _start(text: str) -> int:
    words = f"not an RFC 3339 time such as 2027-01-31T04:00:00Z: {text!r}"
    if not _TIME.fullmatch(text):
        raise ValueError(words)
    try:
        return int(datetime.fromisoformat(text.upper()).timestamp())
    except (ValueError, OverflowError) as error:
        raise ValueError(words) from error
