"""The steps of a Restore: no job ends unasked, and the cluster starts on whole files only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.catalog.reasons.backup import BackupReason
from penstock.decide.backup.restore import RestoreAction, RestoreView, next_step
from penstock.decide.backup.run import Run, RunResult
from penstock.decide.check.kubernetes_job import JobStatus
from penstock.model.backup import UNCHANGED

MARK = "Restore/back"
RUNNING = RestoreView("slurm1", MARK, pods=("slurm1-controller-0",))
STOPPED = RestoreView("slurm1", MARK, stopped_by=MARK)
RUN = Run("slurm1-restore", JobStatus.ACTIVE, 1.0)
DONE = replace(RUN, status=JobStatus.COMPLETE, result=RunResult(snapshot="0123456789ab"))
BROKEN = replace(RUN, status=JobStatus.FAILED, words="Fatal: no space left", exit_code=1)


def test_a_cluster_without_jobs_is_stopped() -> None:
    step = next_step(RUNNING)
    assert (step.action, step.phase) == (RestoreAction.STOP, "Stopping")


def test_running_jobs_are_named_and_not_ended() -> None:
    step = next_step(replace(RUNNING, jobs=(12, 13)))
    assert step.action is RestoreAction.NOTHING
    assert step.finding.reason is BackupReason.JOBS_RUNNING
    assert "jobs 12, 13" in step.finding.message
    assert step.finding.ok is None


def test_a_slurm_that_does_not_answer_counts_as_one_with_jobs() -> None:
    step = next_step(replace(RUNNING, jobs=None, why="connection refused"))
    assert step.finding.reason is BackupReason.JOBS_UNKNOWN
    assert "connection refused" in step.finding.message
    assert step.action is RestoreAction.NOTHING


def test_a_cluster_without_pods_has_no_jobs_whatever_slurm_answers() -> None:
    step = next_step(replace(RUNNING, jobs=None, pods=()))
    assert step.action is RestoreAction.STOP


@pytest.mark.parametrize("jobs", [None, (12,)])
def test_force_stops_a_cluster_with_jobs_and_ends_them(jobs: tuple[int, ...] | None) -> None:
    forced = replace(RUNNING, jobs=jobs, force=True)
    assert next_step(forced).action is RestoreAction.STOP
    stopped = replace(forced, stopped_by=MARK)
    assert next_step(stopped).action is RestoreAction.END_JOBS


def test_a_job_that_began_before_the_stop_is_waited_for() -> None:
    step = next_step(replace(RUNNING, stopped_by=MARK, jobs=(12,)))
    assert step.action is RestoreAction.NOTHING
    assert "job 12" in step.finding.message


def test_files_are_put_back_once_no_pod_and_no_backup_is_left() -> None:
    assert next_step(replace(STOPPED, pods=("login-0",))).action is RestoreAction.NOTHING
    assert next_step(replace(STOPPED, backups=("backup-b",))).action is RestoreAction.NOTHING
    assert next_step(STOPPED).action is RestoreAction.CREATE_JOB


def test_the_job_of_an_earlier_restore_makes_room() -> None:
    step = next_step(replace(STOPPED, earlier="slurm1-restore"))
    assert step.action is RestoreAction.DELETE_JOB


def test_a_backup_that_runs_is_waited_for_before_the_stop() -> None:
    step = next_step(replace(RUNNING, backups=("backup-b",)))
    assert (step.action, step.phase) == (RestoreAction.NOTHING, "Waiting")
    assert "backup-b" in step.finding.message


def test_a_second_restore_waits_for_the_first() -> None:
    step = next_step(replace(STOPPED, stopped_by="Restore/first", other="first"))
    assert (step.action, step.phase) == (RestoreAction.NOTHING, "Waiting")
    assert "Restore first" in step.finding.message


def test_a_restore_of_no_cluster_waits_with_words() -> None:
    step = next_step(RestoreView("none", MARK, waits="SlurmCluster none does not exist"))
    assert (step.action, step.phase) == (RestoreAction.NOTHING, "Waiting")
    assert step.finding.message == "SlurmCluster none does not exist"


def test_the_cluster_starts_once_the_job_has_completed() -> None:
    step = next_step(replace(STOPPED, run=DONE))
    assert (step.action, step.phase) == (RestoreAction.START, "Succeeded")
    assert "01234567" in step.finding.message
    # Even if the object that was read is gone by then.
    assert next_step(replace(STOPPED, run=DONE, waits="gone")).action is RestoreAction.START


def test_a_cluster_with_incomplete_files_stays_stopped() -> None:
    step = next_step(replace(STOPPED, run=BROKEN))
    assert (step.action, step.finding.ok) == (RestoreAction.NOTHING, False)
    assert "Fatal: no space left" in step.finding.message
    assert "Delete the Job to repeat it" in step.finding.message


def test_a_cluster_whose_files_were_not_touched_starts_again() -> None:
    step = next_step(replace(STOPPED, run=replace(BROKEN, exit_code=UNCHANGED)))
    assert (step.action, step.phase) == (RestoreAction.START, "Failed")


def test_a_cluster_is_stopped_again_while_the_job_runs() -> None:
    assert next_step(replace(STOPPED, run=RUN)).action is RestoreAction.NOTHING
    assert next_step(replace(STOPPED, stopped_by=None, run=RUN)).action is RestoreAction.STOP


def test_a_deleted_job_is_repeated() -> None:
    deleting = replace(BROKEN, deleting=True)
    assert next_step(replace(STOPPED, run=deleting)).action is RestoreAction.NOTHING
    assert next_step(STOPPED).action is RestoreAction.CREATE_JOB


def test_an_ended_restore_only_lets_its_cluster_start() -> None:
    ended = replace(STOPPED, ended="Succeeded", run=DONE)
    assert next_step(ended).action is RestoreAction.START
    assert next_step(replace(ended, stopped_by=None)).action is RestoreAction.NOTHING
    assert next_step(replace(ended, stopped_by="admin")).action is RestoreAction.NOTHING
