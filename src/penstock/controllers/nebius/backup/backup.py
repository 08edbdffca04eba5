"""Backup: its CronJob or Job, and what the last ones of its Jobs came to."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CRON_JOBS, JOBS, PODS
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.labels import STOPPED
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.backup import BACKUPS, Backup, BackupStatus
from penstock.base import times
from penstock.catalog import metric
from penstock.catalog.event import Event
from penstock.catalog.reasons.backup import BackupReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.nebius.backup.database_login import database_of, missing_login
from penstock.controllers.nebius.backup.repository_secrets import missing_key
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import BACKUPS_BY_CLUSTER, NebiusCaches, backup_of
from penstock.controllers.observed.watching import indexed, own_key, owner_of
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.decide.backup.run import Run, newest, run_of
from penstock.decide.backup.schedule import BackupView, finding, is_due
from penstock.kube import AlreadyExistsError, Result
from penstock.kube.client.collectors import gauge
from penstock.kube.runtime.declaration import Watch
from penstock.render.nebius.backup import job as render
from penstock.render.nebius.backup import names

RETRY_S: Final = 15.0
"""Seconds until a Secret that is absent is searched again."""


@dataclass(slots=True)
class _State:
    status: BackupStatus = field(default_factory=BackupStatus)
    lacks_secret: bool = False


class BackupReconciler(Reconciler[Backup]):
    """Has the files of SlurmClusters copied."""

    name = "backup"
    resource = BACKUPS
    watches: tuple[Watch[Any], ...] = (
        Watch(BACKUPS, own_key),
        Watch(SLURM_CLUSTERS, indexed(BACKUPS_BY_CLUSTER, own_key)),
        Watch(CRON_JOBS, owner_of(BACKUPS)),
        Watch(JOBS, backup_of),
        Watch(PODS, backup_of),
    )

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._states = context.states(BACKUPS, _State)
        self._last_good = gauge(metric.BACKUP_LAST_GOOD, self.client.metrics.registry)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one Backup; of a deleted one Kubernetes deletes the Jobs."""
        obj = self._cache.get(key)
        space, _, name = key.partition("/")
        if obj is None or obj.metadata.deleting:
            with contextlib.suppress(KeyError):
                self._last_good.remove(space, name)
            return Result()
        done = await super().reconcile(key)
        when = times.parse(self._states.of(obj).status.last_good_time) or 0.0
        self._last_good.labels(space, name).set(when)
        return done

    async def reconcile_object(self, obj: Backup) -> list[Finding]:
        """Read the results of its Jobs, and create what runs next."""
        state = self._states.of(obj)
        runs = runs_of(self._caches, obj)
        # The cache may not show the status yet that was written just now: a single backup whose Job
        # goes at that moment would be made twice.
        old = max(obj.status, state.status, key=lambda one: one.last_good_time)
        state.status = _status(old, runs)
        cluster = self._cluster(obj)
        if cluster is None:
            words = f"SlurmCluster {obj.spec.cluster_ref.name} does not exist"
            fix = "Create it in this namespace, or correct spec.clusterRef.name"
            return [Finding(None, ObjectReason.SLURM_CLUSTER_NOT_FOUND, f"{words}. {fix}")]
        view = BackupView(
            runs=runs,
            schedule=obj.spec.schedule,
            suspended=obj.spec.suspend,
            stopped=cluster.metadata.annotations.get(STOPPED),
            last_good=state.status.last_good_time,
            snapshot=state.status.snapshot,
        )
        inputs = self._clusters.inputs(cluster)
        if missing := render.missing_parts(inputs, obj.spec.parts):
            words = f"spec.parts: {missing}. Remove the part"
            return [Finding(False, ObjectReason.INVALID, words)]
        missing = missing_key(self._secrets, obj.metadata.namespace, obj.spec.repository)
        missing = f"spec.repository: {missing}" if missing else ""
        database = database_of(self._caches, cluster, obj.spec.parts)
        missing = missing or missing_login(self._secrets, obj.metadata.namespace, database)
        state.lacks_secret = bool(missing)
        if missing:
            words = f"{missing}. Create it"
            return [Finding(None, ObjectReason.SECRET_NOT_FOUND, words)]
        if obj.spec.schedule:
            manifest = render.cron_job(inputs, obj, database, suspend=view.rests)
            await self.objects.apply(obj, self.events, [manifest])
        else:
            name = names.backup_job(obj.metadata.name)
            await self.objects.remove(obj, self.events, "CronJob", name)
        if is_due(view):
            return [await self._begin(obj, render.single_job(inputs, obj, database))]
        return [finding(view)]

    async def _begin(self, obj: Backup, manifest: dict[str, Any]) -> Finding:
        name = manifest["metadata"]["name"]
        # The cache may not show the Job yet that was created just now.
        with contextlib.suppress(AlreadyExistsError):
            await self.client.create(JOBS, manifest)
            self.events.normal(obj, Event.CREATE_SUCCEEDED, f"Created Job {name}", "Create")
        return Finding(None, BackupReason.RUNNING, f"Job {name} makes the first backup")

    def requeue_after(self, obj: Backup) -> float | None:
        """Soon while a Secret is waited for."""
        return RETRY_S if self._states.of(obj).lacks_secret else None

    def status(self, obj: Backup) -> Status:
        """The last backup, and the last good one."""
        return self._states.of(obj).status

    def _cluster(self, obj: Backup) -> SlurmCluster | None:
        key = f"{obj.metadata.namespace}/{obj.spec.cluster_ref.name}"
        found = self._caches.clusters.get(key)
        return None if found is None or found.metadata.deleting else found


def runs_of(caches: NebiusCaches, backup: Backup) -> tuple[Run, ...]:
    """The Jobs of a Backup that its CronJob or itself owns, not those of a former one."""
    jobs = caches.jobs_of_backup.get(backup.metadata.key)
    cron = caches.cron_jobs.get(
        f"{backup.metadata.namespace}/{names.backup_job(backup.metadata.name)}"
    )
    owners = {backup.metadata.uid, cron.metadata.uid if cron is not None else ""}
    return tuple(
        run_of(job, caches.pods_of.get(owned_by(JOBS, job)))
        for job in jobs
        if not job.metadata.deleting
        and (owner := job.metadata.controller) is not None
        and owner.uid in owners
    )


def _status(old: BackupStatus, runs: tuple[Run, ...]) -> BackupStatus:
    """The status with the newest results; Jobs that are gone stay counted."""
    ended = newest(one for one in runs if one.status.has_ended)
    good = newest(one for one in runs if one.is_good)
    if ended is not None:
        old = replace(old, last_job=ended.job)
    if good is None or good.ended < (times.parse(old.last_good_time) or 0.0):
        return old
    found = good.result
    when = times.write(good.ended)
    if not found.snapshot and when == old.last_good_time:
        # Its pod has gone since.
        return old
    return replace(
        old,
        last_good_time=when,
        snapshot=found.snapshot,
        bytes=found.bytes,
        added_bytes=found.added,
    )
