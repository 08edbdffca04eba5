"""Play one plan, and say what was broken."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from penstock.testing.loop import simulate
from penstock.testing.plans import expected
from penstock.testing.plans.acts import ACTS
from penstock.testing.plans.mishaps import MISHAPS
from penstock.testing.plans.plan import Plan, Step, draw
from penstock.testing.plans.world import World

HAPPENINGS = {**ACTS, **MISHAPS}
PATIENCE_S = 1200.0
"""How long, after all is healed, the operator may take to bring about what is declared."""


@dataclass
class Outcome:
    """What came of one plan."""

    plan: Plan
    broken: list[str] = field(default_factory=list[str])
    writes: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    summary: Counter[str] = field(default_factory=Counter[str])
    healed_after: float = 0.0
    """Seconds from the end of all faults until all was as declared."""


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    return draw(seed, HAPPENINGS)


def play(plan: Plan, *, silence: float = 600.0) -> Outcome:
    """Play a plan to its end; `silence` are the seconds at the end without any write."""
    return simulate(_play(plan, silence))


async def _play(plan: Plan, silence: float) -> Outcome:
    world = World(plan.seed)
    outcome = Outcome(plan, world.promises.broken, world.writes, world.summary)
    world.declare(plan.replicas)
    world.operator()
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        for step in plan.steps:
            await asyncio.sleep(max(0.0, step.at - loop.time()))
            _happen(world, step, group)
            _died(world)
    world.heal()
    healed = loop.time()
    wrong = expected.missing(world)
    while wrong and loop.time() < healed + PATIENCE_S:
        await asyncio.sleep(2.0)
        wrong = expected.missing(world)
    outcome.healed_after = loop.time() - healed
    outcome.broken += [f"at the end: {one}" for one in wrong]
    _died(world)
    # What is under way now, such as the last event, may end.
    await asyncio.sleep(120.0)
    written = len(world.writes)
    await asyncio.sleep(silence)
    outcome.broken += [f"not silent: {t:.2f} {what}" for t, what in world.writes[written:]][:3]
    outcome.broken += [f"after silence: {one}" for one in expected.missing(world) if not wrong]
    if not wrong:
        outcome.broken += [f"at the end: {one}" for one in await _compared(world)]
    for process in list(world.processes):
        await world.crash(process)
    return outcome


async def _compared(world: World) -> list[str]:
    """What differs from a run in which nothing went wrong and that was all that was declared.

    Source: Sieve's end state oracle, OSDI 2022.
    """
    reference = World(0)
    reference.declare_as(world)
    process = reference.operator()
    for _ in range(60):
        if not expected.missing(reference):
            break
        await asyncio.sleep(2.0)
    await reference.crash(process)
    return expected.differences(world, reference)


def _happen(world: World, step: Step, group: asyncio.TaskGroup) -> None:
    waits = HAPPENINGS[step.name].run(world, *step.values)
    if waits is not None:
        group.create_task(waits)


def _died(world: World) -> None:
    for process in world.processes:
        if process.failure is not None:
            world.promises.broken.append(f"the operator died: {process.failure!r}")
