"""Many plans, over all cores. What comes of a seed does not depend on where it is played."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context, parent_process

from fault_plans import logs as quiet
from fault_plans.hybrid import external_of
from fault_plans.nebius import nebius_left_of, nebius_of
from fault_plans.plan import Plan
from fault_plans.play import beside_its_twin, plan_of, play
from fault_plans.tiny import tiny_of
from fault_plans.together import together_of

LONG_SILENCE_S, SHORT_SILENCE_S = 600.0, 60.0
TWIN_EACH = 10
"""Of so many plans one is played again without its faults."""
LONG_EACH = 10
"""Of so many plans one is watched for the long time in which all that is periodic happens."""
KINDS = {
    "usual": plan_of,
    "external": external_of,
    "tiny": tiny_of,
    "nebius": nebius_of,
    "nebius-left": nebius_left_of,
    "together": together_of,
}
"""Plans by what there is: clusters as usual, with an external slurmctld, with the tiny API,
of `slurm.nebius.ai`, such that soperator left, and several of them in one namespace."""
NICE = 10
"""Niceness of the processes that play."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one seed."""

    seed: int
    broken: tuple[str, ...]
    digest: str
    """A hash of all writes and their times: equal for equal runs."""
    cpu: float
    """Seconds of CPU."""
    kind: str = "usual"
    """Of the plan, one of KINDS."""

    def __str__(self) -> str:
        told = "\n".join(f"  BROKEN {one}" for one in self.broken)
        plan = plan_for(self.seed, self.kind)
        return f"{plan}\n{told}\n  replay: {replay(self.seed, self.kind)}"


def plan_for(seed: int, kind: str) -> Plan:
    """The plan of a seed, of one of KINDS."""
    return KINDS[kind](seed)


def replay(seed: int, kind: str = "usual") -> str:
    """The command that plays one plan again."""
    flag = "" if kind == "usual" else f" --{kind}"
    return f"cd tests && python -m fault_plans --seed {seed} --count 1{flag}"


def silence_of(seed: int) -> float:
    """Seconds without any write that are waited for at the end of a seed's plan."""
    return LONG_SILENCE_S if seed % LONG_EACH == 0 else SHORT_SILENCE_S


def play_one(seed: int, silence: float | None = None, kind: str = "usual") -> Played:
    """Play the plan of a seed."""
    began = time.process_time()
    plan = plan_for(seed, kind)
    outcome = play(plan, silence=silence_of(seed) if silence is None else silence)
    if seed % TWIN_EACH == 0 and not outcome.broken:
        outcome.broken += beside_its_twin(outcome)
    taken = time.process_time() - began
    return Played(seed, tuple(outcome.broken), outcome.digest, taken, kind)


def play_all(
    seeds: Iterable[int],
    *,
    workers: int = 0,
    silence: float | None = None,
    kind: str = "usual",
) -> Iterator[Played]:
    """Play the plans of these seeds, in order, on so many cores (0: all there are)."""
    wanted = tuple(seeds)
    with _pool(workers or cores()) as pool:
        yield from pool.map(play_one, wanted, repeat(silence), repeat(kind), chunksize=4)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def _pool(workers: int) -> Generator[ProcessPoolExecutor]:
    # Spawned, not forked: a test run has threads, and a fork would take their locks along.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Whoever plays thousands does something else meanwhile.
    os.nice(max(0, NICE - os.nice(0)))
    quiet.configure(show=False)
    gc.freeze()


def _end_with_parent() -> None:
    """Without whoever has the results there is nobody to play for; a kill tells nobody."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
