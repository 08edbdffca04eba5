"""Collects the results of a check's Slurm jobs, and has the nodes react to them.

The results come from slurmctld; of jobs that it has forgotten they come from slurmdbd, where the
cluster has accounting. A result is recorded in the Kubernetes Job once all its nodes have had their
reaction, so a process that ends in between repeats it: no reaction does harm the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from penstock.api.kubernetes.kinds import JOBS
from penstock.api.nebius.active_check import ACTIVE_CHECKS, ActiveCheck
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.base import times
from penstock.catalog.event import Event
from penstock.controllers.nebius.checks.drain_room import (
    DrainRoom,
    DrainRooms,
    may_have_room,
    share_words,
)
from penstock.controllers.nebius.checks.policy import policy
from penstock.controllers.nebius.checks.reactions import NodeReactions
from penstock.controllers.nebius.checks.rechecks import Rechecks
from penstock.controllers.nebius.checks.runs import POSTPONED, RESULTS, Run, results_of, runs_of
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.decide.check import submission
from penstock.decide.check.out_nodes import RESERVED
from penstock.decide.check.reaction import NodeResult
from penstock.decide.check.results import Result, encode, ended, is_of, lost, newest_by_node
from penstock.kube import NotFoundError as GoneError
from penstock.slurm import hostlist
from penstock.slurm.job_result import JobResult
from penstock.slurm.known import Known
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError

FORGOTTEN = "slurmctld has forgotten the job, and the cluster has no accounting"
NO_RECORD = "neither slurmctld nor slurmdbd has a record of the job"
MOST_ASKED = 100
"""Jobs that one reconcile asks for: their results are recorded before it goes on with others."""
FOR_SLURM_S, FOR_JOBS_S = 300.0, 3600.0
"""How long the deletion of a check waits for a Slurm that does not answer, and for its jobs."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The runs as they are now, and why results or reactions are still to come."""

    runs: tuple[Run, ...] = ()
    unknown: str = ""
    has_more: bool = False
    """Whether jobs are still to be asked for."""

    @property
    def postponed(self) -> tuple[str, ...]:
        """Nodes that are drained once checks may drain more."""
        return tuple(sorted({node for run in self.runs for node in run.waiting_nodes}))

    @property
    def waits(self) -> bool:
        """Whether a submitted job has no result yet."""
        return any(one.unhandled for one in self.runs)


@dataclass(slots=True)
class _State:
    written: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Annotations by the Job's uid, as they were written last: the cache may not show them yet."""
    last_asked: int = 0
    """The job that was asked for last: the next reconcile goes on after it."""
    ended: str = ""
    """Uid of the last Job after which reservations were ended."""
    reserved: frozenset[str] = frozenset()
    """Nodes in reservations at that time."""


@dataclass(slots=True)
class _Found:
    """New results by the Job's uid, and why some could not be had."""

    results: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])
    failure: str = ""
    has_more: bool = False


