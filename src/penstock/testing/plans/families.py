"""The families of happenings that plans draw by dice of their own, each once."""

from __future__ import annotations

from penstock.testing.plans import (
    absent,
    bookkeeping,
    configuration,
    deposed,
    forgotten,
    left,
    parsers,
    partitioned,
    rotation,
    storage,
    tokens,
    upkeep,
)
from penstock.testing.plans.acts import ACTS
from penstock.testing.plans.hybrid import HYBRID
from penstock.testing.plans.mishaps import MISHAPS

DRAWN = {**ACTS, **MISHAPS}
"""What all plans are drawn from; one more would make each of them another one."""
FAMILIES = (
    storage.FAMILY,
    upkeep.FAMILY,
    bookkeeping.FAMILY,
    tokens.FAMILY,
    rotation.FAMILY,
    forgotten.FAMILY,
    deposed.FAMILY,
    configuration.FAMILY,
    partitioned.FAMILY,
    left.FAMILY,
    absent.FAMILY,
    parsers.FAMILY,
)
"""In the order in which they are added to a plan: a new one goes to the end."""
HAPPENINGS = {
    **DRAWN,
    **{name: one for family in FAMILIES for name, one in family.happenings.items()},
    **HYBRID,
}
"""All that happens in plans, by name."""
USERS = frozenset((*ACTS, *HYBRID)).union(*(family.users for family in FAMILIES))
"""Happenings that are left where nothing goes wrong."""
