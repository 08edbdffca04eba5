"""One Job of a Backup or Restore, and what its container left in its termination message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.api.kubernetes.kinds import ContainerTerminated, Job, Pod
from penstock.base import times
from penstock.decide.check.kubernetes_job import JobStatus, failure_words, job_status
from penstock.decide.observed.pod_failure import pod_failure


class RunResult(msgspec.Struct, frozen=True):
    """The last line of images/entrypoints/backup.py. `unread` files vanished while it ran."""

    snapshot: str = ""
    bytes: int = 0
    added: int = 0
    unread: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One Job. `exit_code` is that of its last container that ended; None before one has."""

    job: str
    status: JobStatus
    ended: float
    """Unix seconds of its end, or of its creation while it runs."""
    result: RunResult = field(default_factory=RunResult)
    words: str = ""
    """Why it failed, or what keeps its pod from its work; empty if nothing does."""
    exit_code: int | None = None
    deleting: bool = False

    @property
    def is_good(self) -> bool:
        """Whether it completed."""
        return self.status is JobStatus.COMPLETE


def run_of(job: Job, pods: Sequence[Pod]) -> Run:
    """A Job with its pods."""
    status = job_status(job)
    result, code = _result(pods)
    words = ""
    if status is JobStatus.FAILED:
        words = result.error or failure_words(job, tuple(pods)) or "no message"
    elif not status.has_ended:
        found = filter(None, (pod_failure(pod) for pod in pods if pod.status.phase != "Succeeded"))
        words = result.error or next((one.text for one in found), "")
    return Run(
        job=job.metadata.name,
        status=status,
        ended=_ended(job, status),
        result=result,
        words=words,
        exit_code=code,
        deleting=job.metadata.deleting,
    )


def newest(runs: Iterable[Run]) -> Run | None:
    """The run that ended last."""
    return max(runs, key=lambda one: (one.ended, one.job), default=None)


def _result(pods: Sequence[Pod]) -> tuple[RunResult, int | None]:
    """The result of the newest pod that has one."""
    ended = last_ended(pods)
    if ended is None:
        return RunResult(), None
    lines = (ended.message or "").strip().splitlines()
    try:
        found = msgspec.json.decode(lines[-1], type=RunResult) if lines else RunResult()
    except (msgspec.MsgspecError, UnicodeError):
        # The kubelet puts the end of the log there if the container wrote no message.
        found = RunResult(error=" / ".join(lines[-3:]) if ended.exit_code else "")
    return found, ended.exit_code


def last_ended(pods: Sequence[Pod]) -> ContainerTerminated | None:
    """The container that ended, of the newest pod that has one."""
    for pod in sorted(pods, key=lambda one: one.metadata.creation_timestamp or "", reverse=True):
        for container in pod.status.container_statuses or ():
            if container.state.terminated is not None:
                return container.state.terminated
    return None


def _ended(job: Job, status: JobStatus) -> float:
    types = {JobStatus.COMPLETE: "Complete", JobStatus.FAILED: "Failed"}
    for one in job.status.conditions or ():
        if status in types and one.type == types[status] and one.status == "True":
            found = times.parse(one.last_transition_time)
            if found is not None:
                return found
    return times.parse(job.metadata.creation_timestamp) or 0.0
