"""Accounting of a SlurmCluster, with the MariaDB of a user or of mariadb-operator.

Scenario S169. `PENSTOCK_OUTAGE_SECONDS` is how long the database is away.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from e2e_kit import backup, mariadb, mariadb_operator
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.images import give_all
from e2e_kit.manifests import namespace
from e2e_kit.release import RELEASE
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from e2e_kit.slurmcluster_records import LONG_S, ClusterRecords
from penstock.kube.webhook import certificates
from penstock.local.errors import LocalError
from penstock.local.images import build_backup, build_jail, build_slurm

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
DATABASE = "slurm_acct_db"
"""Its user has the same name."""
OUTAGE_S = float(os.environ.get("PENSTOCK_OUTAGE_SECONDS") or 20)
MARIADB = f"{NAME}-acct-db"
PARTS = ("state", "accounting")
RESTORE_S = 300.0
SHOWN = (
    "sacct -X -a -n -P -S 2020-01-01 -o JobID,JobName,User,State,ExitCode,Submit,Start,End",
    "sacctmgr -n -P show account format=account,description,organization",
    "sacctmgr -n -P show association format=cluster,account,user,qos,fairshare",
    "sacctmgr -n -P show cluster format=cluster,id",
    "sacctmgr -n -P show qos format=id,name,priority",
)
"""Commands whose output comes from the database."""

pytestmark = [pytest.mark.timeout(OUTAGE_S + 900), pytest.mark.long]


@dataclass(frozen=True)
class Records(ClusterRecords):
    """A SlurmCluster, and a database in another namespace."""

    far: Cluster

    @property
    def host(self) -> str:
        """Where the database is."""
        return f"{mariadb.NAME}.{self.far.namespace}"

    def use_far(self, **more: Json) -> None:
        """Have the cluster keep records in the database of the other namespace."""
        database: Json = {
            "enabled": True,
            "host": self.host,
            "user": DATABASE,
            "passwordSecretKeyRef": {"name": "database", "key": "password"},
            **more,
        }
        self.enable(externalDB=database)

    def password(self, text: str) -> None:
        """Write the Secret with the password."""
        secret = mariadb.password("database", text)
        self.cluster.apply(secret)

    def away(self, replicas: int) -> None:
        """The database goes, or comes back."""
        self.far.kubectl("scale", "statefulset", mariadb.NAME, f"--replicas={replicas}")


@pytest.fixture(scope="module")
def records(site: Site, clusters: Callable[[str], Cluster]) -> Generator[Records]:
    """A cluster that works without accounting; there is no database yet."""
    mariadb.load(site.node)
    images = give_all(site.node, [*build_jail(RELEASE).values(), build_slurm(RELEASE)["slurmdbd"]])
    far = clusters("far")
    far.apply(namespace(far.namespace))
    made = SlurmClusterSite(site, f"recorded-{secrets.token_hex(2)}", EXAMPLE.read_text(), images)
    try:
        made.up()
        yield Records(made, "login-0", images, far)
    finally:
        made.down()


def test_accounting_that_comes_later_than_jobs_and_before_its_database_loses_no_record(
    records: Records,
) -> None:
    """S169, D48, D71: no pod restarts, and jobs that ended before the database are recorded."""
    cluster = records.cluster
    assert "not enabled" in cluster.condition("AccountingAvailable")
    pods = [cluster.uid(pod) for pod in ("controller-0", "worker-0", "worker-1", "login-0")]
    running = records.submit("sleep 10")
    records.use_far()
    records.available("False", "Secret database with a key password does not exist")
    records.password("one")
    eventually(
        "slurmctld keeps records",
        lambda: re.search(
            r"AccountingStorageType\s*=\s*\S*slurmdbd", cluster.scontrol("show", "config")
        ),
        LONG_S,
    )
    records.available("Unknown", f"slurmdbd waits for its database {DATABASE} at mariadb.")
    meanwhile = records.submit("true")
    eventually("both jobs end", lambda: all(map(records.has_ended, (running, meanwhile))), LONG_S)
    records.far.apply(*mariadb.objects(records.far, {DATABASE: "one"}))
    records.available("True")
    records.registered()
    for job in (running, meanwhile):
        records.recorded(job)
    assert [cluster.uid(pod) for pod in ("controller-0", "worker-0", "worker-1", "login-0")] == pods
    eventually("the phase", lambda: cluster.get()["status"]["phase"] == "Available", LONG_S)


def test_users_see_reports_and_accounts_in_the_jail(records: Records) -> None:
    """S169: sacctmgr, sacct and sreport of a login."""
    records.in_jail("sacctmgr -i add account physics")
    said = records.in_jail("sacctmgr -n -P show account format=account")
    assert "physics" in said.split()
    # slurmdbd sums up usage each hour, so the report of a new cluster has no lines yet.
    assert "Cluster Utilization" in records.in_jail("sreport cluster utilization")
    rows = mariadb.sql(records.far, f"SHOW TABLES IN {DATABASE}")
    assert f"{NAME}_job_table" in rows.split()


def test_accounts_and_the_queue_are_kept_while_there_is_no_worker(records: Records) -> None:
    """S125: nothing has to be set up when workers return."""
    cluster = records.cluster
    cluster.patch({"slurmNodes": {"worker": {"size": 0}}})
    eventually("no worker is left", lambda: not cluster.nodes(), LONG_S)
    waits = records.submit("true")
    said = records.in_jail("sacctmgr -n -P show account format=account")
    assert "physics" in said.split()
    cluster.patch({"slurmNodes": {"worker": {"size": 2}}})
    cluster.until_idle(2)
    eventually("it has run", lambda: records.has_ended(waits), LONG_S)
    records.recorded(waits)


def test_nothing_is_lost_while_the_database_is_away_and_slurmctld_is_deleted(
    records: Records,
) -> None:
    """S169: slurmctld writes waiting records to its state when it ends in order."""
    cluster, slurmdbd = records.cluster, records.slurmdbd()
    running = records.submit(f"sleep {OUTAGE_S / 2:.0f}")
    eventually("it runs", lambda: "RUNNING" in cluster.scontrol("show", "job", running), LONG_S)
    records.away(0)
    gone = time.monotonic()
    records.available("Unknown", "slurmctld keeps its records until then")
    before = records.submit("true")
    eventually("the job ends", lambda: records.has_ended(before), LONG_S)
    old = cluster.uid("controller-0")
    cluster.kubectl("delete", "pod", "controller-0", "--wait=false")

    def answers() -> bool:
        with contextlib.suppress(LocalError):
            return cluster.uid("controller-0") != old and "UP" in cluster.scontrol("ping")
        return False

    eventually("another slurmctld answers, without slurmdbd", answers, LONG_S)
    after = eventually("a job is taken", lambda: _submitted(records), LONG_S, every=1)
    eventually("all end", lambda: all(map(records.has_ended, (running, after))), OUTAGE_S + LONG_S)
    time.sleep(max(0.0, gone + OUTAGE_S - time.monotonic()))
    records.away(1)
    records.available("True")
    for job in (running, before, after):
        records.recorded(job)
    assert records.slurmdbd() == slurmdbd


def test_a_changed_password_stops_no_job_and_loses_no_record(records: Records) -> None:
    """D72: slurmdbd takes the password over without a restart."""
    cluster, slurmdbd = records.cluster, records.slurmdbd()
    records.password("wrong")
    records.available("False", "Access denied")
    mariadb.set_password(records.far, DATABASE, "two")
    records.password("two")
    records.available("True")
    records.recorded(records.submit("true"))
    assert records.slurmdbd() == slurmdbd
    assert cluster.status("AccountingRegistered") == "True"


def test_a_database_that_requires_tls_is_reached_with_its_certificate(records: Records) -> None:
    """D71."""
    made = certificates.renewed(None, (records.host,), datetime.now(UTC))
    certificate = {"ca.crt": made.authority, "tls.crt": made.leaf, "tls.key": made.leaf_key}
    data = {name: text.decode() for name, text in certificate.items()}
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "certificate"}}
    records.far.apply({**secret, "stringData": data})
    databases = {DATABASE: "two"}
    records.far.apply(*mariadb.objects(records.far, databases, tls="certificate"))
    records.available("Unknown", "slurmctld keeps its records until then")
    authority = {"ca.crt": data["ca.crt"]}
    records.cluster.apply({**secret, "metadata": {"name": "ca"}, "stringData": authority})
    records.use_far(tls={"serverCASecretRef": "ca"})
    records.available("True")
    records.recorded(records.submit("true"))
    ciphers = mariadb.sql(records.far, "SHOW STATUS LIKE 'Ssl_accepts'").split()
    assert int(ciphers[-1]) > 0


def test_records_of_a_destroyed_database_come_back_from_a_backup(
    records: Records, site: Site, figure: Callable[[str], None]
) -> None:
    """S175: by a connection with TLS; other databases of the server are left alone."""
    cluster, far = records.cluster, records.far
    image = give_all(site.node, build_backup().values())["backup"]
    mariadb.sql(far, "CREATE DATABASE other; CREATE TABLE other.a_table SELECT 1 AS id")
    before = [records.in_jail(one) for one in SHOWN]
    backup.back_up(cluster, image, parts=PARTS)
    kind = ("backup", backup.BACKUP)
    eventually("it is backed up", lambda: backup.reason(cluster, *kind) == "BackupGood", 180)
    done = backup.status(cluster, *kind)
    records.recorded(records.submit("true"))
    mariadb.sql(far, f"DROP DATABASE {DATABASE}")

    kind, began = ("restore", backup.RESTORE), time.monotonic()
    backup.restore(cluster, image, parts=PARTS)

    def phase() -> str:
        return backup.status(cluster, *kind).get("phase", "")

    eventually("it is restored", lambda: phase() == "Succeeded", RESTORE_S)
    restored = time.monotonic() - began
    cluster.until_idle(2)
    cluster.until_login()
    records.available("True")
    figure(
        f"{done['bytes'] / 1e6:.1f} MB of state and records; restored in {restored:.0f} s, records "
        f"are served after {time.monotonic() - began:.0f} s"
    )
    assert [records.in_jail(one) for one in SHOWN] == before
    records.recorded(records.submit("true"))
    tables = mariadb.sql(far, f"SHOW TABLES IN {DATABASE}; SHOW TABLES IN other").split()
    assert "a_table" in tables
    assert not [one for one in tables if "penstock" in one]
    # They are not in the dump.
    routines = f"FROM information_schema.routines WHERE routine_schema = '{DATABASE}'"
    assert int(mariadb.sql(far, f"SELECT COUNT(*) {routines}")) > 0


def test_a_database_of_mariadb_operator_is_used_once_its_kinds_are_installed(
    records: Records, site: Site
) -> None:
    """D73, D64, S169: a stand-in plays mariadb-operator, with a real MariaDB."""
    records.enable(mariadbOperator={"enabled": True, "image": mariadb.IMAGE})
    records.available("False", "there are no kinds of mariadb-operator")
    meanwhile = records.submit("true")
    mariadb_operator.install(site)
    try:
        spec = mariadb_operator.serve(records.cluster, MARIADB)
        assert spec["passwordSecretKeyRef"]["name"] == f"{MARIADB}-password"
        grant = mariadb_operator.find(records.cluster, "grants", MARIADB)
        assert grant is not None
        assert grant["spec"]["requeueInterval"] == "10m0s"
        records.available("True")
        records.registered()
        records.recorded(records.submit("true"))
        eventually("the other one ends", lambda: records.has_ended(meanwhile), LONG_S)
        records.use_far(tls={"serverCASecretRef": "ca"})
        records.available("True")
    finally:
        mariadb_operator.remove(site)


def test_accounting_that_is_switched_off_leaves_a_cluster_that_runs_jobs(records: Records) -> None:
    """What ran for it goes once slurmctld does not need it."""
    cluster = records.cluster
    cluster.patch({"slurmNodes": {"accounting": {"enabled": False}}})
    eventually("slurmdbd is gone", lambda: not records.slurmdbd(), LONG_S)
    records.in_jail("srun -N2 true")
    assert "not enabled" in cluster.condition("AccountingAvailable")
    assert cluster.status("AccountingRegistered") == ""


def _submitted(records: Records) -> str:
    """Id of a job; empty while slurmctld takes none."""
    with contextlib.suppress(LocalError):
        return records.submit("true")
    return ""
