"""The table of happenings that only some plans have."""

from __future__ import annotations

from collections import Counter

from fault_plans.actions import checks, power, reboots, replacements
from fault_plans.actions import nebius_accounting as records
from fault_plans.actions.nebius import PARTITIONS
from fault_plans.families import DRAWN, FAMILIES, HAPPENINGS
from fault_plans.hybrid import HYBRID
from fault_plans.nebius import OF_NEBIUS
from fault_plans.together import TOGETHER


def test_no_two_happenings_have_the_same_name() -> None:
    of_families = (family.happenings for family in FAMILIES)
    of_nodes = (reboots, checks, power, replacements)
    of_records = (records.USERS, records.FAULTS)
    of_nebius = (OF_NEBIUS, PARTITIONS.happenings, *of_records, TOGETHER)
    # Plans of both APIs may have the same happening.
    named = {
        (name, one)
        for table in (
            *(DRAWN, *of_families, HYBRID, *of_nebius),
            *(one.FAMILY.happenings for one in of_nodes),
        )
        for name, one in table.items()
    }
    assert [name for name, times in Counter(name for name, _ in named).items() if times > 1] == []
    assert len(named) == len(HAPPENINGS)


def test_a_new_family_has_dice_of_its_own() -> None:
    """Two families with the same dice are drawn together: 7 is shared for the plans that exist."""
    dice = Counter(family.dice for family in FAMILIES)
    assert [one for one, times in dice.items() if times > 1] == [7]
