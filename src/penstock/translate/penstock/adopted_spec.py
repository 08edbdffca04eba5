"""Declare in a Partition the changes that somebody made to it in Slurm.

Other kinds declare partitions in words of slurm.conf: `penstock.slurm.partition.adoption`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.api.penstock.partition import KEYS
from penstock.slurm.partition.declaration import NODES, Adoption, Difference

_CAMEL = {key: name for name, key in KEYS.items()}
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


def into_partition(found: Mapping[str, tuple[Difference, ...]]) -> Adoption:
    """The patch of a Partition's spec, and why some changes cannot be declared."""
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
                left[name] = "delete the object, or choose Revert to recreate the partition"
    return Adoption(patch, left)


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
