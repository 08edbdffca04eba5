"""How a Kubernetes Job of a check stands, in the words of `lastJobStatus`."""

from __future__ import annotations

from enum import StrEnum

from penstock.api.kubernetes.kinds import Job, Pod


class JobStatus(StrEnum):
    """Status of a Job."""

    ACTIVE = "Active"
    PENDING = "Pending"
    COMPLETE = "Complete"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    UNKNOWN = "Unknown"

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the Job runs any more, or will."""
        return self in (JobStatus.COMPLETE, JobStatus.FAILED)


_TYPES = (
    (JobStatus.COMPLETE, ("Complete", "SuccessCriteriaMet")),
    (JobStatus.FAILED, ("Failed", "FailureTarget")),
    (JobStatus.SUSPENDED, ("Suspended",)),
)
"""Types of conditions. Source: Kubernetes API reference, JobCondition."""


def job_status(job: Job) -> JobStatus:
    """The status of a Job, by its pods and conditions."""
    if job.status.active:
        return JobStatus.ACTIVE
    conditions = job.status.conditions or ()
    held = {one.type for one in conditions if one.status == "True"}
    for status, types in _TYPES:
        if held.intersection(types):
            return status
    return JobStatus.UNKNOWN if conditions else JobStatus.PENDING


def failure_words(job: Job, pods: tuple[Pod, ...]) -> str:
    """Why a Job failed: the last words of its container, else those of its condition."""
    for pod in pods:
        for container in pod.status.container_statuses or ():
            ended = container.state.terminated
            if ended is not None and ended.exit_code:
                words = " ".join((ended.message or "").split())
                return words[-_LONGEST:] or f"exit code {ended.exit_code}"
    found = (one for one in job.status.conditions or () if one.type == "Failed")
    return next((one.message or one.reason or "" for one in found), "")


_LONGEST = 300
"""Characters that are kept of a container's words."""
