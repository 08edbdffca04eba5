"""The whole operator in simulated time, from a cluster on which all is well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import GROUP, NODESET, World
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate

NODESET_PATH = f"{GROUP}/nodesets/{NODESET}"


def story(
    tell: Callable[[World], Awaitable[None]],
    layout: Layout | None = None,
    *,
    spec: Json | None = None,
    replicas: int = 2,
) -> World:
    """Run the operator until all is well, then the story; no promise may be broken."""

    async def main() -> World:
        world = World(1, layout)
        world.declare(replicas)
        if spec is not None:
            world.ask("PATCH", NODESET_PATH, {"spec": spec})
        world.operator()
        await well(world)
        await tell(world)
        assert world.promises.broken == []
        for process in list(world.processes):
            await world.crash(process)
        return world

    return simulate(main())


async def well(world: World) -> None:
    """Wait until all objects have their desired state."""
    for _ in range(300):
        if not expected.missing(world):
            return
        await asyncio.sleep(1.0)
    raise AssertionError(expected.missing(world))
