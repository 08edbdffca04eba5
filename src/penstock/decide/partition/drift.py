"""What is told of partitions that somebody changed in Slurm, and how a Partition adopts it."""

from __future__ import annotations

from typing import Any

from penstock.api.penstock.partition import KEYS
from penstock.base.text import list_some
from penstock.decide.drift import Found
from penstock.slurm.partition.declaration import NODES, PARTITION, Adoption, Difference

_CAMEL = {key: name for name, key in KEYS.items()}


def told(name: str, differences: tuple[Difference, ...]) -> str:
    """Differences of one partition in words."""
    first = differences[0]
    if first.key == PARTITION:
        if first.live:
            return f"partition {name} was made in Slurm and is declared nowhere"
        return f"partition {name} was deleted in Slurm"
    return (
        f"partition {name} was changed in Slurm: {list_some([str(d) for d in differences], '; ')}"
    )


def into_spec(found: Found) -> Adoption:
    """What a Partition declares then. Of other kinds: `penstock.slurm.partition.adoption`."""
    patch: dict[str, Any] = {}
    left: dict[str, str] = {}
    for name, differences in found.items():
        for one in differences:
            if one.key == NODES:
                patch |= {"nodes": [one.live] if one.live else [], "nodeSets": [], "selector": None}
            elif one.key in _CAMEL:
                patch[_camel(_CAMEL[one.key])] = _value(one)
                if one.key == "Exclusive":
                    patch |= {"exclusiveUser": None, "exclusiveTopo": None}
            else:
                left[name] = "delete the object, or choose Revert to have it made again"
    return Adoption(patch, left)


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
