"""Play one plan, and say what was broken."""

from __future__ import annotations

import asyncio
import gc
import hashlib
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache

import msgspec

from fault_plans.actions import key_rotation as rotation
from fault_plans.actions import partitioned
from fault_plans.actions.adopted_cluster import RUNS_S
from fault_plans.families import DRAWN, FAMILIES, HAPPENINGS, USERS
from fault_plans.nebius_world import NebiusWorld
from fault_plans.neighbours import mixed_up
from fault_plans.plan import Layout, Plan, Step, draw
from fault_plans.promises import accounting_and_tokens as served
from fault_plans.promises import final_state as expected
from fault_plans.promises import nebius_state
from fault_plans.promises.auth_keys import Lockouts
from fault_plans.world import Declared, World
from penstock.simulation.event_loop import StuckError, simulate

REMEMBERED_S = 20.0
"""Where nothing goes wrong, somebody's drain is remembered within these seconds."""
PATIENCE_S = 1200.0
RECREATED = frozenset({"recreate_cluster", "remake_nodeset", "uninstall"})
"""Steps in which users delete an object and create another one of its name."""
TIMERS = 60_000
"""A plan that sets more will not end: usual ones set some thousand."""


@dataclass
class Outcome:
    """What came of one plan."""

    plan: Plan
    broken: list[str] = field(default_factory=list[str])
    writes: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    summary: Counter[str] = field(default_factory=Counter[str])
    healed_at: float = 0.0
    """When all faults ended."""
    healed_after: float = 0.0
    """Seconds from the end of all faults until all was as declared."""
    declared: bytes = b""
    """What was declared at the end, as JSON."""
    kept: dict[str, str] = field(default_factory=dict[str, str])
    """What the operator kept at the end besides pods, by name."""

    rights: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Verbs and resources of the operator's writes."""
    made: Counter[str] = field(default_factory=Counter[str])
    """How much more often the operator made each object but pods than it was taken away."""

    @property
    def digest(self) -> str:
        """A hash of all writes and their times: equal for equal runs."""
        return hashlib.sha256(repr(self.writes).encode()).hexdigest()[:16]


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    plan = draw(seed, DRAWN)
    for family in FAMILIES:
        plan = family.added(plan)
    return plan


def focused(seed: int, *names: str, layout: Layout | None = None) -> Plan:
    """A plan in which only these things happen, one as often as the other."""
    chosen = {name: replace(HAPPENINGS[name], weight=1) for name in names}
    return draw(seed, chosen, swarm=False, layout=layout)


def play(
    plan: Plan, *, silence: float = 600.0, patience: float = PATIENCE_S, until: float = 0.0
) -> Outcome:
    """Play a plan to its end; `silence` are the seconds at the end without any write.

    `patience` are those that the operator has, after all is healed, to do what is declared. It is
    healed no sooner than `until`.
    """
    with _without_gc():
        try:
            outcome = simulate(_play(plan, silence, patience, until), timers=TIMERS)
        except StuckError as error:
            return Outcome(plan, [f"it does not end: {error}"])
        wrong = any(one.startswith("at the end") for one in outcome.broken)
        if not wrong and not plan.layout.left:
            want = reference(outcome.declared)
            outcome.broken += [
                f"at the end: {name} is not as in a world without faults"
                for name in sorted(outcome.kept.keys() | want.keys())
                if outcome.kept.get(name) != want.get(name)
            ]
    return outcome


def beside_its_twin(outcome: Outcome) -> list[str]:
    """What differs from a run of the same users in a world in which nothing goes wrong.

    The operator must keep the same in the end, and must not have made anything but pods more often
    than it was taken away. Source: Sieve's oracles, OSDI 2022.
    """
    plan = outcome.plan
    steps = tuple(step for step in plan.steps if step.name in USERS)
    # What users put right later is put right in the same order.
    twin = play(replace(plan, steps=steps), silence=0.0, until=outcome.healed_at)
    found = [f"without faults: {one}" for one in twin.broken]
    if twin.declared != outcome.declared:
        if any(step.name in RECREATED for step in steps):
            # What users change of an object is lost with it, and when it goes differs.
            return found
        found.append("without faults: something else is declared in the end")
    found += [
        f"without faults: {name} is another one in the end"
        for name in sorted(twin.kept.keys() | outcome.kept.keys())
        if twin.kept.get(name) != outcome.kept.get(name)
    ]
    for name in sorted(twin.made.keys() | outcome.made.keys()):
        if twin.made[name] != outcome.made[name]:
            told = f"{outcome.made[name]} times more often than it went, not {twin.made[name]}"
            found.append(f"without faults: {name} was made {told}")
    return found


