"""The runs of an ActiveCheck: its Kubernetes Jobs, with what each submitted and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import JOBS, Job, Pod
from penstock.api.nebius.active_check import ActiveCheck
from penstock.catalog.marks import penstock
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.decide.check.kubernetes_job import JobStatus, failure_words, job_status
from penstock.decide.check.results import Result, decode
from penstock.decide.check.submission import (
    UNHANDLED_IDS,
    Submission,
    ids_in,
    reported,
    submission,
)
from penstock.slurm import hostlist

_ENDED = ("Succeeded", "Failed")
RESULTS = penstock.CHECK_RESULTS.key
POSTPONED = penstock.CHECK_POSTPONED.key


@dataclass(frozen=True, slots=True)
class Run:
    """One Kubernetes Job."""

    job: Job
    status: JobStatus
    submission: Submission
    recorded: str = ""
    """Annotation with the results that have had their reaction."""
    open: tuple[int, ...] | None = None
    """Ids in the annotation of jobs that are still to be handled; None without one."""
    postponed: str = ""
    """Annotation with the nodes that wait to be drained."""
    is_recorded: bool = True
    """Whether the annotations of the Job have the submission."""
    failure: str = ""
    """Why the Job failed; empty for any other."""
    is_reporting: bool = False
    """Whether a pod of it is still to end, as far as the cache shows."""

    @property
    def results(self) -> tuple[Result, ...]:
        """The results that have had their reaction."""
        return decode(self.recorded)

    @property
    def waiting_nodes(self) -> tuple[str, ...]:
        """Nodes that wait until checks may drain more; none of a text that cannot be read."""
        try:
            return tuple(hostlist.expand(self.postponed)) if self.postponed else ()
        except hostlist.HostListError:
            return ()

    @property
    def has_ended(self) -> bool:
        """Whether its Job, its pods and its Slurm jobs have ended."""
        return self.status.has_ended and not self.is_reporting and not self.unhandled

    @property
    def unhandled(self) -> tuple[int, ...]:
        """Ids of submitted jobs that are still to be handled.

        Of a run that is done nothing is decoded: thousands of workers give long annotations, which
        are read at each change in Slurm. Nor has each run results of ours: of one that began before
        a switch from the original, that has handled the jobs.
        """
        ids = self.submission.ids
        if self.open is not None:
            left = set(self.open)
            ids = tuple(one for one in ids if one in left)
        if not ids:
            return ()
        done = {one.job for one in self.results}
        return tuple(one for one in ids if one not in done)


def runs_of(caches: NebiusCaches, check: ActiveCheck) -> tuple[Run, ...]:
    """The runs of a check, the oldest first."""
    jobs = caches.jobs_of_check.get(check.metadata.key)
    live = (one for one in jobs if not one.metadata.deleting)
    return tuple(
        _run(job, caches.pods_of.get(owned_by(JOBS, job)), check) for job in sorted(live, key=_age)
    )


def results_of(runs: Iterable[Run]) -> list[Result]:
    """The recorded results of all runs."""
    return [result for run in runs for result in run.results]


def _run(job: Job, pods: tuple[Pod, ...], check: ActiveCheck) -> Run:
    annotations, status = job.metadata.annotations, job_status(job)
    found, is_recorded = submission(annotations), True
    if not found.is_known and check.spec.check_type == "slurmJob":
        found = reported(pods, check.spec.name)
        is_recorded = not found.is_known
    failure = failure_words(job, pods) if status is JobStatus.FAILED else ""
    return Run(
        job,
        status,
        found,
        annotations.get(RESULTS, ""),
        ids_in(annotations[UNHANDLED_IDS]) if UNHANDLED_IDS in annotations else None,
        annotations.get(POSTPONED, ""),
        is_recorded,
        failure,
        any(one.status.phase not in _ENDED for one in pods),
    )


def _age(job: Job) -> tuple[str, str]:
    return job.metadata.creation_timestamp or "", job.metadata.name
