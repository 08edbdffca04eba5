"""Restore: stops a SlurmCluster, has a Job put its files back, and lets it start again.

A cluster is annotated with the resourceVersion that was decided on, so of two writers one fails.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import JOBS, PODS
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.labels import STOPPED
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.backup import BACKUPS
from penstock.api.penstock.restore import RESTORE_FINALIZER as FINALIZER
from penstock.api.penstock.restore import RESTORES, Restore, RestoreStatus
from penstock.base import times
from penstock.catalog.event import Event
from penstock.controllers.nebius.backup.database_login import database_of
from penstock.controllers.nebius.backup.view import ENDED, WORKERS, RestoreObserver, Target, mark
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import RESTORES_BY_NAMESPACE
from penstock.controllers.observed.watching import own_key
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.signals import SLURM
from penstock.decide.backup.restore import RestoreAction, RestoreStep, RestoreView, next_step
from penstock.kube import AlreadyExistsError, ConflictError, NotFoundError, Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch
from penstock.render.nebius.backup import job as render
from penstock.slurm.known import Known
from penstock.slurm.rest.errors import SlurmError

RETRY_S: Final = 5.0
"""Seconds until the next step while something is waited for that no watch may report."""


def restores_beside(obj: KubeObject, lookup: Lookup) -> list[str]:
    """The Restores at work in an object's namespace."""
    found = lookup.by(RESTORES_BY_NAMESPACE, obj.metadata.namespace)
    return [one.metadata.key for one in found if one.status.phase not in ENDED]


def restores_of(key: str, lookup: Lookup) -> list[str]:
    """The Restores at work in the namespace of a cluster."""
    found = lookup.by(RESTORES_BY_NAMESPACE, key.partition("/")[0])
    return [one.metadata.key for one in found if one.status.phase not in ENDED]


@dataclass(slots=True)
class _State:
    step: RestoreStep | None = None
    status: RestoreStatus = field(default_factory=RestoreStatus)


