"""One partition of a thousand nodes is changed: one call, no reconfigure, slurmctld answers on.

The nodes have no slurmd of their own (State=EXTERNAL): what counts is slurmctld's tables.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

from e2e_kit import manifests
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

MANY = 1000
CHANGES = 5
CALLS = re.compile(
    r"^\s*(REQUEST_UPDATE_PARTITION|REQUEST_RECONFIGURE)\s.*count:(\d+)", re.MULTILINE
)


def called(cluster: Cluster) -> dict[str, int]:
    """How often slurmctld was asked to change a partition, and to reconfigure."""
    return {name: int(count) for name, count in CALLS.findall(cluster.run("sdiag"))}


def test_a_partition_of_a_thousand_nodes_is_changed_by_one_call(
    clusters: Callable[[str], Cluster], figure: Callable[[str], None]
) -> None:
    cluster = clusters("many")
    cluster.create(manifests.controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_idle("compute-0")
    cluster.until_ready("nodesets", "compute")
    cluster.until_ready("controllers", manifests.NAME)
    node = f"NodeName=many[1-{MANY}] CPUs=1 State=EXTERNAL Feature=compute"
    cluster.run("scontrol", "create", *node.split())
    wanted = f"TotalNodes={MANY + 1}"
    eventually("they are in the partition", lambda: wanted in shown(cluster), 60)

    before, answers, over = called(cluster), list[float](), threading.Event()

    def ask() -> None:
        while not over.is_set():
            began = time.monotonic()
            cluster.run("sinfo", "-h", "-o", "%D %t")
            answers.append(time.monotonic() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    took: list[float] = []
    try:
        for minutes in range(11, 11 + CHANGES):
            config = f"Default=YES MaxTime={minutes}"
            began = time.monotonic()
            cluster.apply(manifests.nodeset(1, partition={"enabled": True, "config": config}))
            want = f"MaxTime=00:{minutes}:00"
            eventually(f"partition compute has {want}", lambda w=want: w in shown(cluster), 60)
            took.append(time.monotonic() - began)
            cluster.until_ready("controllers", manifests.NAME)
    finally:
        over.set()
        asking.join()
    after = called(cluster)
    updates = "REQUEST_UPDATE_PARTITION"
    assert after.get(updates, 0) - before.get(updates, 0) == CHANGES
    assert after.get("REQUEST_RECONFIGURE", 0) == before.get("REQUEST_RECONFIGURE", 0)
    assert wanted in shown(cluster)
    figure(
        f"a partition of {MANY} nodes: changed in {max(took):.1f} s at most, `kubectl apply` and "
        f"`kubectl exec` included; `sinfo` meanwhile {max(answers):.1f} s at most"
    )


def shown(cluster: Cluster) -> str:
    """What slurmctld says of the partition."""
    return cluster.run("scontrol", "--oneliner", "show", "partition", "compute")
