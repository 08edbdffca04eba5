"""Collects the results of a check's Slurm jobs, and has the nodes react to them.

The results come from slurmctld; of jobs that it has forgotten they come from slurmdbd, where the
cluster has accounting. A result is recorded in the Kubernetes Job once all its nodes have had their
reaction, so a process that ends in between repeats it: no reaction does harm the second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.api.kubernetes.kinds import JOBS
from penstock.api.nebius.active_check import ACTIVE_CHECKS, ActiveCheck
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.base import times
from penstock.controllers.nebius.checks.policy import policy
from penstock.controllers.nebius.checks.reactions import NodeReactions
from penstock.controllers.nebius.checks.rechecks import Rechecks
from penstock.controllers.nebius.checks.runs import RESULTS, Run, results_of, runs_of
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.decide.check import submission
from penstock.decide.check.reaction import NodeResult
from penstock.decide.check.results import Result, encode, ended, lost, newest_by_node
from penstock.kube import NotFoundError as GoneError
from penstock.slurm.known import Known
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError

FORGOTTEN = "slurmctld has forgotten the job, and the cluster has no accounting"
NO_RECORD = "neither slurmctld nor slurmdbd has a record of the job"


@dataclass(frozen=True, slots=True)
class Collected:
    """The runs as they are now, and why results or reactions are still to come."""

    runs: tuple[Run, ...] = ()
    unknown: str = ""

    @property
    def waits(self) -> bool:
        """Whether a submitted job has no result yet."""
        return any(one.unhandled for one in self.runs)


@dataclass(slots=True)
class _State:
    written: dict[str, tuple[Result, ...]] = field(default_factory=dict[str, tuple[Result, ...]])
    """Results by the Job's uid, as they were written last: the cache may not show them yet."""
    ended: str = ""
    """Uid of the last Job after which reservations were ended."""


