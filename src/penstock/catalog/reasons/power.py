"""Reasons about the nodes that jobs power up."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class PowerReason(ConditionReason):
    """Reasons of a NodeSetPowerState, and of the NodeSet that it is of."""

    RECONCILED = (
        "ActiveNodesReconciled",
        "The workers of all ordinals in spec.activeNodes are declared.",
        NOTHING,
    )
    OUT_OF_RANGE = (
        "OrdinalsOutOfRange",
        "spec.activeNodes has ordinals that the NodeSet has no nodes for. They get no pods.",
        "Remove the ordinals from spec.activeNodes, or raise spec.replicas of the NodeSet.",
        PERSON,
    )
    NOT_EPHEMERAL = (
        "NodeSetNotEphemeral",
        "The NodeSet has no ephemeral nodes: all its nodes have a pod, whatever is active.",
        "Set spec.ephemeralNodes of the NodeSet, or delete this object.",
    )
    CREATING = (
        "CreatingPowerState",
        "The workers wait for the NodeSetPowerState that lists the powered nodes.",
        WAIT,
    )
