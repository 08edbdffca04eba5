"""JailUpgrade: its Jobs one after the other, and what they came to."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import JOBS, PODS, Job
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.jail_upgrade import JAIL_UPGRADES, JailUpgrade, JailUpgradeStatus
from penstock.api.penstock.restore import RESTORES
from penstock.base import times
from penstock.catalog.event import Event
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.nebius.backup.view import ENDED
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import JAIL_UPGRADES_BY_NAMESPACE, upgrade_of
from penstock.controllers.observed.watching import own_key
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.decide.backup.run import last_ended, run_of
from penstock.decide.check.kubernetes_job import job_status
from penstock.decide.jail_upgrade import (
    Changes,
    JailUpgradeStep,
    JailUpgradeView,
    JobRun,
    next_step,
)
from penstock.kube import AlreadyExistsError, ConflictError, NotFoundError, Result
from penstock.kube.runtime.declaration import Lookup, Watch
from penstock.model.jail import UpgradeAction
from penstock.render.nebius import jail_upgrade as render

RETRY_S: Final = 15.0
"""Seconds until the next reconcile while something is waited for."""
WRITING: Final = ("Applying", "Undoing")
_LAST: Final = ("Succeeded", "Undone")
OVERWRITE: Final = {"name": "OVERWRITE", "value": "1"}
"""Variable of the Job that fills a jail."""


def upgrades_beside(obj: Any, lookup: Lookup) -> list[str]:
    """The JailUpgrades of an object's namespace that have not come to an end."""
    found = lookup.by(JAIL_UPGRADES_BY_NAMESPACE, obj.metadata.namespace)
    return [one.metadata.key for one in found if one.status.phase not in _LAST]


@dataclass(slots=True)
class _State:
    step: JailUpgradeStep | None = None
    status: JailUpgradeStatus = field(default_factory=JailUpgradeStatus)


