"""Reasons about JailUpgrades."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class JailUpgradeReason(ConditionReason):
    """Reasons about a JailUpgrade."""

    WAITS = (
        "JailUpgradeWaits",
        "The upgrade waits for the object that the message names.",
        "Create the object, or wait until it has ended.",
    )
    COMPARING = "JailComparing", "A Job compares the jail with both images.", WAIT
    COMPARED = (
        "JailCompared",
        "The changes are listed, and none is made yet.",
        "Read the list in the log of the Job, then set spec.approved.",
    )
    APPLYING = "JailUpgrading", "A Job makes the changes.", WAIT
    UPGRADED = "JailUpgraded", "The changes were made.", NOTHING
    UNDOING = "JailUpgradeUndoing", "A Job puts back what was replaced.", WAIT
    UNDONE = "JailUpgradeUndone", "What was replaced was put back.", NOTHING
    FAILED = (
        "JailUpgradeFailed",
        "A Job of the upgrade failed. The message has its words, and whether files were changed.",
        "Remove the cause in the message, and delete the Job, which repeats it.",
        PERSON,
    )
