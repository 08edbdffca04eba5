"""Reconfigures slurmctld after files changed, and follows the restarts of all slurmds.

Nothing waits inside a reconcile: each call does one step and returns when the next one is due. So
files that change meanwhile are written at once. A new process starts over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from penstock.base.text import list_some
from penstock.controllers.jailed_config.metrics import RECONFIGURES
from penstock.decide.jail.jailed_config import FAILED
from penstock.decide.jail.slurmd_restart import start_times, starts_now, unfinished
from penstock.kube import Backoff, Clock
from penstock.model.jail_file import Fault
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import BadReplyError, SlurmError
from penstock.slurm.state import Node

FIRST_POLL_S = 1.0
RETRY_S, LONGEST_RETRY_S = 15.0, 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Completed, unless it has a `failure` or `waits` for something.

    `requeue_after` are the seconds until the next step.
    """

    failure: Fault | None = None
    waits: str = ""
    requeue_after: float | None = None


@dataclass(slots=True)
class _Run:
    before: Mapping[str, int]
    deadline: float
    polls: int = 0


@dataclass(slots=True)
class _Retry:
    failure: Fault
    at: float


class Reconfigurations:
    """The reconfigures of all groups of files. Times are in seconds."""

    def __init__(
        self,
        slurmrestd: Callable[[], Awaitable[Slurmrestd]],
        clock: Clock,
        *,
        poll_s: float,
        timeout_s: float,
    ) -> None:
        self._slurmrestd = slurmrestd
        self._clock = clock
        self._poll_s = poll_s
        self._timeout_s = timeout_s
        self._runs: dict[str, _Run] = {}
        self._retries: dict[str, _Retry] = {}
        self._failures: dict[str, int] = {}
        self._paused: set[str] = set()
        self._backoff = Backoff(RETRY_S, LONGEST_RETRY_S)

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget groups that no longer exist."""
        for state in (self._runs, self._retries, self._failures):
            for group in state.keys() - set(groups):
                del state[group]
        self._paused.intersection_update(groups)

    async def advance(self, group: str, *, changed: bool) -> Outcome:
        """The next step for a group whose files changed. With `changed` it starts over."""
        if changed:
            self._runs.pop(group, None)
            self._retries.pop(group, None)
        retry = self._retries.get(group)
        left = retry.at - self._clock.monotonic() if retry is not None else 0.0
        if retry is not None and left > 0:
            return Outcome(failure=retry.failure, requeue_after=left)
        run = self._runs.get(group)
        return await (self._begin(group) if run is None else self._poll(group, run))

    async def _begin(self, group: str) -> Outcome:
        try:
            rest = await self._slurmrestd()
            before = start_times(await _nodes(rest))
            if starts_now(before, self._clock.time()) and group not in self._paused:
                self._paused.add(group)
                return Outcome(waits="Waiting for slurmds that are starting", requeue_after=1.0)
            await rest.reconfigure()
        except SlurmError as error:
            return self._failed(group, f"slurmctld was not reconfigured: {error}")
        self._paused.discard(group)
        run = self._runs[group] = _Run(before, self._clock.monotonic() + self._timeout_s)
        return await self._poll(group, run) if not before else self._waiting(run, sorted(before))

    async def _poll(self, group: str, run: _Run) -> Outcome:
        try:
            names = unfinished(run.before, await _nodes(await self._slurmrestd()))
            why = f"slurmd of {list_some(names)} has not restarted"
        except SlurmError as error:
            names = sorted(run.before)
            why = f"slurmrestd does not list the nodes: {error}"
        if not names:
            del self._runs[group]
            self._retries.pop(group, None)
            self._failures.pop(group, None)
            RECONFIGURES.labels("ok").inc()
            return Outcome()
        if self._clock.monotonic() >= run.deadline:
            return self._failed(
                group,
                f"{self._timeout_s:.0f} s after slurmctld was reconfigured, {why}; "
                "it is reconfigured again",
            )
        return self._waiting(run, names)

    def _waiting(self, run: _Run, names: list[str]) -> Outcome:
        left = max(run.deadline - self._clock.monotonic(), 0.0)
        delay = min(FIRST_POLL_S * 2**run.polls, self._poll_s, left)
        run.polls = min(run.polls + 1, 10)
        words = f"Waiting for slurmd of {list_some(names)} to restart"
        return Outcome(waits=words, requeue_after=delay)

    def _failed(self, group: str, words: str) -> Outcome:
        self._runs.pop(group, None)
        count = self._failures[group] = self._failures.get(group, 0) + 1
        delay = self._backoff.delay(count)
        failure = Fault(FAILED, words)
        self._retries[group] = _Retry(failure, self._clock.monotonic() + delay)
        RECONFIGURES.labels("failed").inc()
        return Outcome(failure=failure, requeue_after=delay)


async def _nodes(rest: Slurmrestd) -> tuple[Node, ...]:
    listing = await rest.nodes()
    if listing is None:
        raise BadReplyError("slurmrestd's answer has no list of nodes")
    return listing.items
