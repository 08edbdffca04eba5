"""When Slurm differs from a declaration by somebody's own change, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.api.conditions import Check, find
from penstock.api.meta import Condition
from penstock.api.penstock.partition import KEYS
from penstock.decide.words import some
from penstock.slurm.partition import PARTITION, Difference

DRIFTED = "Drifted"
CONFIRM_S = 2.0
"""A difference that is there for so long, in two answers, is no change under way."""

Found = Mapping[str, tuple[Difference, ...]]
_CAMEL = {key: name for name, key in KEYS.items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """Differences of one partition, and when they were first seen (monotonic seconds)."""

    differences: tuple[Difference, ...]
    since: float
    confirmed: bool = False


def watch(before: Mapping[str, Seen], found: Found, as_of: float) -> dict[str, Seen]:
    """What is known after an answer of slurmctld that was asked for at `as_of`."""
    now: dict[str, Seen] = {}
    for name, differences in found.items():
        old = before.get(name)
        since = old.since if old is not None and old.differences == differences else as_of
        now[name] = Seen(differences, since, as_of - since >= CONFIRM_S)
    return now


def told(name: str, differences: tuple[Difference, ...]) -> str:
    """Differences of one partition in words."""
    first = differences[0]
    if first.key == PARTITION:
        if first.live:
            return f"partition {name} was made in Slurm and is declared nowhere"
        return f"partition {name} was deleted in Slurm"
    return f"partition {name} was changed in Slurm: {some([str(d) for d in differences], '; ')}"


def check(found: Found, old: tuple[Condition, ...], *, always: bool = False) -> list[Check]:
    """The condition Drifted: there from the first drift on, or `always`. It leaves Ready alone."""
    if found:
        words = "; ".join(told(name, found[name]) for name in sorted(found))
        return [Check(True, "ChangedInSlurm", words, type=DRIFTED)]
    if always or find(old, DRIFTED) is not None:
        return [Check(True, "AsDeclared", type=DRIFTED, negative=True)]
    return []


def adopted(differences: tuple[Difference, ...]) -> dict[str, Any]:
    """The merge patch of a Partition's spec that declares what Slurm has.

    Empty when there is nothing that a spec can say.
    """
    patch: dict[str, Any] = {}
    for one in differences:
        if one.key == "Nodes":
            patch |= {"nodes": [one.live] if one.live else [], "nodeSets": [], "selector": None}
        elif one.key in _CAMEL:
            patch[_camel(_CAMEL[one.key])] = _value(one)
            if one.key == "Exclusive":
                patch |= {"exclusiveUser": None, "exclusiveTopo": None}
    return patch


_LISTS = frozenset(
    {"AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts", "DenyQos"}
)
_FLAGS = frozenset(
    {
        "Default",
        "DisableRootJobs",
        "Hidden",
        "LLN",
        "PowerDownOnIdle",
        "ReqResv",
        "RootOnly",
    }
)
_NOTHING = frozenset({"", "NONE", "GLOBAL"})


def _value(one: Difference) -> Any:
    if one.live in _NOTHING:
        return None
    if one.key in _FLAGS:
        return one.live == "YES"
    if one.key in _LISTS:
        return None if one.live == "ALL" else one.live.split(",")
    if one.key.endswith(("MemPerCPU", "MemPerNode")) and not one.live.isdecimal():
        return None
    return int(one.live) if one.live.isdecimal() else one.live


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
