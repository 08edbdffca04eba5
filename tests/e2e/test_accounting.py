"""Accounting with a real slurmdbd and a real MariaDB.

Scenarios S063, S072, S082, S169; fixture F14.

`PENSTOCK_OUTAGE_SECONDS` says how long the database is away; `600` is the promise of S169.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json, condition, restarts
from e2e_kit.changes import slurmctld
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

OUTAGE_S = float(os.environ.get("PENSTOCK_OUTAGE_SECONDS") or 20)
LONG_S = 180.0
PORT = 16819
POD = "records-accounting-0"
EXTRA_CONF = manifests.EXTRA_CONF + "AccountingStorageEnforce=limits,qos\n"
SECRET = f"{manifests.NAME}-auth-jwt"
KEYS = {
    "slurmKeyRef": {"name": SECRET, "key": "slurm.key"},
    "jwtKeyRef": {"name": SECRET, "key": "jwt.key"},
}
JOB = ("--output=/dev/null", "--mem=50")

pytestmark = pytest.mark.timeout(OUTAGE_S + 600)


@dataclass(frozen=True)
class Records:
    """A cluster `near` with its own slurmdbd; in `far` are another slurmdbd and the database."""

    near: Cluster
    far: Cluster

    def sacct(self, job: int, *options: str) -> str:
        """State of a job in the database; empty when it is not there."""
        command = ("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "State", *options)
        return self.near.run(*command).strip()

    def accounted(self, job: int, state: str = "COMPLETED") -> None:
        """Wait until the database has a job in a state."""
        eventually(f"sacct has job {job}", lambda: self.sacct(job) == state, LONG_S, every=1)

    def sacctmgr(self, *words: str) -> str:
        """Ask or change slurmdbd's records."""
        return self.near.run("sacctmgr", "-i", "-n", "-P", *words)

    def says(self, reason: str, words: str) -> str:
        """Wait until the Accounting is not ready for a reason, in these words."""

        def found(objects: dict[str, Json]) -> str | None:
            one = condition(objects["records"], "Ready") if "records" in objects else {}
            right = one.get("reason") == reason and words in one["message"]
            return one["message"] if right and one["status"] == "False" else None

        return self.near.until("accountings", found, f"{reason}: {words}", LONG_S)

    def done(self, *options: str) -> int:
        """Run a job to its end."""
        job = self.near.submit("true", *JOB, *options)
        assert self.near.until_job(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED"
        return job


def secret(name: str, **data: str) -> Json:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def password(text: str) -> Json:
    return secret("database", password=text)


def accounting(name: str, host: str, database: str, **spec: Any) -> Json:
    reference = {"name": "database", "key": "password"}
    storage = {"host": host, "database": database, "username": database}
    storage["passwordKeyRef"] = reference  # pyright: ignore[reportArgumentType]
    return manifests.of("Accounting", name, **KEYS, storageConfig=storage, **spec)


def records_of(near: Cluster, far: Cluster, extra_conf: str = "") -> Json:
    host = f"{mariadb.NAME}.{far.namespace}"
    meta = {"labels": {"tier": "records"}}
    more = {"extraConf": extra_conf} if extra_conf else {}
    return accounting(
        "records", host, "near", service={"port": PORT}, template={"metadata": meta}, **more
    )


@pytest.fixture(scope="module")
def records(site: Site, clusters: Callable[[str], Cluster]) -> Records:
    """Everything in the worst order: cluster, slurmdbd, database."""
    mariadb.load(site.node)
    near, far = clusters("records"), clusters("far")
    keys = secret(SECRET, **{name: secrets.token_hex(64) for name in ("slurm.key", "jwt.key")})
    found = Records(near, far)
    near.create(
        keys,
        password("one"),
        manifests.controller(
            EXTRA_CONF,
            **KEYS,
            persistence={"enabled": True},
            accountingRef={"name": "records"},
        ),
        manifests.restapi(),
        manifests.nodeset(2),
    )

    def waits(reason: str) -> Callable[[dict[str, Json]], bool]:
        def holds(objects: dict[str, Json]) -> bool:
            one = condition(objects[manifests.NAME], "Ready")
            return (one.get("status"), one.get("reason")) == ("False", reason)

        return holds

    near.until("controllers", waits("AccountingNotFound"), "there is no Accounting yet", LONG_S)
    near.apply(records_of(near, far))
    near.until("controllers", waits("WaitingForAccounting"), "there is no database yet", LONG_S)
    found.says("DatabaseUnreachable", "near at mariadb.")
    far.apply(
        manifests.namespace(far.namespace),
        keys,
        password("one"),
        *mariadb.objects(far, {"near": "one", "outside": "one"}),
        accounting("outside", mariadb.NAME, "outside"),
    )
    near.until_ready("accountings", "records", LONG_S)
    near.until_idle("compute-0", "compute-1", timeout=LONG_S)
    near.until_ready("controllers", manifests.NAME, LONG_S)
    _add_user(found)
    return found


def test_a_job_and_the_cluster_are_in_the_database(records: Records) -> None:
    """S169, S082, D15, D21: through a Service with another port, by a pod with a user's labels."""
    job = records.done()
    records.accounted(job)
    assert records.sacctmgr("show", "cluster", "format=cluster").strip() == "test"
    config = records.near.run("scontrol", "show", "config")
    port = next(line for line in config.splitlines() if line.startswith("AccountingStoragePort"))
    assert port.split()[-1] == str(PORT)
    pod = records.near.get("pods", POD)
    assert pod["metadata"]["labels"]["tier"] == "records"
    assert "near" in mariadb.sql(records.far, "SHOW DATABASES")
    rows = mariadb.sql(records.far, "SELECT id_job FROM near.test_job_table")
    assert str(job) in rows.split()


@pytest.mark.parametrize(
    ("name", "limit", "reason"),
    [
        ("onejob", "MaxJobsPerUser=1", "QOSMaxJobsPerUserLimit"),
        ("onemem", "GrpTRES=mem=60", "QOSGrpMemLimit"),
    ],
)
def test_a_qos_limit_delays_a_job_until_another_ends(
    records: Records, name: str, limit: str, reason: str
) -> None:
    """S063, S169: accounts, users and QOS made by sacctmgr act at once."""
    records.sacctmgr("add", "qos", name, "set", limit)
    records.sacctmgr("modify", "user", "slurm", "set", f"qos+={name}")
    options = (f"--qos={name}", "--account=physics", "--nodes=1", *JOB)
    submit = records.near.submit
    first = eventually("the QOS is known", lambda: submit("sleep 600", *options), LONG_S, every=1)
    records.near.until_job(first, "RUNNING", timeout=LONG_S)
    second = submit("true", *options)
    eventually(
        f"it waits for {reason}",
        lambda: records.near.job(second).get("Reason") == reason,
        LONG_S,
        every=1,
    )
    records.near.run("scancel", str(first))
    records.near.until_job(second, "COMPLETED", timeout=LONG_S)
    records.accounted(first, "CANCELLED by 401")
    records.accounted(second)


def test_nothing_is_lost_while_the_database_is_away_and_slurmdbd_is_killed(
    records: Records,
) -> None:
    """S169, D31, feature row 14: jobs that ran before, or ended or ran meanwhile, are there."""
    near, far = records.near, records.far
    began = slurmctld(near)
    before = near.submit(f"sleep {OUTAGE_S / 2:.0f}", *JOB)
    near.until_job(before, "RUNNING")
    far.kubectl("scale", "statefulset", mariadb.NAME, "--replicas=0")
    gone = time.monotonic()
    records.says("DatabaseUnreachable", "slurmctld keeps its records until then")
    old = near.get("pods", POD)["metadata"]["uid"]
    near.kubectl("delete", "pod", POD, "--wait=false")
    near.until(
        "pods",
        lambda pods: POD in pods and pods[POD]["metadata"]["uid"] != old,
        "another slurmdbd",
        LONG_S,
    )
    meanwhile = records.done()
    near.until_job(before, "COMPLETED", timeout=OUTAGE_S + LONG_S)
    time.sleep(max(0.0, gone + OUTAGE_S - time.monotonic()))
    far.kubectl("scale", "statefulset", mariadb.NAME, "--replicas=1")
    near.until_ready("accountings", "records", LONG_S)
    after = records.done()
    for job in (before, meanwhile, after):
        records.accounted(job)
    assert slurmctld(near) == began
    assert restarts(near.get("pods", POD)) == 0


def test_a_changed_password_reaches_slurmdbd_without_a_restart_of_anything(
    records: Records,
) -> None:
    """D17, feature row 14: in the database, then in the Secret; a wrong one is told."""
    near, far = records.near, records.far
    began, slurmdbd = slurmctld(near), near.get("pods", POD)["metadata"]["uid"]
    near.apply(password("wrong"))
    records.says("DatabaseRefuses", "Access denied for user 'near'")
    mariadb.set_password(far, "near", "two")
    near.apply(password("two"))
    near.until_ready("accountings", "records", LONG_S)
    records.accounted(records.done())
    pod = near.get("pods", POD)
    assert (pod["metadata"]["uid"], restarts(pod)) == (slurmdbd, 0)
    assert slurmctld(near) == began


def test_a_bad_slurmdbd_conf_is_rejected_in_words_and_slurmdbd_goes_on(records: Records) -> None:
    """F14, feature row 14: extraConf reaches slurmdbd, and a mistake in it stops no record."""
    near, far = records.near, records.far
    slurmdbd = near.get("pods", POD)["metadata"]["uid"]
    near.apply(records_of(near, far, "BogusKey=1\n"))
    records.says("ConfigRefused", "BogusKey")
    records.accounted(records.done())
    near.apply(records_of(near, far, "PurgeEventAfter=12months\n"))
    near.until_ready("accountings", "records", LONG_S)
    line, shown = re.compile(r"PurgeEventAfter\s*=\s*12"), ("sacctmgr", "show", "config")
    # One before 25.11 is started again for it.
    eventually("slurmdbd has it", lambda: bool(line.search(near.run(*shown))))
    pod = near.get("pods", POD)
    assert (pod["metadata"]["uid"], restarts(pod)) == (slurmdbd, 0)


def test_slurmdbd_follows_changed_keys_and_no_record_is_lost(records: Records) -> None:
    """D17, feature row 10: both keys change at once, under a job. Both slurmdbd have them."""
    near, far = records.near, records.far
    slurmdbd = near.get("pods", POD)["metadata"]["uid"]
    job = near.submit("sleep 600", *JOB)
    near.until_job(job, "RUNNING")
    keys = secret(SECRET, **{name: secrets.token_hex(64) for name in ("slurm.key", "jwt.key")})
    near.apply(keys)
    far.apply(keys)
    near.until(
        "pods",
        lambda pods: POD in pods and pods[POD]["metadata"]["uid"] != slurmdbd,
        "another slurmdbd",
        LONG_S,
    )
    near.forget_key()
    for cluster, name in ((near, "records"), (far, "outside")):
        cluster.until_ready("accountings", name, LONG_S)
    near.until(
        "controllers",
        lambda found: condition(found[manifests.NAME], "KeysInUse").get("status") == "True",
        "only the new keys are in use",
        LONG_S,
    )
    near.until_ready("controllers", manifests.NAME, LONG_S)
    records.accounted(eventually("a job is taken", lambda: records.done(), LONG_S, every=1))
    assert near.job(job)["JobState"] == "RUNNING"
    near.run("scancel", str(job))
    records.accounted(job, "CANCELLED by 401")


@pytest.mark.needs_slurm("25.11", "slurmctld keeps its ClusterID with another database")
def test_an_external_slurmdbd_is_used_and_accounting_can_be_taken_away(records: Records) -> None:
    """S004, S072, D1, feature row 15: slurmctld uses its host; nothing is made for it."""
    near, far = records.near, records.far
    began = slurmctld(near)
    far.until_ready("accountings", "outside", LONG_S)
    host = f"outside-accounting.{far.namespace}"
    near.apply(
        manifests.of("Accounting", "elsewhere", external=True, externalConfig={"host": host})
    )
    near.until_ready("accountings", "elsewhere")
    near.patch("controllers", manifests.NAME, {"spec": {"accountingRef": {"name": "elsewhere"}}})
    eventually(
        "slurmctld has registered with it",
        lambda: _clusters(records, host) == ["test"],
        LONG_S,
        every=1,
    )
    # Limits are those of the records that are in force: here nobody has an account yet.
    eventually("users are known", lambda: _add_user(records), LONG_S, every=1)
    job = eventually("a job is taken", lambda: records.done(), LONG_S, every=1)
    records.accounted(job)
    rows = mariadb.sql(far, "SELECT id_job FROM outside.test_job_table")
    assert str(job) in rows.split()
    names = near.kubectl("get", "pods,services,secrets,statefulsets", "-o", "name")
    assert "elsewhere" not in names

    # Slurm takes no limits without the records that they are in.
    none = {"accountingRef": None, "extraConf": manifests.EXTRA_CONF}
    near.patch("controllers", manifests.NAME, {"spec": none})
    eventually("nothing is accounted", lambda: _storage(near) in ("(null)", "none"), LONG_S)
    assert slurmctld(near) == began
    near.kubectl("delete", "accounting", "records", "elsewhere")
    near.until("pods", lambda pods: POD not in pods, "slurmdbd goes with its object", LONG_S)


def _clusters(records: Records, host: str) -> list[str]:
    config = records.near.run("scontrol", "show", "config")
    if host not in config:
        return []
    return records.sacctmgr("show", "cluster", "format=cluster").split()


def _add_user(records: Records) -> bool:
    if not records.sacctmgr("show", "account", "physics").strip():
        records.sacctmgr("add", "account", "physics")
    if not records.sacctmgr("show", "user", "slurm").strip():
        records.sacctmgr("add", "user", "slurm", "account=physics")
    return True


def _storage(cluster: Cluster) -> str:
    try:
        config = cluster.run("scontrol", "show", "config")
    except LocalError:
        return ""
    lines = (line.partition("=") for line in config.splitlines())
    found = {key.strip(): value.strip() for key, _, value in lines}
    return found.get("AccountingStorageType", "").removeprefix("accounting_storage/")
