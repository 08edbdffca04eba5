"""When a scheduled update takes place, and what is no such time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from penstock.api.slinky.nodeset import ScheduledUpdate
from penstock.slurm import reservation_schedule
from penstock.slurm.reservation_schedule import Schedule, Window

START = "2027-01-30T04:00:00Z"
"""A Saturday."""


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def update(*flags: str, start: str | None = START, duration: str = "2h") -> ScheduledUpdate:
    return ScheduledUpdate(start_time=start, duration=duration, flags=flags)


def schedule(of: ScheduledUpdate) -> Schedule:
    return reservation_schedule.schedule(of.start_time, of.duration, of.flags)


def schedule_problems(of: ScheduledUpdate, *, needed: bool) -> Iterator[tuple[str, str]]:
    return reservation_schedule.schedule_problems(
        of.start_time, of.duration, of.flags, needed=needed
    )


def window(now: str, *flags: str) -> tuple[str, str] | None:
    found = schedule(update(*flags)).window(at(now))
    shown = "%d.%m. %H:%M"
    if found is None:
        return None
    start, end = (datetime.fromtimestamp(t).astimezone() for t in (found.start, found.end))
    utc = datetime.fromisoformat(START).tzinfo
    return start.astimezone(utc).strftime(shown), end.astimezone(utc).strftime(shown)


@pytest.mark.parametrize(
    ("now", "flag", "found"),
    [
        ("2027-01-01T00:00:00Z", "", ("30.01. 04:00", "30.01. 06:00")),
        ("2027-01-30T05:59:59Z", "", ("30.01. 04:00", "30.01. 06:00")),
        ("2027-01-30T06:00:00Z", "", None),
        ("2027-01-30T06:00:00Z", "DAILY", ("31.01. 04:00", "31.01. 06:00")),
        ("2027-03-02T05:00:00Z", "DAILY", ("02.03. 04:00", "02.03. 06:00")),
        ("2027-01-30T06:00:00Z", "WEEKLY", ("06.02. 04:00", "06.02. 06:00")),
        ("2027-01-30T06:00:00Z", "WEEKDAY", ("01.02. 04:00", "01.02. 06:00")),
        ("2027-01-31T06:00:00Z", "WEEKEND", ("06.02. 04:00", "06.02. 06:00")),
        ("2027-01-01T00:00:00Z", "WEEKDAY", ("30.01. 04:00", "30.01. 06:00")),
    ],
)
def test_the_window_that_runs_or_comes_next(
    now: str, flag: str, found: tuple[str, str] | None
) -> None:
    """Feature row 39."""
    assert window(now, *filter(None, (flag,))) == found


def test_an_hourly_window_comes_each_hour() -> None:
    plan = schedule(update("hourly", duration="10m"))
    start = at(START) + 5 * 3600
    assert plan.window(start - 1) == plan.window(start) == Window(start, start + 600)


def test_slurm_counts_in_minutes_and_flags_are_written_as_slurmrestd_does() -> None:
    plan = schedule(update("static_alloc", "maint", " Flex ", "weekly", duration="90s"))
    assert plan.first.end - plan.first.start == 120
    assert (plan.every, plan.flags) == ("WEEKLY", ("FLEX", "STATIC"))


def test_a_start_may_be_of_another_zone() -> None:
    plan = schedule(update(start="2027-01-30T06:00:00+02:00"))
    assert plan.first.start == at(START)


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        (update(start=None), "startTime", "set a time"),
        (update(start="tomorrow"), "startTime", "not an RFC 3339 time"),
        (update(start="2027-02-30T04:00:00Z"), "startTime", "not an RFC 3339 time"),
        (update(start="2027-01-30"), "startTime", "not an RFC 3339 time"),
        (update(start="2027-01-30T04:00:00"), "startTime", "not an RFC 3339 time"),
        (update(duration="59s"), "duration", "1m at least"),
        (update(duration="long"), "duration", "not a duration"),
        (update("HOURLY"), "duration", "longer than from one to the next"),
        (update("DAILY", "WEEKLY"), "flags", "DAILY and WEEKLY do not go together"),
        (update("FORCE_START"), "flags", "needs one of HOURLY, DAILY"),
        (update("DAILY", "REPLACE"), "flags[1]", "'REPLACE' is none of"),
        (update("SOMETIMES"), "flags[0]", "'SOMETIMES' is none of"),
    ],
)
def test_what_is_no_time_is_reported_with_its_field(
    wrong: ScheduledUpdate, field: str, words: str
) -> None:
    """Feature row 39."""
    (found,) = schedule_problems(wrong, needed=True)
    assert found[0] == field
    assert words in found[1]


def test_a_schedule_that_is_not_used_needs_no_start() -> None:
    assert list(schedule_problems(update("weekend", start=None), needed=False)) == []
    assert list(schedule_problems(update("weekend", "force_start"), needed=True)) == []
