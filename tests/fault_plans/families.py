"""The families of happenings that plans draw by dice of their own, each once."""

from __future__ import annotations

from fault_plans.actions import (
    absent,
    busy,
    checks,
    configuration,
    deposed,
    forgotten,
    parsers,
    partitioned,
    power,
    reboots,
    replacements,
    storage,
    tokens,
)
from fault_plans.actions import accounting as bookkeeping
from fault_plans.actions import adopted_cluster as left
from fault_plans.actions import key_rotation as rotation
from fault_plans.actions import nebius_accounting as records
from fault_plans.actions import scheduled_updates as upkeep
from fault_plans.actions.faults import MISHAPS
from fault_plans.actions.nebius import NEBIUS_ACTS, PARTITIONS
from fault_plans.actions.users import ACTS
from fault_plans.hybrid import HYBRID
from fault_plans.nebius import OF_NEBIUS
from fault_plans.together import TOGETHER

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
    busy.FAMILY,
)
"""In the order in which they are added to a plan: a new one goes to the end."""
HAPPENINGS = {
    **DRAWN,
    **{name: one for family in FAMILIES for name, one in family.happenings.items()},
    **HYBRID,
    **OF_NEBIUS,
    **PARTITIONS.happenings,
    **reboots.FAMILY.happenings,
    **checks.FAMILY.happenings,
    **power.FAMILY.happenings,
    **replacements.FAMILY.happenings,
    **records.USERS,
    **records.FAULTS,
    **TOGETHER,
}
"""All that happens in plans, by name."""
USERS = frozenset(
    (
        *ACTS,
        *HYBRID,
        *NEBIUS_ACTS,
        *records.USERS,
        *PARTITIONS.users,
        *reboots.FAMILY.users,
        *checks.FAMILY.users,
        *power.FAMILY.users,
        *replacements.FAMILY.users,
        *TOGETHER,
    )
).union(*(family.users for family in FAMILIES))
"""Happenings that are left where nothing goes wrong."""
