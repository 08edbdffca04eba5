"""Results of a check's Slurm jobs: what is remembered of each, and what a run comes to.

slurmctld forgets an ended job after MinJobAge, so each result is written to the Kubernetes Job that
submitted it. A result that was written is never looked up again, and one that was not is still to
be handled, whichever job ended first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, cast

from penstock.base.compressed import compress, plain
from penstock.slurm import hostlist
from penstock.slurm.job_result import JobEnd, JobResult

LOST = "UNKNOWN"
"""State of a job of which neither slurmctld nor slurmdbd has a record."""
_TYPES = (int, str, str, str, str, int, int)
_LONG = 65_536
"""Characters from which results are compressed: all annotations of an object have 262,144 bytes,
which jobs on some 4,000 nodes would fill."""
_LAST_SECOND = 2**32 - 1
"""Of Slurm's times. Source: slurmrestd's OpenAPI, uint32 numbers."""
_MOST_BYTES = 4 * 1024 * 1024
"""Of a compressed text that somebody else may have written."""


class RunStatus(StrEnum):
    """What a run comes to, in the words of `lastRunStatus`."""

    IN_PROGRESS = "InProgress"
    COMPLETE = "Complete"
    FAILED = "Failed"
    ERROR = "Error"
    CANCELLED = "Cancelled"
    SKIPPED = "Skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """How one job ended. Times are Unix seconds, 0 without one."""

    job: int
    state: str
    nodes: tuple[str, ...] = ()
    reason: str = ""
    name: str = ""
    submitted: int = 0
    ended: int = 0

    @property
    def end(self) -> JobEnd:
        """How it ended, by its base state."""
        try:
            return JobEnd(self.state)
        except ValueError:
            return JobEnd.ERROR

    @property
    def words(self) -> str:
        """State, reason and nodes, for a status."""
        reason = f": {self.reason}" if self.reason and self.reason != "None" else ""
        where = f" on {hostlist.compress(self.nodes)}" if self.nodes else ""
        return f"{self.state}{reason}{where}"


def ended(records: Iterable[JobResult]) -> tuple[Result, ...] | None:
    """The results of a job with these records; None while one of them waits or runs."""
    found = tuple(records)
    if not found or any(one.end is None for one in found):
        return None
    return tuple(
        Result(one.id, one.state, one.nodes, one.reason, one.name, one.submit_time, one.end_time)
        for one in found
    )


def is_of(check: str, records: Iterable[JobResult]) -> bool:
    """Whether a job with these records is one of a check.

    Another one may have its id: slurmctld begins at 1 again when it has lost its state. A record
    without a name may be of any job.
    """
    return all(one.name in ("", check) for one in records)


def lost(job: int, why: str) -> Result:
    """The result of a job of which there is no record any more."""
    return Result(job, LOST, reason=why)


def run_status(results: Sequence[Result], *, waits: bool) -> RunStatus:
    """What a run comes to: unfinished jobs first, then the worst end."""
    ends = {one.end for one in results}
    for end, status in (
        (JobEnd.FAILED, RunStatus.FAILED),
        (JobEnd.ERROR, RunStatus.ERROR),
        (JobEnd.CANCELLED, RunStatus.CANCELLED),
    ):
        if end in ends and not waits:
            return status
    return RunStatus.IN_PROGRESS if waits or not ends else RunStatus.COMPLETE


def newest_by_node(results: Iterable[Result]) -> Mapping[str, Result]:
    """The last result of each node, among those of jobs that completed or failed."""
    found: dict[str, Result] = {}
    for one in results:
        if one.end not in (JobEnd.COMPLETED, JobEnd.FAILED):
            continue
        for node in one.nodes:
            last = found.get(node)
            if last is None or (last.ended, last.job) <= (one.ended, one.job):
                found[node] = one
    return found


def encode(results: Iterable[Result]) -> str:
    """The results as the text of an annotation."""
    rows = [
        [
            one.job,
            one.state,
            hostlist.compress(one.nodes),
            one.reason,
            one.name,
            one.submitted,
            one.ended,
        ]
        for one in results
    ]
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False) if rows else ""
    if len(text) < _LONG:
        return text
    return compress(text)


@lru_cache(maxsize=32)
def decode(text: str) -> tuple[Result, ...]:
    """The results in the text of an annotation; what cannot be read is left out."""
    try:
        rows: Any = json.loads(plain(text, _MOST_BYTES) or "[]")
    except (ValueError, RecursionError):
        return ()
    if not isinstance(rows, list):
        return ()
    found = (_row(row) for row in cast("list[Any]", rows))
    return tuple(one for one in found if one is not None)


def _row(row: Any) -> Result | None:
    if not isinstance(row, list):
        return None
    fields = cast("list[Any]", row)
    if len(fields) != len(_TYPES) or any(
        type(one) is not wanted for one, wanted in zip(fields, _TYPES, strict=True)
    ):
        return None
    job, state, nodes, reason, name, submitted, at = fields
    if not (0 <= submitted <= _LAST_SECOND and 0 <= at <= _LAST_SECOND):
        return None
    try:
        return Result(job, state, tuple(hostlist.expand(nodes)), reason, name, submitted, at)
    except hostlist.HostListError:
        return None
