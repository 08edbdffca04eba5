"""Plans of SlurmClusters, of the shape with NodeSets and of the older one with its own workers.

`python -m fault_plans --nebius`: the same faults, and what users do to these kinds.
"""

from __future__ import annotations

from dataclasses import replace

from fault_plans.actions import busy, checks, configuration, power, reboots, replacements
from fault_plans.actions import nebius_accounting as records
from fault_plans.actions.faults import MISHAPS
from fault_plans.actions.nebius import NEBIUS_ACTS, NEBIUS_FAULTS, PARTITIONS
from fault_plans.actions.users import ACTS
from fault_plans.nebius_specs import CURRENT, OLDER
from fault_plans.plan import Happening, Layout, Plan, draw
from fault_plans.promises.pvc import DELETE, RETAIN
from fault_plans.random_source import Dice

APART, LATER = 18 << 40, 19 << 40
"""Added to a seed for dice of its own, of each kind of plan."""
NOT_OF_IT = frozenset(
    {
        "limit",
        "switch_mode",
        "rename_node",
        "label_machine",
        "remake_restapi",
        "remake_login",
        "edit",
        "delete",
        "configure",
        "misconfigure",
    }
)
"""What only Slinky's kinds have."""
SHARE_OF_CLAIMS = 0.2
OF_NEBIUS = {**NEBIUS_ACTS, **NEBIUS_FAULTS}
_USUAL = {**ACTS, **MISHAPS, **configuration.FAMILY.faults}
DRAWN_OF_NEBIUS = {
    **{name: one for name, one in _USUAL.items() if name not in NOT_OF_IT},
    **OF_NEBIUS,
}


LEFT = frozenset(
    {
        *(name for name in MISHAPS if name not in NOT_OF_IT),
        *("job", "fill", "crowd", "suspend", "drain", "resume", "cordon_pod", "cordon_machine"),
        *("drain_machine", "delete_pod", "evict_pod", "kill_writer", "pause_writer"),
    }
)
"""What happens to a cluster that soperator left: all that changes no declaration."""


def nebius_left_of(seed: int) -> Plan:
    """The plan of a seed, of a SlurmCluster that soperator left; OpenKruise runs, or does not."""
    plan, dice = draw(seed + LATER, _of_left()), Dice(seed + LATER + 1)
    shape, without = dice.choice([OLDER, CURRENT]), dice.random() < 0.5
    layout = Layout(nebius=shape, left=True, no_kruise=without, leased=plan.layout.leased)
    return replace(plan, layout=layout)


def _of_left() -> dict[str, Happening]:
    return {name: one for name, one in DRAWN_OF_NEBIUS.items() if name in LEFT} | {
        "scale": Happening(4, ACTS["scale"].draw, ACTS["scale"].run)
    }


def nebius_of(seed: int) -> Plan:
    """The plan of a seed, of SlurmClusters."""
    plan, dice = draw(seed + APART, DRAWN_OF_NEBIUS), Dice(seed + APART + 1)
    shape = dice.choice([OLDER, CURRENT])
    claims = (dice.choice([RETAIN, DELETE]), dice.choice([RETAIN, DELETE]))
    has_claims = dice.random() < SHARE_OF_CLAIMS
    layout = replace(
        plan.layout,
        nebius=shape,
        daemons=(),
        login=False,
        claims=claims if has_claims else None,
    )
    plan = PARTITIONS.added(replace(plan, layout=layout))
    plan = replacements.FAMILY.added(plan)
    plan = busy.FAMILY.added(plan)
    plan = power.FAMILY.added(checks.FAMILY.added(reboots.FAMILY.added(plan)))
    return records.added(plan, Dice(seed + APART + 2))
