"""Replies about one job: `GET job/{id}` of slurmctld and of slurmdbd.

slurmctld has an ended job for MinJobAge (300 s by default), slurmdbd for as long as it keeps
records. Source: slurm.conf(5); slurmrestd's OpenAPI v0.0.42 to v0.0.45 (job_info, job).
"""

from __future__ import annotations

import contextlib

from penstock.slurm import hostlist
from penstock.slurm.job_result import JobResult
from penstock.slurm.rest.wire import Number, Reply, Strings, Wire

_COMPLETING = "COMPLETING"
_NOWHERE = frozenset({"", "None assigned", "(null)"})
"""Nodes of a job that never had any."""


class JobRecord(Wire, frozen=True):
    """One job of slurmctld."""

    job_id: int
    job_state: Strings
    state_reason: str = ""
    nodes: str = ""
    name: str = ""
    submit_time: Number = Number()
    end_time: Number = Number()

    def result(self) -> JobResult:
        """The record as decisions read it."""
        return JobResult(
            self.job_id,
            _base(self.job_state),
            _COMPLETING in self.job_state,
            _nodes(self.nodes),
            self.state_reason,
            self.name,
            self.submit_time.value() or 0,
            self.end_time.value() or 0,
        )


class JobReply(Reply, frozen=True):
    """slurmctld's answer: several records for a job array."""

    jobs: tuple[JobRecord, ...] | None = None


class StoredState(Wire, frozen=True):
    """State of a job in slurmdbd."""

    current: Strings = ()
    reason: str = ""


class StoredTime(Wire, frozen=True):
    """Times of a job in slurmdbd."""

    submission: int = 0
    end: int = 0


class StoredJob(Wire, frozen=True):
    """One job of slurmdbd."""

    job_id: int
    state: StoredState = StoredState()
    nodes: str = ""
    name: str = ""
    time: StoredTime = StoredTime()

    def result(self) -> JobResult:
        """The record as decisions read it."""
        return JobResult(
            self.job_id,
            _base(self.state.current),
            _COMPLETING in self.state.current,
            _nodes(self.nodes),
            self.state.reason,
            self.name,
            max(self.time.submission, 0),
            max(self.time.end, 0),
        )


class StoredJobReply(Reply, frozen=True):
    """slurmdbd's answer; without a record the list is empty."""

    jobs: tuple[StoredJob, ...] | None = None


def _base(states: Strings) -> str:
    return next((one for one in states if one != _COMPLETING), "")


def _nodes(text: str) -> tuple[str, ...]:
    """The nodes of a job; none where the list cannot be read, so that no node is drained for it."""
    if text.strip() in _NOWHERE:
        return ()
    with contextlib.suppress(hostlist.HostListError):
        return tuple(hostlist.expand(text))
    return ()
