"""Plans of clusters whose workers are of the tiny API of `support.tiny_api`.

`python -m fault_plans --tiny`: the same users and the same faults, and no NodeSet. What is about
other kinds (the Controller, its files, slurmrestd) goes on as it is.
"""

from __future__ import annotations

from dataclasses import replace

from fault_plans.actions.faults import MISHAPS
from fault_plans.actions.users import ACTS
from fault_plans.plan import Plan, draw

APART = 17 << 40
"""Added to a seed for dice of its own."""
NOT_OF_IT = frozenset({"limit", "switch_mode", "rename_node", "label_machine"})
"""What only NodeSets have: a partition of their own, and one pod for each Kubernetes node."""
_DRAWN = {name: one for name, one in {**ACTS, **MISHAPS}.items() if name not in NOT_OF_IT}


def tiny_of(seed: int) -> Plan:
    """The plan of a seed, of clusters whose workers are of the tiny API."""
    plan = draw(seed + APART, _DRAWN)
    return replace(plan, layout=replace(plan.layout, tiny=True, daemons=()))
