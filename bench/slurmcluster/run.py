"""A SlurmCluster beside the quickstart: start, more workers, a changed partition, a job step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager

from bench import machine, plain, quickstart
from bench.config.asking import asking
from bench.config.rest import TIMEOUT_S, Cluster
from bench.config.until_seen import until_seen
from bench.figures import Result, breakdown
from bench.first_idle import FIRST_IDLE
from bench.patch import merge
from bench.registry import Bench, Settings
from bench.slurmcluster import job_step, lifetime
from bench.slurmcluster.measured import Measured
from bench.slurmcluster.side import WORKERS, Change, Side, nebius, slinky
from penstock.local.components import Size
from penstock.local.node import Node
from penstock.local.progress import step

MORE = 2 * WORKERS
CHANGES = 3
"""Of a partition, in each run."""
# A group, so that all of it has the standard input that is given to it.
_IDLE = ("{ sinfo -h -N -t idle -o %N | sort -u | wc -l; }", "[0-9]*")


def run(given: Settings) -> Result:
    """Measure."""
    target, images = quickstart.prepared(given.node)
    target.load_jail()
    sides, measured = (slinky(images), nebius(images)), Measured()
    node = target.node
    try:
        _clear(node, sides)
        for number in range(1, given.runs + 1):
            with step(f"quickstart, {number} of {given.runs}"):
                _quickstart(node, sides[0], measured)
            with step(f"SlurmCluster, {number} of {given.runs}"):
                _slurmcluster(node, sides[1], measured)
    finally:
        _clear(node, sides)
    return Result(measured.figures(), _notes(measured))


BENCH = Bench("slurmcluster", "a SlurmCluster beside the quickstart", 3, Size.NODE, run)


def _quickstart(node: Node, side: Side, measured: Measured) -> None:
    pods = plain.until_ready(node, side.images)
    measured.add(f"plain pods of the {side.title}", "s", pods)
    node.kubectl("create", "namespace", side.namespace)
    _start(node, side, measured, side.title, pods)
    _changes(side.cluster(node), side, measured)
    lifetime.remove(node, side)


def _slurmcluster(node: Node, side: Side, measured: Measured) -> None:
    pods = plain.until_ready(node, side.images)
    measured.add(f"plain pods of the {side.title}", "s", pods)
    node.kubectl("create", "namespace", side.namespace)
    cluster = side.cluster(node)
    _start(node, side, measured, f"{side.title}, empty jail", pods)
    cluster.until_idle(WORKERS)
    lifetime.stop(node, side)
    _start(node, side, measured, f"{side.title}, filled jail", pods)
    _changes(cluster, side, measured)
    lifetime.remove(node, side)


def _changes(cluster: Cluster, side: Side, measured: Measured) -> None:
    """What is changed of a running cluster, and for a jail a step of a job."""
    cluster.until_idle(WORKERS)
    _partition(cluster, side, measured)
    if side.has_jail:
        cluster.until_rest()
        with _beside(measured, "job steps"):
            measured.pairs += job_step.measure(cluster)
        cluster.until_idle(WORKERS)
    _scale(cluster, side, measured)


def _start(node: Node, side: Side, measured: Measured, title: str, pods: float) -> None:
    with _beside(measured, title):
        moments = lifetime.start(node, side)
    measured.add_start(title, moments)
    measured.add(f"{title}: {FIRST_IDLE}", "s", moments[FIRST_IDLE])
    measured.add(f"{title}: first idle worker over plain pods", "x", moments[FIRST_IDLE] / pods)


def _partition(cluster: Cluster, side: Side, measured: Measured) -> None:
    numbers = range(11, 11 + CHANGES)
    question = (f"scontrol show partition {side.partition}", "MaxTime=[^ ]*")

    def by_hand(number: int) -> float:
        began = time.time()
        cluster.run(f"scontrol update partitionname={side.partition} MaxTime={number}")
        return began

    def by_patch(number: int) -> float:
        return _merge(cluster, side.max_time(60 + number))

    with _beside(measured, f"{side.title}, partition"):
        hand = until_seen(cluster, numbers, question, by_hand, "MaxTime=00:{}:00")
        ours = until_seen(cluster, numbers, question, by_patch, "MaxTime=01:{}:00")
    for name, values in (("changed partition", ours), ("scontrol update partition", hand)):
        for value in values:
            measured.add(f"{side.title}: {name}", "s", value)
    ratio = statistics.median(ours) / statistics.median(hand)
    measured.add(f"{side.title}: changed partition over scontrol update", "x", ratio)


def _scale(cluster: Cluster, side: Side, measured: Measured) -> None:
    more = MORE - WORKERS
    pods = plain.until_ready(cluster.node, [side.worker_image] * more)
    cluster.until_rest()
    with (
        _beside(measured, f"{side.title}, more workers"),
        asking(cluster.node, cluster.pod, *_IDLE) as answers,
    ):
        answers.until(str(WORKERS), timeout=TIMEOUT_S)
        answered = _merge(cluster, side.size(MORE))
        answers.until(str(MORE), timeout=TIMEOUT_S)
    took = answers.moments[str(MORE)] - answered
    title = f"{side.title}: {WORKERS} to {MORE} workers idle"
    measured.add(title, "s", took)
    measured.add(f"{more} plain pods of its worker's image ({side.title})", "s", pods)
    measured.add(f"{title} over plain pods", "x", took / pods)


def _merge(cluster: Cluster, change: Change) -> float:
    return merge(cluster.node, change.resource, cluster.namespace, change.name, change.body)


def _clear(node: Node, sides: tuple[Side, ...]) -> None:
    plain.remove(node)
    for side in sides:
        lifetime.remove(node, side)


@contextmanager
def _beside(measured: Measured, what: str) -> Generator[None]:
    """Note what else the machine did meanwhile."""
    load, waited, began = machine.load(), machine.waited(), time.monotonic()
    yield
    took = time.monotonic() - began
    share = (machine.waited() - waited) / took
    measured.load.append(f"{what} {load:.1f} and {share:.0%} of {took:.0f} s")


def _notes(measured: Measured) -> str:
    tables = [f"{title}\n{breakdown(runs)}" for title, runs in measured.starts.items()]
    words = "Load before each part, and the share of it in which some process waited for a core: "
    return "\n\n".join([*tables, words + ", ".join(measured.load)])
