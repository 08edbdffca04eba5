"""A time-sliced partition that is declared anew is changed as `scontrol update` changes it.

Node bitmap, TRES, gang scheduler and select plugin follow at once; no reconfigure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

GANG = "PreemptMode=GANG\nSchedulerTimeSlice=5\nSelectTypeParameters=CR_CPU\n"
FITS_S = 15.0
"""Within so long a pending job starts that fits: sooner than slurmctld looks by itself."""
RPCS = ("REQUEST_UPDATE_PARTITION", "REQUEST_RECONFIGURE")


def sliced(share: str, *nodes: str) -> Json:
    """A partition whose jobs take turns."""
    return {
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "Partition",
        "metadata": {"name": "sliced"},
        "spec": {
            "controllerRef": {"name": manifests.NAME},
            "nodes": list(nodes),
            "overSubscribe": share,
        },
    }


pytestmark = pytest.mark.needs_slurm(
    "26.05", "slurmrestd changes partitions, without a reconfigure"
)


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("gang")
    cluster.create(
        manifests.controller(manifests.EXTRA_CONF + GANG),
        manifests.restapi(),
        manifests.nodeset(2),
        sliced("FORCE:1", "compute-0"),
    )
    cluster.until_idle("compute-0", "compute-1")
    cluster.until_ready("partitions", "sliced")
    return cluster


def shown(cluster: Cluster) -> dict[str, str]:
    """`scontrol show partition` as a mapping."""
    words = cluster.run("scontrol", "--oneliner", "show", "partition", "sliced").split()
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def rpcs(cluster: Cluster) -> dict[str, int]:
    """How often slurmctld was asked to update a partition, and to reconfigure."""
    said = cluster.run("sdiag")
    found = ((name, re.search(rf"{name}\s.*count:(\d+)", said)) for name in RPCS)
    return {name: int(match[1]) if match else 0 for name, match in found}


def log(cluster: Cluster) -> list[str]:
    """What slurmctld has logged of changed partitions, without times and numbers."""
    said = cluster.kubectl("logs", "slurm-controller-0", "--all-containers", "--prefix=false")
    lines = [line for line in said.splitlines() if "update_part" in line]
    return [re.sub(r"^.*?(?:\] |slurmctld: )|usec=\d+|\d+", "", line).strip() for line in lines]


def job(cluster: Cluster, nodes: int) -> int:
    """One that takes whole nodes but for time slices, and runs until it is cancelled."""
    cpus = cluster.node("compute-0")["effective_cpus"]
    options = (f"--nodes={nodes}", f"--ntasks-per-node={cpus}", "--mem=1", "--output=/dev/null")
    return cluster.submit("sleep 600", "-p", "sliced", *options)


def change(
    cluster: Cluster, how: Callable[[], object], pending: int
) -> tuple[float, dict[str, int]]:
    """Make a change: seconds until a pending job had started, and the calls that it took."""
    before = rpcs(cluster)
    began = time.monotonic()
    how()
    cluster.until_job(pending, "RUNNING", "SUSPENDED", timeout=30)
    took = time.monotonic() - began
    after = rpcs(cluster)
    return took, {name: after[name] - before[name] for name in RPCS}


def test_a_declared_change_is_what_scontrol_does_and_waiting_jobs_start(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    """S147: by the calls of S025, and with the same words in slurmctld's log."""
    first, second, third = job(cluster, 1), job(cluster, 1), job(cluster, 1)
    cluster.until_job(first, "RUNNING")
    assert cluster.job(second)["JobState"] == "PENDING"

    lines = len(log(cluster))
    by_hand = ("scontrol", "update", "partitionname=sliced", "oversubscribe=force:2")
    took, calls = change(cluster, lambda: cluster.run(*by_hand), second)
    assert (took < FITS_S, calls) == (True, {RPCS[0]: 1, RPCS[1]: 0}), took
    yardstick = log(cluster)[lines:]
    assert cluster.job(third)["JobState"] == "PENDING"

    lines += len(yardstick)
    declared = sliced("FORCE:3", "compute-0")
    took, calls = change(cluster, lambda: cluster.apply(declared), third)
    assert (took < FITS_S, calls) == (True, {RPCS[0]: 1, RPCS[1]: 0}), took
    assert shown(cluster)["OverSubscribe"] == "FORCE:3"
    # Ours may name the nodes besides.
    same = {line for line in yardstick if "setting nodes" not in line}
    eventually("the log says the same", lambda: same <= set(log(cluster)[lines:]))

    # The gang scheduler has all three: each gets its turn, while the others are suspended.
    turns: set[int] = set()

    def each_had_one() -> bool:
        every = (first, second, third)
        turns.update(one for one in every if cluster.job(one)["JobState"] == "RUNNING")
        return turns == set(every)

    eventually("each job had its turn", each_had_one, 60)
    cluster.run("scancel", *(str(one) for one in (first, second, third)))

    # Another node: bitmap, TRES and the select plugin have it at once.
    wide = job(cluster, 2)
    assert cluster.job(wide)["JobState"] == "PENDING"
    assert ",node=1," in shown(cluster)["TRES"] + ","
    declared = sliced("FORCE:3", "compute-0", "+compute-1")
    took, calls = change(cluster, lambda: cluster.apply(declared), wide)
    assert took < FITS_S
    figure(f"a job that fits another node of its partition: started after {took:.1f} s (limit 5 s)")
    assert calls[RPCS[1]] == 0
    assert ",node=2," in shown(cluster)["TRES"] + ","
    assert cluster.job(wide)["NodeList"] == "compute-[0-1]"
    cluster.run("scancel", str(wide))
