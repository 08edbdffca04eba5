"""A cluster of a thousand nodes is changed: a partition by one call, another key by a reconfigure.

It has room for more nodes than were declared first.

The nodes have no slurmd of their own (State=EXTERNAL): what counts is slurmctld's tables.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually
from penstock.local.errors import LocalError

MANY = 1000
ROOM = 1024
"""Nodes for which every cluster has room."""
CHANGES = 5
LAST = 15
"""The minutes of the last change; two digits each."""
CALLS = re.compile(
    r"^\s*(REQUEST_UPDATE_PARTITION|REQUEST_RECONFIGURE)\s.*count:(\d+)", re.MULTILINE
)


def config_of(minutes: int) -> str:
    """The keys of the partition."""
    return f"Default=YES MaxTime={minutes}"


def called(cluster: Cluster) -> dict[str, int]:
    """How often slurmctld was asked to change a partition, and to reconfigure."""
    return {name: int(count) for name, count in CALLS.findall(cluster.run("sdiag"))}


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("many")
    cluster.create(manifests.controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_idle("compute-0")
    cluster.until_ready("nodesets", "compute")
    cluster.until_ready("controllers", manifests.NAME)
    add(cluster, f"many[1-{MANY}]")
    wanted = f"TotalNodes={MANY + 1}"
    eventually("they are in the partition", lambda: wanted in shown(cluster), 60)
    return cluster


def test_a_partition_of_a_thousand_nodes_is_changed_by_one_call(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    """S145, S148, feature rows 5 and 26: no slurmd reloads its files for it."""
    wanted = f"TotalNodes={MANY + 1}"
    started, reloads = slurmctld(cluster), reloaded(cluster)
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
        for minutes in range(LAST + 1 - CHANGES, LAST + 1):
            own = {"enabled": True, "config": config_of(minutes)}
            began = time.monotonic()
            cluster.apply(manifests.nodeset(1, partition=own))
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
    assert (slurmctld(cluster), reloaded(cluster)) == (started, reloads)
    figure(
        f"a partition of {MANY} nodes: changed in {max(took):.1f} s at most, `kubectl apply` and "
        f"`kubectl exec` included; `sinfo` meanwhile {max(answers):.1f} s at most"
    )
    began = time.monotonic()
    cluster.apply(manifests.controller(f"{manifests.EXTRA_CONF}SchedulerTimeSlice=41\n"))
    config = ("scontrol", "show", "config")
    eventually("the key is in effect", lambda: "= 41 sec" in cluster.run(*config), 60)
    figure(f"another key of the same cluster: {time.monotonic() - began:.1f} s, likewise")
    assert slurmctld(cluster) == started
    assert {wanted, f"MaxTime=00:{LAST}:00"} <= set(shown(cluster).split())
    conf = cluster.get("configmaps", f"{manifests.NAME}-config")["data"]["slurm.conf"]
    assert "SchedulerTimeSlice=41\n" in conf
    assert f"PartitionName=compute Nodes=compute {config_of(LAST)}\n" in conf


def reloaded(cluster: Cluster) -> int:
    """How often the slurmd of the worker was told to read its files."""
    return cluster.kubectl("logs", "compute-0", "-c", "slurmd", "--tail=-1").count("econfig")


def test_there_is_room_for_all_workers_that_are_declared(cluster: Cluster) -> None:
    """D29: by a reconfigure, and it stays; a user's own number is taken in the same way."""
    before = slurmctld(cluster)
    more = ROOM - MANY
    with pytest.raises(LocalError):
        add(cluster, f"more[1-{more}]")
    # No pod is made while a Secret is not there, and yet all of them are declared.
    absent = {"enabled": True, "sssdConfRef": {"name": "absent", "key": "sssd.conf"}}
    cluster.apply(manifests.nodeset(ROOM + 1, "big", ssh=absent, partition={"enabled": False}))
    eventually("there is room", lambda: room(cluster) == 2 * ROOM, 60)
    cluster.kubectl("delete", "nodeset", "big", "--timeout=60s")
    cluster.until_ready("controllers", manifests.NAME)
    add(cluster, f"late[1-{more}]")
    assert room(cluster) == 2 * ROOM
    cluster.apply(manifests.controller(manifests.EXTRA_CONF + "MaxNodeCount=3000\n"))
    eventually("the user's number counts", lambda: room(cluster) == 3000, 60)
    assert slurmctld(cluster) == before


def add(cluster: Cluster, names: str) -> None:
    """Add nodes without a slurmd. Raises LocalError where there is no room."""
    node = f"NodeName={names} CPUs=1 State=EXTERNAL Feature=compute"
    cluster.run("scontrol", "create", *node.split())


def room(cluster: Cluster) -> int:
    """MaxNodeCount as slurmctld has it."""
    lines = cluster.run("scontrol", "show", "config").splitlines()
    return int(next(line for line in lines if line.startswith("MaxNodeCount")).split()[-1])


def shown(cluster: Cluster) -> str:
    """What slurmctld says of the partition."""
    return cluster.run("scontrol", "--oneliner", "show", "partition", "compute")
