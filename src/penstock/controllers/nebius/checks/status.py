"""The status of an ActiveCheck, and the condition about its last run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from penstock.api.cluster.marks import MAX_DRAINED
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CronJob
from penstock.api.nebius.active_check import (
    ActiveCheck,
    ActiveCheckStatus,
    JobReason,
    K8sJobsStatus,
    SlurmJobsStatus,
)
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.base import times
from penstock.base.text import list_some
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.check import CheckReason
from penstock.controllers.nebius.checks.drain_room import share_words
from penstock.controllers.nebius.checks.runs import Run
from penstock.decide.check.kubernetes_job import JobStatus
from penstock.decide.check.results import Result, RunStatus, run_status
from penstock.slurm import hostlist
from penstock.slurm.job_result import JobEnd

NO_JOB = "No slurm job"
"""`lastRunId` of a run that submitted none."""
LAST_RUN_PASSED = ConditionType.LAST_RUN_PASSED
_REASONS = {
    RunStatus.COMPLETE: (True, CheckReason.PASSED),
    RunStatus.FAILED: (False, CheckReason.FAILED),
    RunStatus.ERROR: (False, CheckReason.ERROR),
    RunStatus.CANCELLED: (None, CheckReason.CANCELLED),
    RunStatus.SKIPPED: (True, CheckReason.SKIPPED),
    RunStatus.IN_PROGRESS: (None, CheckReason.RUNNING),
}


def check_status(
    check: ActiveCheck, run: Run | None, cron: CronJob | None, now: float
) -> ActiveCheckStatus:
    """The status with the last run; without a run it stays as it was."""
    if run is None:
        return check.status
    if check.spec.check_type == "slurmJob":
        old = check.status.slurm_jobs_status or SlurmJobsStatus()
        found = _slurm_jobs(check, run)
        if found is None:
            return check.status
        found = replace(found, last_transition_time=old.last_transition_time)
        if found != old:
            found = replace(found, last_transition_time=times.write(now))
        return replace(check.status, slurm_jobs_status=found)
    before = check.status.k8s_jobs_status
    made = K8sJobsStatus(
        last_job_name=run.job.metadata.name,
        last_job_status=run.status,
        last_job_schedule_time=(cron.status.last_schedule_time or "") if cron is not None else "",
        last_job_successful_time=(cron.status.last_successful_time or "")
        if cron is not None
        else "",
        last_transition_time=before.last_transition_time if before is not None else "",
    )
    if made != before:
        made = replace(made, last_transition_time=times.write(now))
    return replace(check.status, k8s_jobs_status=made)


def last_run(check: ActiveCheck, run: Run | None) -> Finding:
    """The condition about the last run."""
    if run is None:
        return _finding(None, CheckReason.NO_RUN, "")
    name = run.job.metadata.name
    if check.spec.check_type != "slurmJob":
        if run.status is JobStatus.COMPLETE:
            return _finding(True, CheckReason.PASSED, f"Job {name} completed")
        if run.status is JobStatus.FAILED:
            return _finding(False, CheckReason.FAILED, f"Job {name} failed: {run.failure}")
        return _finding(None, CheckReason.RUNNING, f"Job {name} is {run.status}")
    status = status_of_run(run)
    if status is None and run.submission.ids:
        return _finding(None, CheckReason.NO_RUN, "")
    if status is None:
        return _finding(None, CheckReason.RUNNING, f"Job {name} submits Slurm jobs")
    ok, reason = _REASONS[status]
    return _finding(ok, reason, _words(run, status))


def postponed(cluster: SlurmCluster, nodes: Sequence[str]) -> Finding | None:
    """The nodes that stay in service although the check failed on them; None without one."""
    if not nodes:
        return None
    words = (
        f"{len(nodes)} Slurm nodes failed the check and stay in service: "
        f"{hostlist.compress(nodes)}. Checks may have drained "
        f"{share_words(cluster)}: repair drained nodes, or raise the annotation {MAX_DRAINED} of "
        f"SlurmCluster {cluster.metadata.name}"
    )
    return Finding(False, CheckReason.POSTPONED, words)


def status_of_run(run: Run) -> RunStatus | None:
    """What a run of Slurm jobs comes to; None before its pod has reported.

    None also if another operator has handled its jobs: that has written the status.
    """
    if run.submission.ids:
        if not run.results and not run.unhandled:
            return None
        found = run_status(run.results, waits=bool(run.unhandled))
        is_partial = found is RunStatus.COMPLETE and run.status is JobStatus.FAILED
        return RunStatus.ERROR if is_partial else found
    if not run.status.has_ended or run.is_reporting:
        return None
    return RunStatus.SKIPPED if run.submission.skipped else RunStatus.ERROR


def _slurm_jobs(check: ActiveCheck, run: Run) -> SlurmJobsStatus | None:
    status = status_of_run(run)
    if status is None:
        return None
    first = run.results[0] if run.results else None
    submitted = times.write(first.submitted) if first is not None and first.submitted else ""
    return SlurmJobsStatus(
        last_run_id=",".join(map(str, run.submission.ids)) or NO_JOB,
        last_run_name=(first.name if first is not None else "") or check.metadata.name,
        last_run_status=status,
        last_run_submit_time=submitted or run.job.metadata.creation_timestamp or "",
        last_run_fail_jobs_and_reasons=_reasons(run.results, JobEnd.FAILED),
        last_run_error_jobs_and_reasons=_reasons(run.results, JobEnd.ERROR),
        last_run_cancelled_jobs=tuple(
            str(one.job) for one in run.results if one.end is JobEnd.CANCELLED
        ),
    )


def _reasons(results: tuple[Result, ...], end: JobEnd) -> tuple[JobReason, ...]:
    return tuple(
        JobReason(job_id=str(one.job), reason=one.words) for one in results if one.end is end
    )


def _words(run: Run, status: RunStatus) -> str:
    name = run.job.metadata.name
    if status is RunStatus.SKIPPED:
        return f"Job {name} submitted no Slurm job: {run.submission.skipped}"
    if not run.submission.ids:
        why = run.failure or "its container reported no job"
        return f"Job {name} submitted no Slurm job: {why}"
    if status is RunStatus.IN_PROGRESS:
        return f"{len(run.unhandled)} of {len(run.submission.ids)} Slurm jobs have not ended"
    bad = [f"job {one.job} {one.words}" for one in run.results if one.end is not JobEnd.COMPLETED]
    if not bad and run.failure:
        return f"Job {name} failed after {len(run.submission.ids)} Slurm jobs: {run.failure}"
    if bad:
        return f"Slurm jobs of Job {name}: {list_some(bad, '; ')}"
    return f"All {len(run.submission.ids)} Slurm jobs of Job {name} completed"


def _finding(ok: bool | None, reason: CheckReason, message: str) -> Finding:
    return Finding(ok, reason, message, type=LAST_RUN_PASSED, excluded_from_ready=True)