class ResultCollector:
    """The results of all ActiveChecks."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._reactions = NodeReactions(events)
        self._rechecks = Rechecks(events)
        self._states = context.states(ACTIVE_CHECKS, _State)

    async def collect(self, check: ActiveCheck, cluster: SlurmCluster) -> Collected:
        """Bring what is known of the runs up to date. Raises KubeError."""
        if check.spec.check_type != "slurmJob":
            return Collected(runs_of(self._caches, check))
        runs = [self._with_written(check, one) for one in runs_of(self._caches, check)]
        for run in runs:
            if not run.is_recorded:
                await self._annotate(run, submission.submission_annotations(run.submission))
        self._forget(check, runs)
        if not any(one.unhandled for one in runs) and not self._may_recheck(check, runs):
            return Collected(tuple(runs))
        link = self._connections.get(cluster.metadata.key)
        if link is None or link.client is None:
            jobs = link.mirror.snapshot.jobs if link is not None else UNCONNECTED
            asked = any(one.unhandled for one in runs)
            why = jobs.why if asked and not isinstance(jobs, Known) else ""
            return Collected(tuple(runs), why)
        jobs = link.mirror.snapshot.jobs
        active = {one.id for one in jobs.value} if isinstance(jobs, Known) else set[int]()
        try:
            found = await self._found(link.client, runs, active, cluster)
        except SlurmError as error:
            return Collected(tuple(runs), str(error))
        new = [result for results in found.values() for result in results]
        reacted = await self._react(check, link.client, runs, new)
        if reacted.changed:
            link.mirror.poll_soon()
        out: list[Run] = []
        for run in runs:
            done = [
                one for one in found.get(run.job.metadata.uid, ()) if _is_done(one, reacted.kept)
            ]
            out.append(await self._record(check, run, done))
        failure = reacted.failure or await self._end_rechecks(check, link, out)
        return Collected(tuple(out), failure)

    def _may_recheck(self, check: ActiveCheck, runs: Sequence[Run]) -> bool:
        """Whether all has ended of a run that may have left reservations."""
        declared = check.spec.slurm_job_spec
        if declared is None or not (declared.each_worker_jobs or declared.each_worker_job_array):
            return False
        if not runs or any(not one.has_ended for one in runs):
            return False
        return self._states.of(check).ended != runs[-1].job.metadata.uid

    async def _end_rechecks(
        self, check: ActiveCheck, link: SlurmConnection, runs: Sequence[Run]
    ) -> str:
        """End reservations of the check once no job of it is left; why that failed."""
        if link.client is None or not self._may_recheck(check, runs):
            return ""
        try:
            if await self._rechecks.end(check, link.client, results_of(runs)):
                link.mirror.poll_soon()
        except SlurmError as error:
            return str(error)
        self._states.of(check).ended = runs[-1].job.metadata.uid
        return ""

    async def _found(
        self,
        client: Slurmrestd,
        runs: Sequence[Run],
        active: set[int],
        cluster: SlurmCluster,
    ) -> Mapping[str, list[Result]]:
        """New results by the Job's uid. Raises SlurmError."""
        out: dict[str, list[Result]] = {}
        for run in runs:
            for job in run.unhandled:
                if job in active:
                    continue
                results = await self._query(client, job, cluster)
                if results is not None:
                    out.setdefault(run.job.metadata.uid, []).extend(results)
        return out

    async def _query(
        self, client: Slurmrestd, job: int, cluster: SlurmCluster
    ) -> tuple[Result, ...] | None:
        """The results of one job under the id that was submitted; None while it waits or runs."""
        try:
            records = await client.job_results(job)
        except NotFoundError:
            if not self._clusters.has_slurmdbd(cluster):
                return (lost(job, FORGOTTEN),)
            records = await client.stored_job_results(job)
            if not records:
                return (lost(job, NO_RECORD),)
        found = ended(records)
        # Tasks of a job array have ids of their own.
        return None if found is None else tuple(replace(one, job=job) for one in found)

    async def _react(
        self, check: ActiveCheck, client: Slurmrestd, runs: Sequence[Run], new: Sequence[Result]
    ) -> _Reacted:
        """Have each node react to the last result on it, if that is a new one."""
        kept: set[str] = set()
        own = policy(check)
        others: list[tuple[ActiveCheck, Mapping[str, Result]]] | None = None
        failure, changed = "", False
        for node, result in newest_by_node([*results_of(runs), *new]).items():
            if result not in new:
                continue
            if others is None:
                others = self._others(check)
            beside = [NodeResult(policy(one), last[node]) for one, last in others if node in last]
            try:
                changed |= await self._reactions.react(
                    check, client, node, NodeResult(own, result), beside
                )
            except SlurmError as error:
                kept.add(node)
                failure = str(error)
        return _Reacted(frozenset(kept), failure, changed)

    def _others(self, check: ActiveCheck) -> list[tuple[ActiveCheck, Mapping[str, Result]]]:
        """The other checks of the cluster, each with its last result on each node."""
        key = f"{check.metadata.namespace}/{check.spec.slurm_cluster_ref_name}"
        return [
            (one, newest_by_node(results_of(runs_of(self._caches, one))))
            for one in self._caches.checks_of.get(key)
            if one.metadata.uid != check.metadata.uid and policy(one).reacts
        ]

    async def _record(self, check: ActiveCheck, run: Run, results: Sequence[Result]) -> Run:
        """Write results to the Job."""
        if not results:
            return run
        new = replace(run, results=(*run.results, *results))
        left = ",".join(map(str, new.unhandled))
        annotations = {RESULTS: encode(new.results), submission.UNHANDLED_IDS: left}
        if not left:
            annotations[submission.FINAL_TIME] = times.write(self._client.clock.time())
        await self._annotate(run, annotations)
        self._states.of(check).written[run.job.metadata.uid] = new.results
        return new

    def _with_written(self, check: ActiveCheck, run: Run) -> Run:
        written = self._states.of(check).written.get(run.job.metadata.uid, ())
        return replace(run, results=written) if len(written) > len(run.results) else run

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
    """Nodes whose reaction failed, why, and whether any node was changed."""

    kept: frozenset[str]
    failure: str
    changed: bool


def _is_done(result: Result, kept: frozenset[str]) -> bool:
    return kept.isdisjoint(result.nodes)