class RestoreReconciler(Reconciler[Restore]):
    """Puts the files of SlurmClusters back."""

    name = "restore"
    resource = RESTORES
    watches: tuple[Watch[Any], ...] = (
        Watch(RESTORES, own_key),
        # Of two of a cluster the second one waits for the end of the first one.
        Watch(RESTORES, restores_beside),
        Watch(BACKUPS, restores_beside),
        Watch(SLURM_CLUSTERS, restores_beside),
        Watch(JOBS, restores_beside),
        Watch(PODS, restores_beside),
    )
    signals = (Signal(SLURM, restores_of),)

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._observer = RestoreObserver(context)
        self._states = context.states(RESTORES, _State)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one Restore; one that has ended, and whose cluster has started, stays as is."""
        obj = self._cache.get(key)
        if obj is None:
            return Result()
        if obj.metadata.deleting:
            return Result(requeue_after=await self._finalize(obj))
        if obj.status.phase in ENDED and not self._has_stopped(obj):
            if FINALIZER in obj.metadata.finalizers:
                await self._set_finalizer(obj, present=False)
            return Result()
        return await super().reconcile(key)

    async def reconcile_object(self, obj: Restore) -> list[Finding]:
        """Do the next step."""
        state, target = self._states.of(obj), self._observer.target(obj)
        view = self._observer.view(obj, target)
        step = next_step(view)
        if step.action is RestoreAction.STOP and view.run is None and target.cluster is not None:
            step = next_step(await self._observer.with_present_jobs(view, target.cluster))
        state.step = step
        if step.action is RestoreAction.STOP and not _is_prepared(obj, target):
            # Who deletes it from now on has the cluster started again. The status comes with it.
            await self._set_finalizer(obj, present=True)
        elif target.cluster is not None:
            await self._act(obj, target.cluster, target, step)
        state.status = self._status(obj, view, step)
        return [step.finding]

    async def _act(
        self, obj: Restore, cluster: SlurmCluster, target: Target, step: RestoreStep
    ) -> None:
        match step.action:
            case RestoreAction.STOP:
                if await self._annotate(cluster, mark(obj)):
                    words = f"Stopping SlurmCluster {cluster.metadata.name}"
                    self.events.normal(obj, Event.UPDATE_SUCCEEDED, words, "Update")
            case RestoreAction.START:
                if self._has_stopped(obj) and await self._annotate(cluster, None):
                    words = f"Starting SlurmCluster {cluster.metadata.name}"
                    self.events.normal(obj, Event.UPDATE_SUCCEEDED, words, "Update")
            case RestoreAction.END_JOBS:
                await self._end_jobs(cluster)
            case RestoreAction.DELETE_JOB:
                await self._delete_job(cluster)
            case RestoreAction.CREATE_JOB if target.source is not None:
                inputs = self._clusters.inputs(cluster)
                database = database_of(self._caches, cluster, obj.spec.parts)
                manifest = render.restore_job(inputs, obj, target.source, database)
                # The cache may not show the Job yet: of this Restore, or of another one.
                with contextlib.suppress(AlreadyExistsError):
                    await self.client.create(JOBS, manifest)
                    words = f"Created Job {manifest['metadata']['name']}"
                    self.events.normal(obj, Event.CREATE_SUCCEEDED, words, "Create")
            case _:
                pass

    async def _end_jobs(self, cluster: SlurmCluster) -> None:
        """Cancel what runs. Workers that Slurm does not answer for would never be drained."""
        jobs, link = self._observer.jobs(cluster), self._connections.get(cluster.metadata.key)
        if isinstance(jobs, Known) and link is not None and link.client is not None:
            for one in jobs.value:
                with contextlib.suppress(SlurmError):
                    await link.client.cancel(one.id)
            return
        for pod in self._observer.pods(cluster):
            meta = pod.metadata
            if meta.labels.get(app_labels.APP_COMPONENT) in WORKERS and not meta.deleting:
                with contextlib.suppress(NotFoundError, ConflictError):
                    await self.client.delete(PODS, meta.namespace, meta.name, uid=meta.uid)

    async def _annotate(self, cluster: SlurmCluster, value: str | None) -> bool:
        """Write or remove the annotation; return whether that was done."""
        meta = cluster.metadata
        body = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {STOPPED: value},
        }
        try:
            await self.client.patch(SLURM_CLUSTERS, meta.namespace, meta.name, {"metadata": body})
        except (ConflictError, NotFoundError):
            # The cache shows the newer object soon.
            return False
        return True

    async def _delete_job(self, cluster: SlurmCluster) -> bool:
        """Delete the Job of the cluster; return whether there was one."""
        job = self._observer.job(cluster)
        if job is None:
            return False
        if not job.metadata.deleting:
            with contextlib.suppress(NotFoundError, ConflictError):
                meta = job.metadata
                await self.client.delete(JOBS, meta.namespace, meta.name, uid=meta.uid)
        return True

    def _has_stopped(self, obj: Restore) -> bool:
        cluster = self._observer.target(obj).cluster
        return cluster is not None and cluster.metadata.annotations.get(STOPPED) == mark(obj)

    def _status(self, obj: Restore, view: RestoreView, step: RestoreStep) -> RestoreStatus:
        now, old = times.write(self.client.clock.time()), obj.status
        phase = step.phase
        if phase in ENDED and self._has_stopped(obj):
            # The phase ends it, so it comes after the start of the cluster was seen.
            phase = "Restoring"
        begun = step.action is RestoreAction.STOP or view.is_stopped
        snapshot = view.run.result.snapshot if view.run is not None else ""
        return replace(
            old,
            phase=phase,
            cluster=old.cluster or (view.cluster if begun else ""),
            started_time=old.started_time or (now if begun and phase != "Waiting" else ""),
            completed_time=old.completed_time or (now if phase in ENDED else ""),
            snapshot=snapshot or old.snapshot,
        )

    def status(self, obj: Restore) -> Status:
        """How far it is."""
        return self._states.of(obj).status

    def requeue_after(self, obj: Restore) -> float | None:
        """Soon until it has ended."""
        step = self._states.of(obj).step
        ended = step is None or (step.phase in ENDED and not self._has_stopped(obj))
        return None if ended else RETRY_S

    async def _finalize(self, obj: Restore) -> float | None:
        """Delete the Job, and let the cluster start. Returns the seconds until the next try."""
        if FINALIZER not in obj.metadata.finalizers:
            return None
        cluster = self._observer.target(obj).cluster
        if cluster is not None:
            job = self._observer.job(cluster)
            owner = job.metadata.controller if job is not None else None
            if owner is not None and owner.uid == obj.metadata.uid:
                await self._delete_job(cluster)
                return RETRY_S
            if self._has_stopped(obj) and not await self._annotate(cluster, None):
                return RETRY_S
        await self._set_finalizer(obj, present=False)
        return None

    async def _set_finalizer(self, obj: Restore, *, present: bool) -> None:
        meta = obj.metadata
        found = [one for one in meta.finalizers if one != FINALIZER]
        body = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "finalizers": [*found, FINALIZER] if present else found,
        }
        # Of a conflict the cache shows the newer object soon.
        with contextlib.suppress(NotFoundError, ConflictError):
            await self.client.patch(RESTORES, meta.namespace, meta.name, {"metadata": body})


def _is_prepared(obj: Restore, target: Target) -> bool:
    """Whether its deletion, from now on, has the cluster started again."""
    return FINALIZER in obj.metadata.finalizers and obj.status.cluster == target.name