@lru_cache(maxsize=512)
def reference(declared: bytes) -> Mapping[str, str]:
    """What the operator keeps for a declaration when nothing ever goes wrong.

    Source: Sieve's end state oracle, OSDI 2022.
    """
    return simulate(_reference(declared))


async def _reference(declared: bytes) -> Mapping[str, str]:
    layout, found = msgspec.json.decode(declared, type=tuple[Layout, list[Declared]])
    world = _world(0, replace(layout, leased=False, together=False))
    world.declare_all(found)
    process = world.operator()
    for _ in range(60):
        if not _missing(world):
            break
        await asyncio.sleep(2.0)
    await world.crash(process)
    return expected.owned(world)


def _world(seed: int, layout: Layout) -> World:
    return NebiusWorld(seed, layout) if layout.nebius else World(seed, layout)


def _missing(world: World) -> list[str]:
    if isinstance(world, NebiusWorld):
        of_others = [one for other in world.neighbours for one in other.missing()]
        return [*nebius_state.missing(world), *of_others]
    return expected.missing(world)


@contextmanager
def _without_gc() -> Generator[None]:
    """A plan makes few cycles and ends soon: looking for them takes a seventh of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


async def _play(plan: Plan, silence: float, patience: float, until: float) -> Outcome:
    world = _world(plan.seed, plan.layout)
    outcome = Outcome(
        plan,
        world.promises.broken,
        world.writes,
        world.summary,
        rights=world.rights,
        made=world.made,
    )
    if all(step.name in USERS for step in plan.steps):
        for slurm in world.slurms.values():
            slurm.remembered_after = REMEMBERED_S
    world.declare(plan.replicas)
    if plan.layout.left:
        await asyncio.sleep(RUNS_S)
        world.take_over()
    world.operator()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    lockouts = Lockouts(world)
    rekeyed = any(step.name in rotation.FAMILY.happenings for step in plan.steps)
    watching = asyncio.create_task(lockouts.run()) if rekeyed else None
    async with asyncio.TaskGroup() as group:
        for step in plan.steps:
            await asyncio.sleep(max(0.0, begun + step.at - loop.time()))
            _happen(world, step, group)
    await asyncio.sleep(max(0.0, until - loop.time()))
    world.heal()
    healed = outcome.healed_at = loop.time()
    wrong = _missing(world)
    while wrong and loop.time() < healed + patience:
        await asyncio.sleep(2.0)
        wrong = _missing(world)
    outcome.healed_after = loop.time() - healed
    outcome.broken += [f"at the end: {one}" for one in wrong]
    # What is under way now, such as the last event, may end.
    await asyncio.sleep(120.0)
    written = len(world.writes)
    await asyncio.sleep(silence)
    loud = served.unasked(world, world.writes[written:], silence)
    outcome.broken += [f"not silent: {one}" for one in loud][:3]
    outcome.broken += [f"after silence: {one}" for one in _missing(world) if not wrong]
    if watching is not None:
        watching.cancel()
    outcome.broken += lockouts.broken
    outcome.broken += partitioned.broken(world)
    if isinstance(world, NebiusWorld) and world.neighbours:
        outcome.broken += [one for other in world.neighbours for one in other.wrong()]
        outcome.broken += mixed_up(world.api_server)
    outcome.declared, outcome.kept = world.declared(), expected.owned(world)
    for process in list(world.processes):
        await world.crash(process)
    return outcome


def _happen(world: World, step: Step, group: asyncio.TaskGroup) -> None:
    waits = HAPPENINGS[step.name].run(world, *step.values)
    if waits is not None:
        group.create_task(waits)
