"""From the API server's answer to a change to the moment at which `scontrol show` has it.

The reference is Slurm's own way in the same run: `scontrol update` and `scontrol reconfigure` in
slurmctld's pod, until the same question is answered by the new value.
"""

from __future__ import annotations

import json
import math
import time

from bench import quickstart
from bench.config import many_slurmds
from bench.config.rest import Cluster
from bench.config.until_seen import until_seen
from bench.figures import Figure, Result
from bench.patch import merge
from bench.quickstart import NAMESPACE, POD
from bench.registry import Bench, Settings
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.local.components import Size
from penstock.local.node import Node
from penstock.local.progress import step

MANY = 98
"""Beside the two workers: a hundred nodes in all."""
PARTITION = ("scontrol show partition compute", "MaxTime=[^ ]*")
KEY = ("scontrol show config", "^MessageTimeout *= *[0-9]*")


def run(given: Settings) -> Result:
    """Measure with the two workers of the quickstart."""
    return _with(0, given)


def run_many(given: Settings) -> Result:
    """Measure with many more slurmds."""
    return _with(MANY, given)


TITLE = "a changed partition and a changed key until Slurm has them"
BENCH = Bench("config", f"{TITLE}, 2 nodes", 20, Size.NODE, run)
MANY_BENCH = Bench("config-many", f"{TITLE}, {2 + MANY} nodes", 20, Size.NODE, run_many)


def _with(more: int, given: Settings) -> Result:
    target, _ = quickstart.prepared(given.node)
    node, documents = target.node, quickstart.documents()
    conf = next(one["spec"]["extraConf"] for one in documents if one["kind"] == "Controller")
    with quickstart.running(target, documents) as cluster:
        try:
            if more:
                with step(f"starting {more} more slurmds"):
                    many_slurmds.begin(node, NAMESPACE, "compute-0", more)
                    cluster.until_idle(2 + more)
            return _measured(cluster, given.runs, conf, f"{2 + more} nodes")
        finally:
            node.kubectl("delete", "pod", many_slurmds.NAME, "-n", NAMESPACE, "--ignore-not-found")


def _measured(cluster: Cluster, runs: int, conf: str, size: str) -> Result:
    node = cluster.node
    before, numbers = _restarts(node), range(11, 11 + runs)
    with step(f"partition, {size}"):
        by_hand = until_seen(
            cluster, numbers, PARTITION, lambda n: _by_scontrol(cluster, n), "MaxTime=00:{}:00"
        )
        ours = until_seen(
            cluster, numbers, PARTITION, lambda n: _by_nodeset(node, n), "MaxTime=01:{}:00"
        )
        counted = _sdiag(cluster)
    with step(f"key, {size}"):
        key = until_seen(
            cluster, numbers, KEY, lambda n: _by_controller(node, conf, n), "MessageTimeout={}"
        )
        reconfigure = tuple(_reconfigure(cluster) for _ in range(5))
    figures = (
        *_spread(f"partition, {size}", ours),
        Figure(f"scontrol update partition, {size}", "s", tuple(by_hand)),
        *_spread(f"reloadable key, {size}", key),
        Figure(f"scontrol reconfigure, {size}", "s", reconfigure),
    )
    restarted = _restarts(node) - before
    return Result(figures, f"{size}: slurmctld restarted {restarted} times; {counted}")


def _spread(name: str, values: list[float]) -> list[Figure]:
    ordered = sorted(values)
    tails = {share: ordered[math.ceil(share / 100 * len(ordered)) - 1] for share in (50, 95, 99)}
    return [
        Figure(name, "s", tuple(values)),
        *(Figure(f"{name}, p{share}", "s", (value,)) for share, value in tails.items()),
    ]


def _by_scontrol(cluster: Cluster, number: int) -> float:
    began = time.time()
    cluster.run(f"scontrol update partitionname=compute MaxTime={number}")
    return began


def _by_nodeset(node: Node, number: int) -> float:
    partition = {"enabled": True, "config": f"Default=YES MaxTime={60 + number}"}
    return merge(node, NODESETS, NAMESPACE, "compute", {"spec": {"partition": partition}})


def _by_controller(node: Node, conf: str, number: int) -> float:
    body = {"spec": {"extraConf": f"{conf}MessageTimeout={number}\n"}}
    return merge(node, CONTROLLERS, NAMESPACE, "slurm", body)


def _reconfigure(cluster: Cluster) -> float:
    cluster.until_rest()
    began = time.monotonic()
    cluster.run("scontrol reconfigure")
    return time.monotonic() - began


def _sdiag(cluster: Cluster) -> str:
    lines = cluster.run("sdiag").splitlines()
    shown = [" ".join(one.split()[:3]) for one in lines if "PARTITION" in one and "UPDATE" in one]
    shown += [" ".join(one.split()[:3]) for one in lines if "RECONFIGURE" in one]
    return f"sdiag after the partitions: {'; '.join(shown) or 'none of either'}"


def _restarts(node: Node) -> int:
    pod: Json = json.loads(node.kubectl("get", "pod", *POD[:3], "-o", "json"))
    return sum(
        one["restartCount"] for one in pod["status"]["containerStatuses"] if one["name"] == POD[4]
    )
