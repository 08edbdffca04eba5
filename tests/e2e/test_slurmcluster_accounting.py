"""Accounting of a SlurmCluster with a real slurmdbd and the MariaDB of a user.

Scenario S169.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e_kit import mariadb
from e2e_kit.cluster import Cluster
from e2e_kit.images import give_all
from e2e_kit.manifests import namespace
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from penstock.local.images import build_jail, build_slurm

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
DATABASE = "slurm_acct_db"
"""Its user has the same name."""
LONG_S = 120.0

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


@dataclass(frozen=True)
class Records:
    """A SlurmCluster, and a database in another namespace. Users work in the jail of the login."""

    cluster: SlurmClusterSite
    far: Cluster
    images: dict[str, str]

    def in_jail(self, command: str) -> str:
        """Output of a command of a login."""
        return self.cluster.run("login-0", "sshd", f"chroot /mnt/jail {command}")

    def submit(self, script: str) -> str:
        """Id of a job."""
        said = self.in_jail(f"sbatch --parsable --output=/dev/null --wrap '{script}'")
        return said.strip()

    def recorded(self, job: str, state: str = "COMPLETED") -> None:
        """Wait until the database has a job in a state."""

        def found() -> bool:
            return self.in_jail(f"sacct -X -n -P -j {job} -o State").strip() == state

        eventually(f"job {job} is recorded as {state}", found, LONG_S, every=1)

    def has_ended(self, job: str) -> bool:
        """Whether slurmctld has the job as completed."""
        return "JobState=COMPLETED" in self.cluster.scontrol("show", "job", job)

    def enable(self, user: str = DATABASE) -> None:
        """Have the cluster keep records in the database."""
        database = {
            "enabled": True,
            "host": f"{mariadb.NAME}.{self.far.namespace}",
            "user": user,
            "passwordSecretKeyRef": {"name": "database", "key": "password"},
        }
        accounting = {
            "enabled": True,
            "externalDB": database,
            "slurmdbd": {"image": self.images["slurmdbd"]},
            "munge": {"image": self.images["munge"]},
        }
        self.cluster.patch({"slurmNodes": {"accounting": accounting}})

    def available(self, status: str, words: str = "") -> None:
        """Wait for the condition AccountingAvailable."""

        def found() -> bool:
            return self.cluster.status("AccountingAvailable") == status and words in (
                self.cluster.condition("AccountingAvailable")
            )

        eventually(f"AccountingAvailable is {status}: {words}", found, LONG_S)

    def password(self, text: str) -> None:
        """Write the Secret with the password."""
        secret = mariadb.password("database", text)
        self.cluster.apply(secret)

    def slurmdbd(self) -> str:
        """The pod of slurmdbd, and how often its container restarted."""
        path = "{range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}{end}"
        selector = "app.kubernetes.io/component=accounting"
        return self.cluster.kubectl("get", "pods", "-l", selector, "-o", f"jsonpath={path}")


@pytest.fixture(scope="module")
def records(site: Site, clusters: Callable[[str], Cluster]) -> Generator[Records]:
    """A cluster that works without accounting; there is no database yet."""
    mariadb.load(site.node)
    images = give_all(site.node, [*build_jail().values(), build_slurm()["slurmdbd"]])
    far = clusters("far")
    far.apply(namespace(far.namespace))
    made = SlurmClusterSite(site, f"recorded-{secrets.token_hex(2)}", EXAMPLE.read_text(), images)
    try:
        made.up()
        yield Records(made, far, images)
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
    records.enable()
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
    eventually(
        "the cluster is registered",
        lambda: cluster.status("AccountingRegistered") == "True",
        LONG_S,
    )
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


def test_a_changed_password_and_a_database_that_is_away_stop_no_job_and_lose_no_record(
    records: Records,
) -> None:
    """S169, D72: slurmdbd takes the password over without a restart."""
    cluster, slurmdbd = records.cluster, records.slurmdbd()
    records.far.kubectl("scale", "statefulset", mariadb.NAME, "--replicas=0")
    records.available("Unknown", "slurmctld keeps its records until then")
    meanwhile = records.submit("true")
    eventually("the job ends", lambda: records.has_ended(meanwhile), LONG_S)
    records.far.kubectl("scale", "statefulset", mariadb.NAME, "--replicas=1")
    records.available("True")
    records.recorded(meanwhile)
    records.password("wrong")
    records.available("False", "Access denied")
    mariadb.set_password(records.far, DATABASE, "two")
    records.password("two")
    records.available("True")
    records.recorded(records.submit("true"))
    assert records.slurmdbd() == slurmdbd
    assert cluster.status("AccountingRegistered") == "True"


def test_accounting_that_is_switched_off_leaves_a_cluster_that_runs_jobs(records: Records) -> None:
    """What ran for it goes once slurmctld does not need it."""
    cluster = records.cluster
    cluster.patch({"slurmNodes": {"accounting": {"enabled": False}}})
    eventually("slurmdbd is gone", lambda: not records.slurmdbd(), LONG_S)
    records.in_jail("srun -N2 true")
    assert "not enabled" in cluster.condition("AccountingAvailable")
    assert cluster.status("AccountingRegistered") == ""
