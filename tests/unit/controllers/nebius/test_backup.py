"""Backups and Restores of a SlurmCluster, by the whole operator on a simulated Kubernetes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from fault_plans import nebius_specs
from fault_plans.api_names import CLUSTER
from penstock.api.kubernetes.meta import Json
from penstock.simulation.event_loop import simulate
from unit.controllers.nebius.lab import (
    CLUSTERS,
    CORE,
    CURRENT,
    JOB,
    JOBS,
    SHAPES,
    SPACE,
    Lab,
    played,
)

GROUP = "penstock.dev"
PATH = f"/apis/{GROUP}/v1alpha1/namespaces/{SPACE}"
STOPPED = "penstock.dev/stopped"
REPOSITORY: Json = {
    "pvc": {"claimName": nebius_specs.PVCS[0], "path": "backups"},
    "passwordSecretRef": {"name": "restic", "key": "password"},
}
BACKUP_JOB, RESTORE_JOB = "backup-nightly", f"{CLUSTER}-restore"
GOOD = json.dumps({"snapshot": "0123456789abcdef", "bytes": 70, "added": 7, "unread": 0})


def backup(lab: Lab, name: str = "nightly", **spec: Any) -> None:
    """`kubectl create` of a Backup."""
    given = {"clusterRef": {"name": CLUSTER}, "repository": REPOSITORY, **spec}
    password(lab)
    lab.make(f"{PATH}/backups", "Backup", name, spec=given)


def password(lab: Lab) -> None:
    """`kubectl create` of the Secret."""
    lab.make(f"{CORE}/secrets", "Secret", "restic", data={"password": "c2VjcmV0"})


def restore(lab: Lab, name: str = "back", **spec: Any) -> None:
    """`kubectl create` of a Restore."""
    given = {"backupRef": {"name": "nightly"}, **spec}
    lab.make(f"{PATH}/restores", "Restore", name, spec=given)


def of(lab: Lab, plural: str, name: str) -> Json:
    return lab.find(f"{GROUP}/{plural}", name) or {}


def ready(lab: Lab, plural: str = "restores", name: str = "back") -> tuple[str, str, str]:
    found: list[Json] = of(lab, plural, name).get("status", {}).get("conditions", [])
    for one in found:
        if one["type"] == "Ready":
            return one["status"], one["reason"], one.get("message", "")
    return "", "", ""


def phase(lab: Lab, name: str = "back") -> str:
    return of(lab, "restores", name).get("status", {}).get("phase", "")


def stopped_by(lab: Lab) -> str | None:
    annotations: Json = lab.cluster["metadata"].get("annotations") or {}
    return annotations.get(STOPPED)


def daemons(lab: Lab) -> list[str]:
    """Pods of the cluster but for those of Jobs."""
    jobs = (BACKUP_JOB, RESTORE_JOB, JOB)
    return [one for one in lab.pods() if not one.startswith(jobs)]


def patch(lab: Lab, plural: str, name: str, body: Json) -> None:
    lab.world.ask("PATCH", f"{PATH}/{plural}/{name}", body)


def test_a_single_backup_reports_its_snapshot() -> None:
    """S175."""

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.reports[BACKUP_JOB] = GOOD
        backup(lab)
        await lab.until(lambda: ready(lab, "backups", "nightly")[:2] == ("True", "BackupGood"))
        status = of(lab, "backups", "nightly")["status"]
        assert status["snapshot"] == "0123456789abcdef"
        assert (status["bytes"], status["addedBytes"]) == (70, 7)
        assert status["lastGoodTime"]
        # The Job may go, and is not repeated.
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{BACKUP_JOB}", {})
        await asyncio.sleep(30)
        assert lab.find(JOBS, BACKUP_JOB) is None
        assert of(lab, "backups", "nightly")["status"] == status

    played(play)


def test_a_backup_without_its_password_waits_for_the_secret() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.reports[BACKUP_JOB] = GOOD
        backup(lab)
        lab.world.ask("DELETE", f"{CORE}/secrets/restic", {})
        await lab.until(lambda: ready(lab, "backups", "nightly")[1] == "SecretNotFound")
        assert "Secret restic" in ready(lab, "backups", "nightly")[2]
        password(lab)
        await lab.until(lambda: ready(lab, "backups", "nightly")[0] == "True")

    played(play)


def test_a_failed_backup_has_restic_s_words_and_is_repeated_once_its_job_is_deleted() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.broken.add(BACKUP_JOB)
        lab.world.jobs.reports[BACKUP_JOB] = json.dumps({"error": "Fatal: wrong password"})
        backup(lab)
        await lab.until(lambda: ready(lab, "backups", "nightly")[:2] == ("False", "BackupFailed"))
        assert "Fatal: wrong password" in ready(lab, "backups", "nightly")[2]
        lab.world.jobs.broken.clear()
        lab.world.jobs.reports[BACKUP_JOB] = GOOD
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{BACKUP_JOB}", {})
        await lab.until(lambda: ready(lab, "backups", "nightly")[:2] == ("True", "BackupGood"))

    played(play)


def test_a_schedule_becomes_a_cron_job_that_rests_while_the_cluster_is_stopped() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *", retention={"keepLast": 3})
        await lab.until(lambda: lab.find("batch/cronjobs", BACKUP_JOB))
        cron = lab.get("batch/cronjobs", BACKUP_JOB)
        assert cron["spec"]["suspend"] is False
        assert "--keep-last=3" in str(cron)
        assert lab.find(JOBS, BACKUP_JOB) is None
        annotate(lab, "admin")
        await lab.until(lambda: lab.get("batch/cronjobs", BACKUP_JOB)["spec"]["suspend"])
        annotate(lab, None)
        await lab.until(lambda: not lab.get("batch/cronjobs", BACKUP_JOB)["spec"]["suspend"])

    played(play)


def annotate(lab: Lab, value: str | None) -> None:
    path = f"/apis/slurm.nebius.ai/v1/namespaces/{SPACE}/{CLUSTERS}/{CLUSTER}"
    lab.world.ask("PATCH", path, {"metadata": {"annotations": {STOPPED: value}}})


def test_a_backup_of_no_cluster_waits_with_words() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, clusterRef={"name": "other"})
        await lab.until(lambda: ready(lab, "backups", "nightly")[1] == "SlurmClusterNotFound")
        assert "SlurmCluster other does not exist" in ready(lab, "backups", "nightly")[2]

    played(play)


def test_an_annotation_stops_a_cluster_of_either_shape_and_nothing_fills_its_jail() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        annotate(lab, "admin")
        await lab.until(lambda: daemons(lab) == [])
        assert lab.condition("JailPopulated")[1] == "ClusterStopped"
        job = f"{CLUSTER}-populate-jail"
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{job}", {})
        await asyncio.sleep(30)
        assert lab.find(JOBS, job) is None
        annotate(lab, None)
        await lab.available()

    for shape in SHAPES:
        played(play, shape)


def test_a_restore_stops_the_cluster_puts_the_files_back_and_starts_it() -> None:
    """S175."""

    async def play(lab: Lab) -> None:
        await lab.available()
        lab.world.jobs.reports |= {BACKUP_JOB: GOOD, RESTORE_JOB: GOOD}
        backup(lab)
        await lab.until(lambda: ready(lab, "backups", "nightly")[0] == "True")
        seen: list[list[str]] = []
        lab.world.server.store.listeners.append(
            lambda change: (
                seen.append(daemons(lab))
                if change.resource == JOBS and change.old is None and RESTORE_JOB in change.key
                else None
            )
        )
        restore(lab)
        await lab.until(lambda: phase(lab) == "Succeeded")
        assert seen == [[]]
        assert stopped_by(lab) is None
        assert of(lab, "restores", "back")["status"]["snapshot"] == "0123456789abcdef"
        await lab.available()
        await lab.until(lambda: not of(lab, "restores", "back")["metadata"].get("finalizers"))
        assert ready(lab)[:2] == ("True", "Restored")
        # It is done once.
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{RESTORE_JOB}", {})
        await asyncio.sleep(30)
        assert lab.find(JOBS, RESTORE_JOB) is None

    for shape in SHAPES:
        played(play, shape)


def test_a_restore_names_the_jobs_that_run_and_waits_for_their_end() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        job = lab.world.slurm.submit(1)
        assert job is not None
        await asyncio.sleep(10)
        restore(lab)
        await lab.until(lambda: ready(lab)[1] == "RestoreWaitsForJobs")
        await asyncio.sleep(30)
        assert str(job.id) in ready(lab)[2]
        assert stopped_by(lab) is None
        assert "RUNNING" in job.state
        lab.world.slurm.finish(job)
        await lab.until(lambda: phase(lab) == "Succeeded")
        await lab.available()

    played(play)


def test_a_job_that_began_after_the_last_poll_is_named_too() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        await lab.settled(20)
        job = lab.world.slurm.submit(1)
        assert job is not None
        restore(lab)
        await lab.until(lambda: phase(lab))
        assert ready(lab)[1] == "RestoreWaitsForJobs"
        assert stopped_by(lab) is None
        lab.world.slurm.finish(job)
        await lab.until(lambda: phase(lab) == "Succeeded")

    played(play)


def test_force_cancels_the_jobs() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        job = lab.world.slurm.submit(1)
        assert job is not None
        await asyncio.sleep(10)
        restore(lab)
        await lab.until(lambda: ready(lab)[1] == "RestoreWaitsForJobs")
        patch(lab, "restores", "back", {"spec": {"force": True}})
        await lab.until(lambda: phase(lab) == "Succeeded")
        assert "CANCELLED" in job.state
        await lab.available()

    played(play)


def test_a_second_restore_waits_for_the_first() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        lab.stop_kubelets()
        restore(lab, "a-first")
        await lab.until(lambda: phase(lab, "a-first") == "Stopping")
        restore(lab, "a-second")
        await lab.until(lambda: phase(lab, "a-second") == "Waiting")
        assert "Restore a-first" in ready(lab, name="a-second")[2]
        lab.start_kubelets()
        await lab.until(lambda: phase(lab, "a-first") == "Succeeded")
        await lab.until(lambda: phase(lab, "a-second") == "Succeeded", 300)
        assert lab.made.count(f"jobs/{RESTORE_JOB}") == 2
        assert lab.gone.count(f"jobs/{RESTORE_JOB}") == 1
        await lab.available()

    played(play)


def test_a_restore_that_failed_in_the_middle_keeps_the_cluster_stopped_until_it_is_repeated() -> (
    None
):
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        lab.world.jobs.broken.add(RESTORE_JOB)
        lab.world.jobs.reports[RESTORE_JOB] = json.dumps({"error": "Fatal: no space left"})
        restore(lab)
        await lab.until(lambda: ready(lab)[:2] == ("False", "RestoreFailed"))
        await asyncio.sleep(30)
        assert stopped_by(lab) == "Restore/back"
        assert daemons(lab) == []
        assert "Fatal: no space left" in ready(lab)[2]
        lab.world.jobs.broken.clear()
        lab.world.jobs.reports[RESTORE_JOB] = GOOD
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{RESTORE_JOB}", {})
        await lab.until(lambda: phase(lab) == "Succeeded")
        await lab.available()

    played(play)


def test_the_deletion_of_a_restore_lets_the_cluster_start() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        lab.world.jobs.broken.add(RESTORE_JOB)
        restore(lab)
        await lab.until(lambda: ready(lab)[1] == "RestoreFailed")
        # Also if it is not known any more which repository it read.
        lab.world.ask("DELETE", f"{PATH}/backups/nightly", {})
        lab.world.ask("DELETE", f"{PATH}/restores/back", {})
        await lab.until(lambda: not of(lab, "restores", "back"))
        assert stopped_by(lab) is None
        assert lab.find(JOBS, RESTORE_JOB) is None
        await lab.available()

    played(play)


def test_a_restore_keeps_the_annotation_of_an_administrator() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        annotate(lab, "admin")
        await lab.until(lambda: daemons(lab) == [])
        restore(lab)
        await lab.until(lambda: phase(lab) == "Succeeded")
        await asyncio.sleep(10)
        assert stopped_by(lab) == "admin"
        assert daemons(lab) == []

    played(play)


def test_a_restore_of_no_cluster_waits_with_words() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, schedule="0 3 * * *")
        restore(lab, clusterRef={"name": "other"})
        await lab.until(lambda: ready(lab)[1] == "RestoreWaits")
        assert "SlurmCluster other does not exist" in ready(lab)[2]
        assert phase(lab) == "Waiting"

    played(play)


DATABASE = f"{CLUSTER}-accounting-db"
LOADED = ["state", "accounting"]


def account(lab: Lab, **database: Any) -> None:
    """`kubectl patch` of a cluster, so that it has slurmdbd with a database."""
    given = {**nebius_specs.accounting(enabled=True), "externalDB": None, **database}
    path = f"/apis/slurm.nebius.ai/v1/namespaces/{SPACE}/{CLUSTERS}/{CLUSTER}"
    lab.world.ask("PATCH", path, {"spec": {"slurmNodes": {"accounting": given}}})


def test_a_backup_of_records_waits_for_accounting_and_for_the_secret_of_its_database() -> None:
    """S175."""

    async def play(lab: Lab) -> None:
        await lab.available()
        backup(lab, parts=["accounting"])
        await lab.until(lambda: ready(lab, "backups", "nightly")[:2] == ("False", "Invalid"))
        words = ready(lab, "backups", "nightly")[2]
        assert f"SlurmCluster {CLUSTER} has no accounting" in words
        assert "Remove the part" in words
        assert lab.find(JOBS, BACKUP_JOB) is None
        external = {"enabled": True, "host": "db", "user": "slurm"}
        ref = {"name": "absent", "key": "password"}
        account(lab, externalDB={**external, "passwordSecretKeyRef": ref})
        await lab.until(lambda: ready(lab, "backups", "nightly")[1] == "SecretNotFound")
        words = ready(lab, "backups", "nightly")[2]
        path = "spec.slurmNodes.accounting.externalDB"
        assert words.startswith(f"{path}: Secret absent does not exist, or lacks the key password")
        lab.make(f"{CORE}/secrets", "Secret", "absent", data={"password": "c2VjcmV0"})
        await lab.until(lambda: lab.find(JOBS, BACKUP_JOB))
        job = str(lab.get(JOBS, BACKUP_JOB))
        assert "{'name': 'DATABASE_HOST', 'value': 'db'}" in job
        assert "c2VjcmV0" not in job

    played(play)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_database_of_the_operator_runs_while_a_restore_loads_it_and_slurmdbd_does_not(
    by_hand: bool,
) -> None:
    """S175: also where an administrator had stopped the cluster before."""

    async def play(lab: Lab) -> None:
        await lab.available()
        account(lab, embeddedDB={"enabled": True, "image": "mariadb:1"})
        await lab.until(lambda: {f"{DATABASE}-0"} < set(daemons(lab)))
        backup(lab, schedule="0 3 * * *")
        if by_hand:
            annotate(lab, "admin")
            await lab.until(lambda: daemons(lab) == [])
        seen: list[list[str]] = []
        lab.world.jobs.broken.add(RESTORE_JOB)
        lab.world.server.store.listeners.append(
            lambda change: (
                seen.append(daemons(lab))
                if change.resource == JOBS and change.old is None and RESTORE_JOB in change.key
                else None
            )
        )
        restore(lab, parts=LOADED, force=True)
        await lab.until(lambda: ready(lab)[1] == "RestoreFailed")
        assert not set(*seen) - {f"{DATABASE}-0"}
        await lab.until(lambda: daemons(lab) == [f"{DATABASE}-0"])
        await asyncio.sleep(30)
        assert daemons(lab) == [f"{DATABASE}-0"]
        lab.world.jobs.broken.clear()
        lab.world.ask("DELETE", f"/apis/batch/v1/namespaces/{SPACE}/jobs/{RESTORE_JOB}", {})
        await lab.until(lambda: phase(lab) == "Succeeded")
        if by_hand:
            await lab.until(lambda: daemons(lab) == [], 2)
        else:
            await lab.until(lambda: len(daemons(lab)) > 1)

    played(play)


def test_a_restore_of_other_parts_lets_the_database_rest() -> None:
    async def play(lab: Lab) -> None:
        await lab.available()
        account(lab, embeddedDB={"enabled": True, "image": "mariadb:1"})
        await lab.until(lambda: {f"{DATABASE}-0"} < set(daemons(lab)))
        backup(lab, schedule="0 3 * * *")
        lab.world.jobs.broken.add(RESTORE_JOB)
        restore(lab, force=True)
        await lab.until(lambda: ready(lab)[1] == "RestoreFailed")
        await lab.until(lambda: daemons(lab) == [])

    played(play)


def test_an_operator_that_is_killed_after_any_write_restores_once() -> None:
    async def play() -> None:
        lab = Lab(CURRENT)
        lab.world.declare(2)
        lab.world.jobs.reports |= {RESTORE_JOB: GOOD}
        for number in range(40):
            process = lab.world.operator()
            if not number:
                await lab.available()
                backup(lab, schedule="0 3 * * *")
                restore(lab)
            before = len(lab.world.writes)
            for _ in range(300):
                await asyncio.sleep(0.1)
                written = [what for _, what in lab.world.writes[before:]]
                if any(is_of_restore(what) for what in written):
                    break
            await lab.world.crash(process)
        assert phase(lab) == "Succeeded"
        assert lab.made.count(f"jobs/{RESTORE_JOB}") == 1
        assert stopped_by(lab) is None
        assert not of(lab, "restores", "back")["metadata"].get("finalizers")
        assert lab.world.promises.broken == []
        process = lab.world.operator()
        await lab.available()
        await lab.world.crash(process)

    simulate(play())


def is_of_restore(what: str) -> bool:
    """Whether a write is of the Restore, its Job or the annotation."""
    return what.endswith(("/restores/back", "/restores/back/status", f"/{CLUSTERS}/{CLUSTER}")) or (
        what.startswith("POST") and what.endswith("/jobs")
    )
