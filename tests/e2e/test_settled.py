"""A settled cluster is silent, and a new operator process finds nothing to do in it.

Writes are counted at the API server's audit log, whatever the operator says of itself. Renewals of
its Lease are the one exception: they are how a second process knows that the first one lives, and
their number depends on time alone, so they are counted apart.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from e2e_kit import manifests
from e2e_kit.api import restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import USER, Site, Write, eventually
from penstock.controllers.registry import SERVED_APIS
from penstock.local import install

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("PENSTOCK_SETTLED_SECONDS") or (300 if os.environ.get("CI") else 60))
"""How long nothing may be written: five minutes where it must be seen, one where people wait."""
QUIET_S = 15.0
"""Without a write for so long, what was begun has ended: the mirror's slowest pace is 5 s."""
LEASE_S = 2.0
"""A Lease is renewed no more often than this."""
KINDS = ("controllers", "restapis", "nodesets", "loginsets")


@pytest.fixture(scope="module")
def cluster(site: Site, clusters: Callable[[str], Cluster]) -> Cluster:
    """The quickstart after a job on both nodes; no other cluster is there."""
    cluster = clusters("settled")
    quickstart = install.documents("examples/quickstart.yaml")
    cluster.apply(manifests.namespace(cluster.namespace), *quickstart)
    for resource, name in zip(KINDS, ("slurm", "slurm", "compute", "login"), strict=True):
        cluster.until_ready(resource, name)
    job = cluster.submit("srun hostname", "--nodes=2", "--output=/dev/null")
    assert cluster.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    eventually("clusters of other tests are gone", lambda: _only(site, cluster.namespace), 180)
    until_quiet(site)
    return cluster


def _only(site: Site, namespace: str) -> bool:
    found = (one for resource in KINDS for one in site.api.list(resource, ""))
    return all(one["metadata"]["namespace"] == namespace for one in found)


def until_quiet(site: Site) -> None:
    """Wait until the operator has written nothing for a while; its writes say why it has not."""
    began = datetime.now(UTC)

    def quiet() -> bool:
        since = datetime.now(UTC) - timedelta(seconds=QUIET_S)
        return since >= began and not site.writes(since)

    eventually("the operator writes no more", quiet, 120, every=1)


def lease_renewals(site: Site, since: datetime) -> int:
    """How often the operator wrote its Lease since then."""
    with site.node.audit_log.open() as log:
        events = [json.loads(line) for line in log if USER in line and '"leases"' in line]
    return sum(1 for e in events if datetime.fromisoformat(e["requestReceivedTimestamp"]) >= since)


def rpcs(cluster: Cluster) -> int:
    """Calls that slurmctld counted for the user that the operator is to Slurm."""
    users = cluster.rest("GET", "diag/")["statistics"]["rpcs_by_user"]
    return sum(one["count"] for one in users if one["user"] == "slurm")


def state(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod."""
    pods = cluster.pods("").items()
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in pods}


@pytest.mark.timeout(SECONDS + 600)
def test_a_settled_cluster_makes_no_write_and_few_slurm_calls(site: Site, cluster: Cluster) -> None:
    """D25."""
    before = state(cluster)
    calls, counted = site.total("penstock_slurm_requests_total"), rpcs(cluster)
    since, began = datetime.now(UTC), time.monotonic()
    while (left := began + SECONDS - time.monotonic()) > 0:
        # A write ends the wait: what it was is known now.
        time.sleep(min(left, 5))
        assert site.writes(since) == []
    took = time.monotonic() - began
    calls = site.total("penstock_slurm_requests_total") - calls
    counted = rpcs(cluster) - counted
    renewals = lease_renewals(site, since)
    print(
        f"\nin {took:.0f} s: 0 writes, {renewals} renewals of the Lease, "
        f"{calls / took:.2f} Slurm calls a second by the operator's metrics, "
        f"{counted / took:.2f} by slurmctld's count"
    )
    assert 0 < calls < took
    assert 0 < counted < took
    # The operator has one Lease for each API group.
    assert renewals <= len(SERVED_APIS) * (took / LEASE_S + 1)
    assert state(cluster) == before


def test_a_new_operator_finds_nothing_to_write(site: Site, cluster: Cluster) -> None:
    """D25."""
    before = state(cluster)
    old = site.operator_pod()["metadata"]
    since = datetime.now(UTC)
    site.kubectl("delete", "pod", old["name"], "-n", old["namespace"])
    eventually("another operator", lambda: site.operator_pod()["metadata"]["uid"] != old["uid"])

    def asks() -> bool:
        return site.total("penstock_slurm_requests_total") >= 4

    eventually("it leads and has asked Slurm", asks)
    time.sleep(QUIET_S)
    assert _told(site.writes(since)) == []
    assert state(cluster) == before


def _told(writes: list[Write]) -> list[str]:
    return [f"{one.verb} {one.resource} {one.name} ({one.code})" for one in writes]