class JailUpgradeReconciler(Reconciler[JailUpgrade]):
    """Brings jails to another image."""

    name = "jailupgrade"
    resource = JAIL_UPGRADES
    watches: tuple[Watch[Any], ...] = (
        Watch(JAIL_UPGRADES, own_key),
        # Of two of a cluster the second one waits for the end of the first one.
        Watch(JAIL_UPGRADES, upgrades_beside),
        Watch(RESTORES, upgrades_beside),
        Watch(SLURM_CLUSTERS, upgrades_beside),
        Watch(JOBS, upgrade_of),
        Watch(PODS, upgrade_of),
    )

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._states = context.states(JAIL_UPGRADES, _State)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one JailUpgrade; of a deleted one Kubernetes deletes the Jobs."""
        obj = self._cache.get(key)
        if obj is None or obj.metadata.deleting:
            return Result()
        return await super().reconcile(key)

    async def reconcile_object(self, obj: JailUpgrade) -> list[Finding]:
        """Do the next step."""
        state = self._states.of(obj)
        # The cache may not show the status yet that was written just now.
        old = max(obj.status, state.status, key=lambda one: one.applied_time)
        state.step, state.status = None, old
        cluster = self._caches.clusters.get(f"{obj.metadata.namespace}/{obj.spec.cluster_ref.name}")
        if cluster is None or cluster.metadata.deleting:
            words = f"SlurmCluster {obj.spec.cluster_ref.name} does not exist"
            fix = "Create it in this namespace, or correct spec.clusterRef.name"
            return [Finding(None, ObjectReason.SLURM_CLUSTER_NOT_FOUND, f"{words}. {fix}")]
        if not cluster.spec.has_jail:
            words = f"SlurmCluster {cluster.metadata.name} has no jail (spec.jailMode is None)"
            return [Finding(False, ObjectReason.INVALID, words)]
        # What was listed holds; until then the field may be corrected.
        from_image = (old.from_image if old.digest else "") or self._from_image(obj, cluster)
        step = next_step(self._view(obj, old, cluster, from_image))
        if step.create is not None:
            await self._create(obj, cluster, step.create, from_image)
        if step.delete is not None:
            await self._delete(obj, step.delete)
        state.step = step
        state.status = self._status(old, step, from_image)
        return [step.finding]

    async def _create(
        self, obj: JailUpgrade, cluster: SlurmCluster, action: UpgradeAction, from_image: str
    ) -> None:
        manifest = render.job(self._clusters.inputs(cluster), obj, action, from_image)
        # The cache may not show the Job yet that was created just now.
        with contextlib.suppress(AlreadyExistsError):
            await self.client.create(JOBS, manifest)
            words = f"Created Job {manifest['metadata']['name']}"
            self.events.normal(obj, Event.CREATE_SUCCEEDED, words, "Create")

    async def _delete(self, obj: JailUpgrade, action: UpgradeAction) -> None:
        job = self._job(obj, action)
        with contextlib.suppress(NotFoundError, ConflictError):
            if job is not None:
                meta = job.metadata
                await self.client.delete(JOBS, meta.namespace, meta.name, uid=meta.uid)

    def _view(
        self, obj: JailUpgrade, old: JailUpgradeStatus, cluster: SlurmCluster, from_image: str
    ) -> JailUpgradeView:
        jobs = {action: self._job(obj, action) for action in UpgradeAction}
        runs = {action: self._run(job) for action, job in jobs.items()}
        return JailUpgradeView(
            image=obj.spec.image,
            from_image=from_image,
            phase=old.phase,
            digest=old.digest,
            changes=Changes(
                old.digest, old.added, old.changed, old.removed, old.kept, old.packages
            ),
            approved=obj.spec.approved,
            undo=obj.spec.undo,
            waits=self._waits(obj, cluster),
            compare=runs[UpgradeAction.COMPARE],
            is_outdated=from_image != _old_image(jobs[UpgradeAction.COMPARE], from_image),
            apply=runs[UpgradeAction.APPLY],
            undone=runs[UpgradeAction.UNDO],
        )

    def _job(self, obj: JailUpgrade, action: UpgradeAction) -> Job | None:
        meta = obj.metadata
        job = self._caches.jobs.get(f"{meta.namespace}/{render.job_name(action, meta.name)}")
        owner = job.metadata.controller if job is not None else None
        return job if owner is not None and owner.uid == meta.uid else None

    def _run(self, job: Job | None) -> JobRun | None:
        if job is None:
            return None
        pods = self._caches.pods_of.get(owned_by(JOBS, job))
        ended = last_ended(pods)
        lines = (ended.message or "").strip().splitlines() if ended is not None else []
        changes = Changes()
        with contextlib.suppress(msgspec.MsgspecError, UnicodeError, IndexError):
            changes = msgspec.json.decode(lines[-1], type=Changes)
        return JobRun(run_of(job, pods), changes)

    def _waits(self, obj: JailUpgrade, cluster: SlurmCluster) -> str:
        """Who else is at work in the jail, or has to be first; empty if nobody is."""
        space, name = obj.metadata.namespace, cluster.metadata.name
        for other in self._caches.jail_upgrades_in.get(space):
            is_other = other.metadata.uid != obj.metadata.uid
            if is_other and _is_of(other, name) and other.status.phase in WRITING:
                return f"JailUpgrade {other.metadata.name} is at work in the jail"
        for restore in self._caches.restores_in.get(space):
            if restore.status.cluster == name and restore.status.phase not in ENDED:
                return f"Restore {restore.metadata.name} is at work in the jail"
        populate = self._caches.populate_job(cluster)
        if populate is not None and not job_status(populate).has_ended:
            return f"Job {populate.metadata.name} fills the jail"
        return ""

    def _from_image(self, obj: JailUpgrade, cluster: SlurmCluster) -> str:
        """The image that the jail has now, as far as is known."""
        if obj.spec.from_image:
            return obj.spec.from_image
        applied = [
            one
            for one in self._caches.jail_upgrades_in.get(obj.metadata.namespace)
            if _is_of(one, cluster.metadata.name) and one.status.phase == "Succeeded"
        ]
        last = max(applied, key=lambda one: one.status.applied_time, default=None)
        populate = self._caches.populate_job(cluster)
        if last is not None and not _is_overwritten(populate, last.status.applied_time):
            return last.spec.image
        return str(_container(populate).get("image") or cluster.spec.populate_jail.image)

    def _status(
        self, old: JailUpgradeStatus, step: JailUpgradeStep, from_image: str
    ) -> JailUpgradeStatus:
        found = replace(old, phase=step.phase)
        if step.create is UpgradeAction.COMPARE:
            found = replace(found, from_image=from_image)
        if step.phase == "Succeeded" and not found.applied_time:
            found = replace(found, applied_time=times.write(self.client.clock.time()))
        if step.changes is None:
            return found
        new = step.changes
        return replace(
            found,
            digest=new.digest,
            added=new.added,
            changed=new.changed,
            removed=new.removed,
            kept=new.kept,
            packages=new.packages,
        )

    def requeue_after(self, obj: JailUpgrade) -> float | None:
        """Soon while something is waited for that no watch may report."""
        step = self._states.of(obj).step
        is_waiting = step is not None and step.phase in ("Waiting", "Compared", "Undoing")
        return RETRY_S if is_waiting and obj.spec.approved else None

    def status(self, obj: JailUpgrade) -> Status:
        """How far it is."""
        return self._states.of(obj).status


def _is_of(upgrade: JailUpgrade, cluster: str) -> bool:
    return upgrade.spec.cluster_ref.name == cluster and not upgrade.metadata.deleting


def _container(job: Job | None, field: str = "containers") -> Json:
    """The first container of a Job; empty without a Job."""
    spec: Json = job.spec.template.get("spec") or {} if job is not None else {}
    containers: list[Json] = spec.get(field) or []
    return containers[0] if containers else {}


def _old_image(job: Job | None, otherwise: str) -> str:
    """The image that a Job compares with."""
    return str(_container(job, "initContainers").get("image") or otherwise)


def _is_overwritten(populate: Job | None, since: str) -> bool:
    """Whether the Job that fills the jail was created later, to replace files of a filled one."""
    if populate is None or (populate.metadata.creation_timestamp or "") < since:
        return False
    return OVERWRITE in (_container(populate).get("env") or [])
