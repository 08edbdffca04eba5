"""Leads the workers of one object, whatever API it is of: observe, plan, act.

A controller of an API makes a `WorkerSource` of its object, runs the engine, and writes what comes
of it to the object's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node, PersistentVolumeClaim, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nodeset.actor import Actor
from penstock.controllers.rollout.revision_history import EqualRevisions, record_revisions
from penstock.controllers.rollout.rollback import Rollbacks
from penstock.controllers.runtime.reconciler import REFUSED, Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import (
    UNCONNECTED,
    SlurmConnection,
    SlurmConnections,
)
from penstock.controllers.slurm_node.drift import NodeDrifts
from penstock.controllers.workers.caches import WorkerCaches, owner_of
from penstock.controllers.workers.source import WorkerSource
from penstock.decide import drift, scale
from penstock.decide.advice import pod_security
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed.deletion import deletion_of
from penstock.decide.observed.reservations import ObservedReservations
from penstock.decide.observed.revisions import Revisions
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.decide.rollout import maintenance
from penstock.kube.runtime.state import StateByUid, gone
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_status import WorkerSetStatus
from penstock.slurm.versions import RESERVATION_CALLS_SINCE

REPEAT_S = 3.0
"""Pause before an action that Slurm did not let happen is planned again."""
AT_ONCE_S = 0.02
"""Pause before an object that changed during its reconcile is reconciled again."""
SOON_S = 1.0
"""Pause while a cache or Slurm does not show yet what a plan needs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one reconcile.

    `status` is None where nothing was planned: the object's status stays. `rejected` is what the
    API server rejected; to be raised once the findings are written.
    """

    findings: list[Finding] = field(default_factory=list[Finding])
    status: WorkerSetStatus | None = None
    rejected: Exception | None = None
    requeue_after: float | None = None


class WorkerSetEngine:
    """The workers of all objects of one kind. State in memory goes with its object."""

    def __init__(
        self,
        context: Context,
        resource: Resource[Any],
        caches: WorkerCaches,
        events: Events,
        connections: SlurmConnections,
    ) -> None:
        self._client = context.client
        self._settings = context.settings
        self._caches = caches
        self._connections = connections
        client, objects = context.client, context.caches.store.of(resource)
        self._plans = StateByUid(objects, PlanCache)
        self._actor = Actor(client, objects, caches, events)
        self._nodes = NodeDrifts(client, objects, events)
        self._rollbacks = Rollbacks(client, objects, caches, events)
        objects.subscribe(self._changed)

    async def run(self, source: WorkerSource) -> Outcome:
        """Bring the workers closer to their spec. Raises KubeError."""
        workers = source.workers
        meta = workers.metadata
        if not self._actor.has_seen_own_writes(workers):
            # The cache does not show our own writes yet; acting on it could do them twice.
            return Outcome(requeue_after=SOON_S)
        connection = source.connection()
        needs = maintenance.needs_reservations(workers)
        self._connections.need_reservations(meta.uid, needs=needs, of=connection)
        if source.is_cluster_ready and self._is_first_answer_missing(workers, connection):
            # A new process would report Slurm as silent, and take that back a moment later.
            return Outcome(requeue_after=SOON_S)
        if await self._rollbacks.run(source):
            return Outcome(requeue_after=SOON_S)
        blocked = source.creation_blocked()
        equal = EqualRevisions()
        exists = source.is_cluster_ready or self._caches.pods_of.get(owner_of(workers))
        # An object that waits for its first pod writes nothing yet.
        if exists and source.is_template_known and not meta.deleting:
            fixed = self._actor.rejections.gres(workers)
            equal = await record_revisions(self._client, self._caches, source, fixed)
        if _is_active(source):
            await source.apply_shared_objects()
        if source.has_newer():
            # The writes took their time; no plan is made for a spec of the past.
            return Outcome(requeue_after=AT_ONCE_S)
        connection = source.connection()
        view = self._view(source, connection, blocked, equal)
        planned = plan(view, self._plans.of(workers))
        if planned.takes_idle and connection is not None and connection.mirror.snapshot.known:
            # A job may have ended since the last answer, or begun.
            await connection.mirror.poll()
            if source.has_newer():
                return Outcome(requeue_after=AT_ONCE_S)
            view = self._view(source, connection, blocked, equal)
            planned = plan(view, self._plans.of(workers))
        findings = [*source.problems, *planned.findings, *self._rollbacks.findings(workers)]
        findings += scale.cost_findings(workers.marks, view.pods)
        rejected: Exception | None = None
        done = True
        try:
            done = await self._actor.act(
                source, planned.actions, connection, is_orphaned=deletion_of(view).is_orphaned
            )
            if _is_active(source):
                findings += source.partition_findings()
                findings += await self._drift_findings(source, view, connection)
                findings += await source.findings(view, connection)
        except REFUSED as error:
            rejected = error
            other = Finding(
                False,
                ObjectReason.REFUSED,
                f"The API server rejects an object of this one: {error}",
            )
            findings.insert(0, pod_security.finding(str(error)) or other)
        delays = [
            planned.requeue_after,
            None if done else REPEAT_S,
            self._actor.registrations.requeue_after(workers),
            self._nodes.requeue_after(workers),
            source.requeue_after(view),
        ]
        soonest = min(filter(None, delays), default=None)
        return Outcome(findings, planned.status, rejected, soonest)

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if (one := gone(old, new)) is not None:
            self._connections.need_reservations(one.metadata.uid, needs=False)

    def _is_first_answer_missing(
        self, workers: WorkerSet, connection: SlurmConnection | None
    ) -> bool:
        """Whether its status has what an earlier process saw in Slurm, and this one saw nothing.

        Workers that never reached Slurm start without it: slurmd waits for slurmctld.
        """
        last = workers.last
        if not last.observed_generation:
            return False
        seen = last.slurm_idle or last.slurm_allocated or last.slurm_down or last.slurm_drain
        if not seen and not any(pod.ready for pod in self._caches.pods_of.get(owner_of(workers))):
            return False
        if connection is None or not connection.has_answered:
            return True
        return maintenance.needs_reservations(workers) and not connection.reservations.has_answered

    async def _drift_findings(
        self, source: WorkerSource, view: WorkerSetView, connection: SlurmConnection | None
    ) -> list[Finding]:
        """What was changed in Slurm itself: of its nodes and of its own partition."""
        meta = source.workers.metadata
        chosen, wrong = drift.choice(meta.annotations)
        of_nodes = await self._nodes.resolve(source, view, connection, chosen)
        of_partition = await source.partition_drift(chosen)
        words = None
        if of_nodes is not None and of_partition is not None:
            words = [*of_partition, *of_nodes]
        return [*wrong, *drift.findings(words, source.workers.last.conditions)]

    def _view(
        self,
        source: WorkerSource,
        connection: SlurmConnection | None,
        blocked: Finding | None,
        equal: EqualRevisions,
    ) -> WorkerSetView:
        workers = source.workers
        pods = self._caches.pods_of.get(owner_of(workers))
        snapshot = connection.mirror.snapshot if connection is not None else None
        return WorkerSetView(
            workers=workers,
            controller=source.cluster_state(),
            pods=pods,
            nodes=snapshot.nodes if snapshot is not None else UNCONNECTED,
            jobs=snapshot.jobs if snapshot is not None else UNCONNECTED,
            now=self._client.clock.time(),
            revisions=Revisions(source.revision().hash, equal.hashes, equal.parameters),
            kubernetes_nodes=self._kubernetes_nodes(workers, pods),
            pvcs=self._pvcs(workers),
            others=self._caches.conflicting_pods(workers),
            creation_blocked=blocked,
            propagated_conditions=self._settings.propagated_node_conditions,
            reservations=ObservedReservations(
                connection.reservations.records if connection else UNCONNECTED,
                self._actor.reservations.rejected(workers),
                _no_reservations(connection),
            ),
            cannot_register=self._actor.registrations.unable(workers),
            external=source.external(),
            rejected_topologies=self._actor.rejections.of(workers, pods),
        )

    def _pvcs(self, workers: WorkerSet) -> dict[str, PersistentVolumeClaim]:
        if not workers.pvcs.templates:
            return {}
        found = self._caches.pvcs_of.get(workers.metadata.key)
        return {pvc.metadata.name: pvc for pvc in found}

    def _kubernetes_nodes(self, workers: WorkerSet, pods: Iterable[Pod]) -> Mapping[str, Node]:
        """Those that a plan reads: all where each that fits has a pod."""
        if workers.per_node:
            return {node.metadata.name: node for node in self._caches.nodes}
        names = {pod.spec.node_name or "" for pod in pods}
        names |= set(workers.last.ordinal_to_node.values())
        found = ((name, self._caches.nodes.get(name)) for name in names)
        return {name: node for name, node in found if node is not None}


def node_matters(old: Node | None, new: Node | None) -> bool:
    """Whether a change of a Kubernetes node can change what is decided about its pods.

    Nodes are written every few minutes by their kubelets; most of it means nothing here.
    """
    if old is None or new is None:
        return True
    return (
        old.spec != new.spec
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.labels != new.metadata.labels
        or _statuses(old) != _statuses(new)
    )


def _statuses(node: Node) -> list[tuple[str, str, str | None]]:
    return [(one.type, one.status, one.reason) for one in node.status.conditions or ()]


def _is_active(source: WorkerSource) -> bool:
    """Whether objects and Slurm follow the spec, beyond the pods that exist."""
    deleting = source.workers.metadata.deleting
    return source.is_cluster_ready and not deleting and not source.problems


def _no_reservations(connection: SlurmConnection | None) -> str:
    client = connection.client if connection is not None else None
    return client.lacks(RESERVATION_CALLS_SINCE) if client is not None else ""
