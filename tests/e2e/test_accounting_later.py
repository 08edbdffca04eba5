"""Accounting that comes to a cluster that runs, and a database that is replaced.

Scenarios S004, S072, S169.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json, condition
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

LONG_S = 180.0
KEYS = {
    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
}
DATABASE = "records"
KEEPS_ID = pytest.mark.needs_slurm("25.11", "slurmctld keeps its ClusterID with another database")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster(site: Site, clusters: Callable[[str], Cluster]) -> Cluster:
    """A cluster that works, without accounting."""
    mariadb.load(site.node)
    found = clusters("later")
    found.create(
        manifests.controller(persistence={"enabled": True}),
        manifests.restapi(),
        manifests.nodeset(1),
        mariadb.password("database", "one"),
    )
    found.until_idle("compute-0", timeout=LONG_S)
    found.until_ready("controllers", manifests.NAME, LONG_S)
    return found


def accounting() -> dict[str, object]:
    storage = {
        "host": mariadb.NAME,
        "database": DATABASE,
        "username": DATABASE,
        "passwordKeyRef": {"name": "database", "key": "password"},
    }
    return manifests.of("Accounting", "records", **KEYS, storageConfig=storage)


def states(cluster: Cluster) -> dict[str, str]:
    """States of the first jobs in the database, by id; empty while slurmdbd cannot be asked."""
    said = cluster.run("sh", "-c", "sacct -X -n -P -j 1,2,3,4,5,6,7,8 -o JobID,State || true")
    return dict(line.split("|") for line in said.splitlines() if "|" in line)


def registered(cluster: Cluster) -> bool:
    """Whether slurmdbd has the cluster, with where its slurmctld is."""
    said = cluster.run("sh", "-c", "sacctmgr -n -P show cluster format=cluster,controlhost || true")
    return any(line.partition("|")[0] == "test" and line.partition("|")[2] for line in said.split())


def shows(cluster: Cluster, status: str, reason: str) -> None:
    """Wait for the Controller's condition AccountingRegistered."""

    def found(objects: dict[str, Json]) -> bool:
        one = condition(objects[manifests.NAME], "AccountingRegistered")
        return (one.get("status"), one.get("reason")) == (status, reason)

    cluster.until("controllers", found, f"AccountingRegistered is {status}, {reason}", LONG_S)


@KEEPS_ID
def test_accounting_that_comes_later_registers_and_loses_no_record(cluster: Cluster) -> None:
    """S004, S169: all at once, as `helm upgrade` does it; the database is there a while later."""
    began = slurmctld(cluster)
    running = cluster.submit("sleep 8", "--output=/dev/null", "--mem=50")
    cluster.until_job(running, "RUNNING")
    cluster.apply(accounting())
    cluster.patch("controllers", manifests.NAME, {"spec": {"accountingRef": {"name": "records"}}})
    eventually(
        "slurmctld keeps records",
        lambda: "slurmdbd" in cluster.run("sh", "-c", "scontrol show config || true"),
        LONG_S,
    )
    meanwhile = cluster.submit("true", "--output=/dev/null", "--mem=50")
    cluster.until_job(meanwhile, "COMPLETED")
    cluster.until_job(running, "COMPLETED")
    cluster.apply(*mariadb.objects(cluster, {DATABASE: "one"}))
    eventually("slurmdbd has the cluster", lambda: registered(cluster), LONG_S, every=1)
    ended = {str(running): "COMPLETED", str(meanwhile): "COMPLETED"}
    eventually(
        "both jobs are recorded", lambda: ended.items() <= states(cluster).items(), LONG_S, every=1
    )

    shows(cluster, "True", "Registered")
    assert slurmctld(cluster) == began


@KEEPS_ID
def test_a_database_that_is_replaced_by_an_empty_one_gets_the_cluster_again(
    cluster: Cluster,
) -> None:
    """slurmdbd runs on; what it was told before is gone with the database, what comes is kept."""
    began = slurmctld(cluster)
    mariadb.sql(cluster, f"DROP DATABASE {DATABASE}; CREATE DATABASE {DATABASE}")
    cluster.kubectl("delete", "pod", "records-accounting-0")
    job = cluster.submit("true", "--output=/dev/null", "--mem=50")
    cluster.until_job(job, "COMPLETED")
    cluster.until_ready("accountings", "records", LONG_S)
    eventually("slurmdbd has the cluster", lambda: registered(cluster), LONG_S, every=1)
    after = cluster.submit("true", "--output=/dev/null", "--mem=50")
    ended = {str(job): "COMPLETED", str(after): "COMPLETED"}
    eventually(
        "both jobs are recorded", lambda: ended.items() <= states(cluster).items(), LONG_S, every=1
    )
    assert slurmctld(cluster) == began


def test_a_database_of_the_operator_keeps_records_over_the_end_of_its_pod(
    cluster: Cluster,
) -> None:
    """S169: another Accounting without `storageConfig`; slurmctld changes over to it."""
    began, database = slurmctld(cluster), "own-accounting-db"
    embedded = {"image": mariadb.IMAGE, "imagePullPolicy": "Never", "storage": {"size": "1Gi"}}
    cluster.apply(manifests.of("Accounting", "own", **KEYS, embeddedDatabase=embedded))
    cluster.until_ready("accountings", "own", LONG_S)
    cluster.patch("controllers", manifests.NAME, {"spec": {"accountingRef": {"name": "own"}}})
    eventually(
        "slurmctld uses it",
        lambda: "own-accounting" in cluster.run("sh", "-c", "scontrol show config || true"),
        LONG_S,
    )
    eventually("slurmdbd has the cluster", lambda: registered(cluster), LONG_S, every=1)
    first = cluster.submit("true", "--output=/dev/null", "--mem=50")
    ended = {str(first): "COMPLETED"}
    eventually("it is recorded", lambda: ended.items() <= states(cluster).items(), LONG_S, every=1)
    old = cluster.get("pods", f"{database}-0")["metadata"]["uid"]
    cluster.kubectl("delete", "pod", f"{database}-0")
    cluster.until(
        "pods",
        lambda pods: f"{database}-0" in pods and pods[f"{database}-0"]["metadata"]["uid"] != old,
        "another database pod",
        LONG_S,
    )
    second = cluster.submit("true", "--output=/dev/null", "--mem=50")
    ended[str(second)] = "COMPLETED"
    eventually(
        "both jobs are recorded", lambda: ended.items() <= states(cluster).items(), LONG_S, every=1
    )
    cluster.until_ready("accountings", "own", LONG_S)
    assert slurmctld(cluster) == began
