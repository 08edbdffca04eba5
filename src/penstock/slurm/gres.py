"""Counts of generic resources, as slurm.conf and slurmctld write them.

Source: slurm.conf(5), NODE CONFIGURATION, Gres (`name[:type][:no_consume]:number[K|M|G|T|P]`);
scontrol(1), Gres (`gpu:4(S:0-1)`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\([^()]*+\)")
_COUNT = re.compile(r"([0-9]{1,18})([KMGTP]?)", re.IGNORECASE)
"""slurmctld keeps counts in 64 bits."""
_UNITS = "KMGTP"


def counts(text: str) -> dict[str, int]:
    """By name, with type and flags; sockets are left out. A count that is not given is one."""
    found: dict[str, int] = {}
    for word in _PLACE.sub("", text).split(","):
        if not word:
            continue
        name, colon, last = word.rpartition(":")
        match = _COUNT.fullmatch(last) if colon else None
        if match is None:
            name, count = word, 1
        else:
            unit = match[2].upper()
            count = int(match[1]) * 1024 ** (_UNITS.index(unit) + 1 if unit else 0)
        found[name] = found.get(name, 0) + count
    return found


def text(found: Mapping[str, int]) -> str:
    """As slurm.conf and scontrol take it, always the same for the same."""
    return ",".join(f"{name}:{found[name]}" for name in sorted(found))


def unused(used: str, old: str, new: str) -> bool:
    """Whether no job uses any of the resources whose count changes."""
    before, after, busy = counts(old), counts(new), counts(used)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    return not any(count for name, count in busy.items() if name in changed)


def within(found: Mapping[str, int], most: Mapping[str, int]) -> bool:
    """Whether both name the same resources, and `found` no more of each."""
    return found.keys() == most.keys() and all(found[name] <= most[name] for name in found)
