"""Objects applied in every order, with accounting among them, in simulated time."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import permutations

import pytest

from fault_plans.logs import logging
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.specs import ACCOUNTING, RECORDS
from fault_plans.world import REF, SPACE, World
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.store import Change
from penstock.simulation.event_loop import simulate

REPLICAS = 2
APART_S = 20.0
"""Between two objects, so that the operator has reconciled the one before."""
SETTLED_S = 240.0
PERSISTENT: Json = {"persistence": {"enabled": True}, "accountingRef": {"name": RECORDS}}
OBJECTS: dict[str, tuple[str, str, Json]] = {
    "Controller": ("controllers", "slurm", PERSISTENT),
    "RestApi": ("restapis", "slurm", REF),
    "Accounting": ("accountings", RECORDS, ACCOUNTING),
}
"""By kind: resource, name and spec; the NodeSet is the world's own."""


@pytest.mark.parametrize("order", list(permutations([*OBJECTS, "NodeSet"])), ids="-".join)
def test_every_order_comes_to_the_same_end_and_each_pod_is_made_once(
    order: tuple[str, ...],
) -> None:
    """S031: also when accounting, or slurmctld, is the last to come."""

    async def story() -> None:
        world = World(1, Layout(accounted=True))
        pods = Counter[str]()

        def count(change: Change) -> None:
            if change.resource == "/pods" and change.old is None:
                pods[change.last.obj["metadata"]["name"]] += 1

        world.server.store.listeners.append(count)
        world.operator()
        for kind in order:
            if kind == "NodeSet":
                world.declare_nodeset(REPLICAS)
            else:
                resource, name, spec = OBJECTS[kind]
                world.declare_all([(SPACE, resource, kind, name, spec)])
            await asyncio.sleep(APART_S)
        await asyncio.sleep(SETTLED_S)
        assert expected.missing(world) == []
        assert world.promises.broken == []
        workers = {name for name in pods if name.startswith("compute-")}
        assert workers == {f"compute-{number}" for number in range(REPLICAS)}
        assert set(pods.values()) == {1}, pods
        for process in world.processes:
            await process.stop()

    with logging(show=False):
        simulate(story())
