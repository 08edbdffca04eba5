"""Rights as the rules of a Role give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Right = tuple[str, str]
"""A verb, and a resource as `group/plural`."""


def rights(rules: Iterable[Any]) -> set[Right]:
    """Those of some rules; those for some names count as for all."""
    return {
        (verb, f"{group}/{resource}")
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }
