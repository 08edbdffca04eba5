"""What slurmctld does to its reservations, by request and as time passes.

Effects and errors are those that Slurm 26.05 showed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from penstock.slurm import hostlist

Record = dict[str, Any]
PAST_S = 600
"""How far in the past a reservation may begin, for slow clocks."""
DAY_S = 86_400
STEPS = {
    "HOURLY": 3600,
    "DAILY": DAY_S,
    "WEEKDAY": DAY_S,
    "WEEKEND": DAY_S,
    "WEEKLY": 7 * DAY_S,
}
_DAYS = {"WEEKDAY": range(5), "WEEKEND": range(5, 7)}


def changed(old: Record | None, body: Mapping[str, Any], nodes: Collection[str] | None) -> Record:
    """A reservation after a request; `nodes` are the ones it names, if it does."""
    old = old or {"name": body["name"], "flags": ["SPEC_NODES"], "node_list": "", "node_count": 0}
    new = {**old, **body}
    if nodes is not None:
        new |= placed(nodes)
    for key in ("users", "accounts", "licenses"):
        if key in body:
            new[key] = ",".join(body[key])
    if "flags" in body:
        new["flags"] = sorted({*old["flags"], *body["flags"]})
    if (minutes := new.pop("duration", None)) is not None and "start_time" in new:
        new["end_time"] = _number(_time(new, "start_time") + 60 * minutes["number"])
    return new


def placed(nodes: Collection[str]) -> Record:
    """What changes of a reservation that has these nodes now."""
    return {"node_list": hostlist.compress(nodes), "node_count": len(set(nodes))}


def timely(record: Record, body: Mapping[str, Any], now: float, *, new: bool) -> bool:
    """Whether slurmctld takes its times: a start that is not long past, an end after it."""
    forced = "FORCE_START" in body.get("flags", ()) and STEPS.keys() & set(record["flags"])
    past = _time(record, "start_time") < now - PAST_S
    if past and not forced and (new or "start_time" in body):
        return False
    end = _time(record, "end_time")
    return not end or _time(record, "start_time") < end


def maintained(record: Record, now: float) -> bool:
    """Whether its nodes are in maintenance."""
    begun = _time(record, "start_time") <= now < _time(record, "end_time")
    return begun and "MAINT" in record["flags"]


def nodes_of(record: Record) -> list[str]:
    """Its nodes."""
    return hostlist.expand(record["node_list"]) if record["node_list"] else []


def later(record: Record, now: float) -> Record | None:
    """What it is at that time: as it was, moved on to its next time, or gone (None)."""
    start, end = _time(record, "start_time"), _time(record, "end_time")
    if not end or now < end:
        return record
    every = next((flag for flag in STEPS if flag in record["flags"]), None)
    if every is None:
        return None
    while end <= now or not _on(every, start):
        start, end = start + STEPS[every], end + STEPS[every]
    return {**record, "start_time": _number(start), "end_time": _number(end)}


def _on(every: str, start: int) -> bool:
    days = _DAYS.get(every)
    return days is None or datetime.fromtimestamp(start, UTC).weekday() in days


def _time(record: Record, key: str) -> int:
    return int(record.get(key, {}).get("number", 0))


def _number(value: int) -> Record:
    return {"set": True, "infinite": False, "number": value}
