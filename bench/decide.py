"""CPU of one decision about a fleet, without a cluster: one pod changed, or all seen first."""

from __future__ import annotations

import dataclasses
import time

import msgspec

from bench.figures import Figure, Result
from bench.registry import Bench, Settings
from bench.settled import NOW, Shape, fleet
from penstock.decide.auth.key_rotation import RotationView, step
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.slurm.auth.key_rotation import Phase, Ring

SIZES = (10, 100, 1000, 5000)


def run(given: Settings) -> Result:
    """Measure."""
    changed: dict[str, list[float]] = {}
    first: dict[str, list[float]] = {}
    cases = [(size, Shape.PLAIN) for size in SIZES]
    cases += [(SIZES[-1], shape) for shape in Shape if shape is not Shape.PLAIN]
    for size, shape in cases:
        name = f"{size}{shape.value and f', {shape.value}'}"
        view = fleet(size, shape)
        for _ in range(given.runs):
            quiet = PlanCache()
            first.setdefault(name, []).append(_milliseconds(view, quiet))
            changed.setdefault(name, []).append(_milliseconds(_one_changed(view), quiet))
    steps = tuple(_key_step(SIZES[-1]) for _ in range(given.runs))
    figures = [
        *(
            Figure(f"{name}: one pod changed", "ms", tuple(taken))
            for name, taken in changed.items()
        ),
        Figure(f"{SIZES[-1]}: one step of a changed key", "ms", steps),
        *(Figure(f"{name}: all seen first", "ms", tuple(taken)) for name, taken in first.items()),
    ]
    return Result(tuple(figures), "CPU milliseconds; the number is that of the workers.")


BENCH = Bench("decide", "one decision about a NodeSet, CPU only", 10, None, run)


def _milliseconds(view: WorkerSetView, plan_cache: PlanCache) -> float:
    began = time.process_time()
    decided = plan(view, plan_cache)
    taken = time.process_time() - began
    if decided.actions:
        raise AssertionError(f"not settled: {decided.actions[:3]}")
    return 1000 * taken


def _key_step(size: int) -> float:
    """Plan all workers in the middle of a change of slurm.key."""
    starts = {f"worker-{number}": int(NOW) + 1 for number in range(size)}
    ring = Ring(bytes(32), next=bytes(range(32)), phase=Phase.SWITCH, since=NOW, used=True)
    view = RotationView(NOW + 10, ring.next, applied=True, starts=starts)
    began = time.process_time()
    found = step(ring, view)
    taken = time.process_time() - began
    if found.ring.phase is not Phase.FORGET:
        raise AssertionError(f"it waits: {found.words}")
    return 1000 * taken


def _one_changed(view: WorkerSetView) -> WorkerSetView:
    pod = msgspec.structs.replace(view.pods[-1])
    return dataclasses.replace(view, pods=(*view.pods[:-1], pod))
