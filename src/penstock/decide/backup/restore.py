"""The steps of a Restore: stop the cluster, put the parts back in a Job, start the cluster.

Each step follows from observed state, so a new process continues where a killed one ended. The name
of the Job is one for each cluster: two Restores cannot both have theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.backup import BackupReason
from penstock.decide.backup.run import Run
from penstock.decide.check.kubernetes_job import JobStatus
from penstock.model.backup import UNCHANGED

Phase: TypeAlias = Literal["", "Waiting", "Stopping", "Restoring", "Succeeded", "Failed"]


class RestoreAction(Enum):
    """What is done now."""

    NOTHING = "nothing"
    STOP = "annotate the cluster"
    END_JOBS = "cancel jobs, and delete workers that Slurm does not answer for"
    CREATE_JOB = "create the Job"
    DELETE_JOB = "delete the Job of an earlier Restore"
    START = "remove the annotation"


@dataclass(frozen=True, slots=True)
class RestoreView:
    """All that the next step depends on.

    `waits` are words about an object that is missing, `other` is another Restore of the cluster
    that comes first. `stopped_by` is the value of the annotation that stops the cluster, None
    without it, and `mark` the value that this Restore writes. `jobs` are the Slurm jobs that run,
    None while Slurm does not answer for the reason `why`. `pods` are those that use the jail, the
    state or the database. `run` is the Job of this Restore, `earlier` the name of another one's.
    """

    cluster: str
    mark: str
    ended: Phase = ""
    waits: str = ""
    other: str = ""
    stopped_by: str | None = None
    force: bool = False
    jobs: Sequence[int] | None = ()
    why: str = ""
    pods: Sequence[str] = ()
    backups: Sequence[str] = ()
    run: Run | None = None
    earlier: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether an annotation stops the cluster, whoever wrote it."""
        return self.stopped_by is not None

    @property
    def has_stopped(self) -> bool:
        """Whether this Restore has stopped the cluster."""
        return self.stopped_by == self.mark


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """The next step, and the phase that it leads to."""

    action: RestoreAction
    phase: Phase
    finding: Finding


def next_step(view: RestoreView) -> RestoreStep:
    """The next step of a Restore."""
    if view.ended:
        return _ended(view)
    run = view.run
    if run is not None and run.status.has_ended and not run.deleting:
        return _after(view, run)
    if view.waits or view.other:
        words = view.waits or f"Restore {view.other} of SlurmCluster {view.cluster} comes first"
        return _wait(BackupReason.RESTORE_WAITS, words)
    if run is not None:
        words = f"Job {run.job} puts the parts back"
        if run.deleting:
            words = f"Job {run.job} is being deleted; it is repeated"
        elif run.words:
            words += f": {run.words}"
        # Pods that start because somebody removed the annotation would read half of the files.
        action = RestoreAction.NOTHING if view.is_stopped else RestoreAction.STOP
        return _step(action, "Restoring", None, BackupReason.RESTORING, words)
    return _before_job(view) if view.is_stopped else _before_stop(view)


def _before_stop(view: RestoreView) -> RestoreStep:
    if view.backups:
        return _wait(BackupReason.RESTORE_WAITS, f"Waits for Job {list_some(view.backups)}")
    # Without pods no job can run, whatever slurmctld remembers.
    if not view.force and view.pods:
        if view.jobs is None:
            words = f"It is unknown whether jobs run: {view.why}"
            return _wait(BackupReason.JOBS_UNKNOWN, f"{words}. Repair it, or set spec.force")
        if view.jobs:
            words = f"SlurmCluster {view.cluster} runs {_jobs(view.jobs)}"
            fix = "Wait for their end, cancel them, or set spec.force"
            return _wait(BackupReason.JOBS_RUNNING, f"{words}. {fix}")
    words = f"Stopping SlurmCluster {view.cluster}"
    return _step(RestoreAction.STOP, "Stopping", None, BackupReason.STOPPING, words)


def _before_job(view: RestoreView) -> RestoreStep:
    if view.pods:
        words = f"Waits for the end of pods {list_some(view.pods)}"
        if view.jobs and not view.force:
            # One that started between the last answer of Slurm and the annotation.
            words += f"; {_jobs(view.jobs)} on them: cancel it, or set spec.force"
        action = RestoreAction.END_JOBS if view.force else RestoreAction.NOTHING
        return _step(action, "Stopping", None, BackupReason.STOPPING, words)
    if view.backups:
        words = f"Waits for Job {list_some(view.backups)}"
        return _step(RestoreAction.NOTHING, "Stopping", None, BackupReason.RESTORE_WAITS, words)
    if view.earlier:
        words = f"Deleting Job {view.earlier} of an earlier Restore"
        return _step(RestoreAction.DELETE_JOB, "Stopping", None, BackupReason.RESTORING, words)
    words = "Creating the Job that puts the parts back"
    return _step(RestoreAction.CREATE_JOB, "Restoring", None, BackupReason.RESTORING, words)


def _after(view: RestoreView, run: Run) -> RestoreStep:
    if run.status is JobStatus.COMPLETE:
        return _step(
            RestoreAction.START, "Succeeded", True, BackupReason.RESTORED, _restored(view, run)
        )
    words = f"Job {run.job} failed: {run.words}"
    if run.exit_code == UNCHANGED:
        words += ". Nothing was changed; create another Restore"
        return _step(RestoreAction.START, "Failed", False, BackupReason.RESTORE_FAILED, words)
    words += (
        f". Parts may be incomplete, so SlurmCluster {view.cluster} stays stopped. Delete the Job "
        "to repeat it, or delete this Restore to start the cluster as it is"
    )
    return _step(RestoreAction.NOTHING, "Restoring", False, BackupReason.RESTORE_FAILED, words)


def _restored(view: RestoreView, run: Run | None) -> str:
    snapshot = run.result.snapshot[:8] if run is not None else ""
    of = f" of snapshot {snapshot}" if snapshot else ""
    return f"The parts{of} are in SlurmCluster {view.cluster}"


def _ended(view: RestoreView) -> RestoreStep:
    action = RestoreAction.START if view.has_stopped else RestoreAction.NOTHING
    if view.ended == "Succeeded":
        words = _restored(view, view.run)
        return _step(action, "Succeeded", True, BackupReason.RESTORED, words)
    words = view.run.words if view.run is not None else ""
    words = f"The parts were not put back: {words or 'see the events'}. Create another Restore"
    return _step(action, "Failed", False, BackupReason.RESTORE_FAILED, words)


def _jobs(jobs: Sequence[int]) -> str:
    return f"{'jobs' if len(jobs) > 1 else 'job'} {list_some([str(one) for one in jobs])}"


def _wait(reason: ConditionReason, words: str) -> RestoreStep:
    return _step(RestoreAction.NOTHING, "Waiting", None, reason, words)


def _step(
    action: RestoreAction, phase: Phase, ok: bool | None, reason: ConditionReason, words: str
) -> RestoreStep:
    return RestoreStep(action, phase, Finding(ok, reason, words))
