"""Labels of a Kubernetes node that name its switches or its block: `<prefix>/tier-N`.

Tier 1 is the leaf switch, and the highest tier the one below the root. Tier 0 is the block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "topology.nebius.com"
MOST_TIERS: Final = 16
"""More than any network has."""
_TIER: Final = re.compile(r"tier-(0|[1-9][0-9]?)")


def tiers(labels: Mapping[str, str], prefix: str = PREFIX) -> dict[int, str]:
    """The name of the unit in each tier that the labels have; no name is empty."""
    begin, found = f"{prefix}/", dict[int, str]()
    for key, value in labels.items():
        tier = _TIER.fullmatch(key.removeprefix(begin)) if key.startswith(begin) else None
        if tier is not None and value and int(tier[1]) <= MOST_TIERS:
            found[int(tier[1])] = value
    return found


def switches(of: Mapping[int, str]) -> tuple[str, ...]:
    """The switches of a node from its leaf up, without those above a missing tier."""
    found: list[str] = []
    while (name := of.get(len(found) + 1)) is not None:
        found.append(name)
    return tuple(found)