class ResultCollector:
    """The results of all ActiveChecks."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._reactions = NodeReactions(events, context.client.clock)
        self._rechecks = Rechecks(events)
        self._rooms = DrainRooms()
        self._events = events
        self._states = context.states(ACTIVE_CHECKS, _State)

    async def collect(self, check: ActiveCheck, cluster: SlurmCluster) -> Collected:
        """Bring what is known of the runs up to date. Raises KubeError."""
        runs = [self._with_written(check, one) for one in runs_of(self._caches, check)]
        for run in runs:
            if not run.is_recorded:
                await self._annotate(run, submission.submission_annotations(run.submission))
        self._forget(check, runs)
        link = self._connections.get(cluster.metadata.key)
        waits = any(one.unhandled for one in runs)
        self._states.of(check).reserved &= _reserved(link)
        has_room = any(one.postponed for one in runs) and _may_have_room(cluster, link)
        if not waits and not has_room and not self._may_recheck(check, runs, link):
            return Collected(tuple(runs))
        jobs = link.mirror.snapshot.jobs if link is not None else UNCONNECTED
        if link is None or link.client is None or not isinstance(jobs, Known):
            # Without the list of jobs that wait or run, each of them would be asked for.
            return Collected(tuple(runs), jobs.why if waits and not isinstance(jobs, Known) else "")
        active = {one.id for one in jobs.value}
        found = await self._found(check, link.client, runs, active, cluster)
        new = [result for results in found.results.values() for result in results]
        newest = newest_by_node([*results_of(runs), *new])
        waiting = _waiting(runs, newest)
        retried = waiting if has_room else frozenset[str]()
        async with self._rooms.of(cluster, link.client, link.mirror.snapshot) as room:
            reacted = await self._react(check, link, link.client, newest, {*new}, retried, room)
        postponed = (waiting - retried) | reacted.postponed
        self._emit_postponed(check, cluster, postponed - waiting)
        if reacted.changed:
            link.mirror.poll_soon()
        out: list[Run] = []
        for run in runs:
            done = [
                one
                for one in found.results.get(run.job.metadata.uid, ())
                if _is_done(one, reacted.kept)
            ]
            out.append(await self._record(check, run, done, {n: newest[n] for n in postponed}))
        failure = reacted.failure or found.failure or await self._end_rechecks(check, link, out)
        return Collected(tuple(out), failure, found.has_more)

    async def release(self, check: ActiveCheck, cluster: SlurmCluster) -> float:
        """End the reservations of a deleted check.

        Returns for how many seconds its deletion waits at most for those that are left: a job may
        run in one, but a Slurm that does not answer is no reason to wait for long.
        """
        runs = runs_of(self._caches, check)
        if check.status.slurm_jobs_status is None and not any(one.submission.ids for one in runs):
            return 0.0
        link = self._connections.get(cluster.metadata.key)
        if link is None or link.client is None:
            return FOR_SLURM_S
        try:
            if await self._rechecks.end(check, link.client, results_of(runs)):
                link.mirror.poll_soon()
        except SlurmError:
            return FOR_JOBS_S if isinstance(link.mirror.snapshot.jobs, Known) else FOR_SLURM_S
        return 0.0

    def _may_recheck(
        self, check: ActiveCheck, runs: Sequence[Run], link: SlurmConnection | None
    ) -> bool:
        """Whether a reservation may be left of which no job runs any more.

        A run for each worker may leave some. So may an earlier one, whose Job was deleted, or of a
        spec that was another one: then a node is reserved that was not so at the last search.
        """
        if any(not one.has_ended for one in runs):
            return False
        state = self._states.of(check)
        if runs and _is_for_each_worker(check) and state.ended != _last(runs):
            return True
        return _has_submitted(check) and not _reserved(link) <= state.reserved

    async def _end_rechecks(
        self, check: ActiveCheck, link: SlurmConnection, runs: Sequence[Run]
    ) -> str:
        """End reservations of the check once no job of it is left; why that failed."""
        if link.client is None or not self._may_recheck(check, runs, link):
            return ""
        reserved = _reserved(link)
        try:
            if await self._rechecks.end(check, link.client, results_of(runs)):
                link.mirror.poll_soon()
        except SlurmError as error:
            return str(error)
        state = self._states.of(check)
        state.ended, state.reserved = _last(runs), reserved
        return ""

    async def _found(
        self,
        check: ActiveCheck,
        client: Slurmrestd,
        runs: Sequence[Run],
        active: set[int],
        cluster: SlurmCluster,
    ) -> _Found:
        """Results of jobs that do not wait or run any more.

        A job without an answer withholds no other: the next reconcile goes on after it.
        """
        state, out = self._states.of(check), _Found()
        left = [(run, job) for run in runs for job in run.unhandled if job not in active]
        at = next((at for at, (_, job) in enumerate(left) if job == state.last_asked), -1) + 1
        left = [*left[at:], *left[:at]]
        out.has_more = len(left) > MOST_ASKED
        stored = self._clusters.has_slurmdbd(cluster)
        for run, job in left[:MOST_ASKED]:
            state.last_asked = job
            try:
                records = await client.job_results(job)
            except NotFoundError:
                if stored:
                    try:
                        records = await client.stored_job_results(job)
                    except SlurmError as error:
                        stored, out.failure, out.has_more = False, str(error), False
                        continue
                elif out.failure:
                    continue
                else:
                    records = ()
            except SlurmError as error:
                out.failure, out.has_more = str(error), False
                break
            results = _results(check.metadata.name, job, records, has_records=stored)
            out.results.setdefault(run.job.metadata.uid, []).extend(results)
        return out

    async def _react(
        self,
        check: ActiveCheck,
        link: SlurmConnection,
        client: Slurmrestd,
        newest: Mapping[str, Result],
        fresh: set[Result],
        retried: frozenset[str],
        room: DrainRoom,
    ) -> _Reacted:
        """Have each node react to the last result on it, if that is new or was postponed."""
        kept: set[str] = set()
        own = policy(check)
        failure, changed = "", False

        @cache
        def results_of_others() -> list[tuple[ActiveCheck, Mapping[str, Result]]]:
            return self._others(check)

        def others(node: str) -> list[NodeResult]:
            return [
                NodeResult(policy(one), last[node])
                for one, last in results_of_others()
                if node in last
            ]

        for node, result in newest.items():
            if result not in fresh and node not in retried:
                continue
            try:
                changed |= await self._reactions.react(
                    check, client, node, NodeResult(own, result), others, room, link
                )
            except SlurmError as error:
                kept.add(node)
                failure = str(error)
        postponed = room.postponed | (kept & retried)
        return _Reacted(frozenset(kept), frozenset(postponed), failure, changed)

    def _emit_postponed(
        self, check: ActiveCheck, cluster: SlurmCluster, nodes: frozenset[str]
    ) -> None:
        if nodes:
            share = share_words(cluster)
            words = f"Not drained: {hostlist.compress(sorted(nodes))}: checks may drain {share}"
            self._events.warning(check, Event.CHECK_POSTPONED, words, "Drain")

    def _others(self, check: ActiveCheck) -> list[tuple[ActiveCheck, Mapping[str, Result]]]:
        """The other checks of the cluster, each with its last result on each node."""
        key = f"{check.metadata.namespace}/{check.spec.slurm_cluster_ref_name}"
        return [
            (one, newest_by_node(results_of(runs_of(self._caches, one))))
            for one in self._caches.checks_of.get(key)
            if one.metadata.uid != check.metadata.uid and policy(one).reacts
        ]

    async def _record(
        self,
        check: ActiveCheck,
        run: Run,
        results: Sequence[Result],
        postponed: Mapping[str, Result],
    ) -> Run:
        """Write results to the Job, and its nodes among those that are postponed."""
        if not results and not run.postponed and not postponed:
            return run
        every = (*run.results, *results)
        of_run = set(every) if postponed else set[Result]()
        waiting = hostlist.compress(
            sorted(node for node, one in postponed.items() if one in of_run)
        )
        if not results and waiting == run.postponed:
            return run
        done = {one.job for one in every}
        ids = tuple(one for one in run.unhandled if one not in done)
        written = {
            RESULTS: encode(every) if results else run.recorded,
            submission.UNHANDLED_IDS: ",".join(map(str, ids)),
            POSTPONED: waiting,
        }
        annotations = dict(written)
        if waiting == run.postponed:
            del annotations[POSTPONED]
        if results and not ids:
            annotations[submission.FINAL_TIME] = times.write(self._client.clock.time())
        await self._annotate(run, annotations)
        self._states.of(check).written[run.job.metadata.uid] = written
        return replace(run, recorded=written[RESULTS], open=ids, postponed=waiting)

    def _with_written(self, check: ActiveCheck, run: Run) -> Run:
        """The run with its last results, which the cache may not show yet."""
        states, uid = self._states.of(check).written, run.job.metadata.uid
        written = states.get(uid)
        if written is None:
            return run
        if (run.recorded, run.postponed) == (written[RESULTS], written[POSTPONED]):
            del states[uid]
            return run
        ids = submission.ids_in(written[submission.UNHANDLED_IDS])
        return replace(run, recorded=written[RESULTS], open=ids, postponed=written[POSTPONED])

    def _forget(self, check: ActiveCheck, runs: Sequence[Run]) -> None:
        written, live = self._states.of(check).written, {one.job.metadata.uid for one in runs}
        for uid in written.keys() - live:
            del written[uid]

    async def _annotate(self, run: Run, annotations: Mapping[str, str]) -> None:
        meta = run.job.metadata
        body = {"metadata": {"uid": meta.uid, "annotations": dict(annotations)}}
        try:
            await self._client.patch(JOBS, meta.namespace, meta.name, body)
        except GoneError:
            return


@dataclass(frozen=True, slots=True)
class _Reacted:
    """Nodes whose reaction failed or is postponed, why, and whether any node was changed."""

    kept: frozenset[str]
    postponed: frozenset[str]
    failure: str
    changed: bool


def _waiting(runs: Iterable[Run], newest: Mapping[str, Result]) -> frozenset[str]:
    """Nodes that were postponed, and of which no later job shows another state."""
    found: set[str] = set()
    for run in runs:
        if run.postponed:
            results = set(run.results)
            found |= {node for node in run.waiting_nodes if newest.get(node) in results}
    return frozenset(found)


def _may_have_room(cluster: SlurmCluster, link: SlurmConnection | None) -> bool:
    return link is not None and may_have_room(cluster, link.mirror.snapshot)


def _is_done(result: Result, kept: frozenset[str]) -> bool:
    return kept.isdisjoint(result.nodes)


def _results(
    check: str, job: int, records: Sequence[JobResult], *, has_records: bool
) -> tuple[Result, ...]:
    """The results of one job under the id that was submitted; none while it waits or runs."""
    if not records:
        return (lost(job, NO_RECORD if has_records else FORGOTTEN),)
    if not is_of(check, records):
        return (lost(job, f"the job of that id is {records[0].name} now, which is no job of ours"),)
    found = ended(records)
    # Tasks of a job array have ids of their own.
    return () if found is None else tuple(replace(one, job=job) for one in found)


def _has_submitted(check: ActiveCheck) -> bool:
    """Whether a run of the check has submitted Slurm jobs, or may have done so."""
    return check.spec.check_type == "slurmJob" or check.status.slurm_jobs_status is not None


def _is_for_each_worker(check: ActiveCheck) -> bool:
    declared = check.spec.slurm_job_spec
    if declared is None or check.spec.check_type != "slurmJob":
        return False
    return declared.each_worker_jobs or declared.each_worker_job_array


def _last(runs: Sequence[Run]) -> str:
    return runs[-1].job.metadata.uid if runs else ""


def _reserved(link: SlurmConnection | None) -> frozenset[str]:
    """Nodes that are in a reservation, as far as they are known."""
    nodes = link.mirror.snapshot.nodes if link is not None else UNCONNECTED
    if not isinstance(nodes, Known):
        return frozenset()
    return frozenset(one.name for one in nodes.value.values() if one.state & RESERVED)
