"""ActiveCheck: its CronJob, its first run, and what follows from the results of its Jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import (
    CONFIG_MAPS,
    CRON_JOBS,
    JOBS,
    POD_TEMPLATES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    CronJob,
)
from penstock.api.kubernetes.meta import Condition, Json, KubeObject, ObjectMeta
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius import names
from penstock.api.nebius.active_check import ACTIVE_CHECKS, ActiveCheck
from penstock.api.nebius.labels import ACTIVE_CHECK_FINALIZER
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.nebius.timed_condition import timed
from penstock.base import times
from penstock.catalog.event import Event
from penstock.catalog.reasons.check import CheckReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nebius.checks import watching
from penstock.controllers.nebius.checks.policy import before
from penstock.controllers.nebius.checks.results import Collected, ResultCollector
from penstock.controllers.nebius.checks.status import check_status, last_run, postponed
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import check_of_job
from penstock.controllers.observed.watching import own_key, spec_changed
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.signals import SLURM
from penstock.decide.check import gate
from penstock.kube import AlreadyExistsError, Cache, ConflictError, NotFoundError, Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.render.nebius.check import account, cron_job

T = TypeVar("T", bound=KubeObject)
RETRY_S = 15.0
"""Seconds until jobs are looked up again of which no signal may report the end."""
NEXT_S = 1.0
"""Seconds until the next ones of many jobs are asked for."""


@dataclass(slots=True)
class _State:
    collected: Collected = field(default_factory=Collected)
    has_run: bool = False
    """Whether this process has found a run: the cache may not show its status yet."""


class ActiveCheckReconciler(Reconciler[ActiveCheck]):
    """Brings ActiveChecks about."""

    name = "activecheck"
    resource = ACTIVE_CHECKS
    watches: tuple[Watch[Any], ...] = (
        Watch(ACTIVE_CHECKS, own_key, spec_changed),
        Watch(ACTIVE_CHECKS, watching.checks_after, watching.result_changed),
        Watch(SLURM_CLUSTERS, watching.checks_in, watching.cluster_matters),
        Watch(CRON_JOBS, own_key),
        Watch(JOBS, check_of_job),
        Watch(PODS, watching.check_of_pod),
        Watch(POD_TEMPLATES, watching.checks_under),
        *(
            Watch(one, watching.checks_with)
            for one in (CONFIG_MAPS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
        ),
    )
    signals = (Signal(SLURM, watching.checks_of_cluster),)

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._states = context.states(ACTIVE_CHECKS, _State)
        self._results = ResultCollector(context, self.events)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one ActiveCheck; a deleted one goes once its CronJob is deleted."""
        obj = self._cache.get(key)
        if obj is not None and obj.metadata.deleting:
            return Result(requeue_after=await self._finalize(obj))
        return await super().reconcile(key)

    async def reconcile_object(self, obj: ActiveCheck) -> list[Finding]:
        """Collect results, and create what runs next once the check may start."""
        state = self._states.of(obj)
        state.collected = Collected()
        cluster = self._cluster(obj)
        if cluster is None:
            words = f"SlurmCluster {obj.spec.slurm_cluster_ref_name} does not exist"
            fix = "Create it in this namespace, or correct spec.slurmClusterRefName"
            return [Finding(None, ObjectReason.SLURM_CLUSTER_NOT_FOUND, f"{words}. {fix}")]
        if elder := self._elder(obj):
            words = f"spec.name: {obj.spec.name!r} is that of ActiveCheck {elder} too"
            return [Finding(False, ObjectReason.INVALID, f"{words}. Choose another name")]
        if ACTIVE_CHECK_FINALIZER not in obj.metadata.finalizers:
            # Raises when the check was changed or deleted: what is created then would stay.
            await self._set_finalizers(obj, (*obj.metadata.finalizers, ACTIVE_CHECK_FINALIZER))
        state.collected = await self._results.collect(obj, cluster)
        run = state.collected.runs[-1] if state.collected.runs else None
        state.has_run |= run is not None
        findings = [
            self._unknown(state.collected),
            postponed(cluster, state.collected.postponed),
            await self._start(obj, cluster),
        ]
        return [*filter(None, findings), last_run(obj, run)]

    async def _start(self, obj: ActiveCheck, cluster: SlurmCluster) -> Finding | None:
        """Apply the objects, or return what the check waits for."""
        closed, exists = self._closed(obj, cluster), self._cron_job(obj) is not None
        if closed is not None and not exists:
            return closed
        over = self._pod_template(obj)
        if isinstance(over, Finding):
            # Its pods would lack fields that its user counts on.
            return over
        inputs = self._clusters.inputs(cluster)
        rests = closed is not None and closed.reason is CheckReason.CLUSTER_MAINTENANCE
        await self.objects.apply(obj, self.events, account.objects(cluster))
        manifests = cron_job.objects(inputs, obj, suspend=rests, over=over)
        await self.objects.apply(obj, self.events, manifests)
        cron = self._cron_job(obj)
        if closed is None and cron is not None and self._is_first(obj):
            manifest = cron_job.initial_run(inputs, obj, cron, over)
            # The cache may not show the Job yet that was created just now.
            with contextlib.suppress(AlreadyExistsError):
                await self.client.create(JOBS, manifest)
                words = f"Created Job {manifest['metadata']['name']}"
                self.events.normal(obj, Event.CREATE_SUCCEEDED, words, "Create")
        return closed if rests else None

    def _pod_template(self, obj: ActiveCheck) -> Json | Finding:
        """The template that is merged over the check's pod: empty without one, or what it lacks."""
        name = obj.spec.pod_template_name_ref
        if not name:
            return {}
        templates = self._caches.pod_templates
        found = templates.get(f"{obj.metadata.namespace}/{name}")
        if found is not None:
            return found.template
        words = f"spec.podTemplateNameRef: there is no PodTemplate {name} in this namespace"
        fix = "Create it, or remove the reference"
        if why := templates.absent:
            words, fix = f"spec.podTemplateNameRef: PodTemplates cannot be read: {why}", "Allow it"
        return Finding(False, CheckReason.POD_TEMPLATE_NOT_FOUND, f"{words}. {fix}")

    def _is_first(self, obj: ActiveCheck) -> bool:
        """Whether the check is to run at its creation, and has not done so."""
        if not obj.spec.run_after_creation or self._states.of(obj).has_run:
            return False
        status = obj.status
        return status.k8s_jobs_status is None and status.slurm_jobs_status is None

    def _closed(self, obj: ActiveCheck, cluster: SlurmCluster) -> Finding | None:
        name = cluster.metadata.name
        if self._clusters.is_resting(cluster):
            return gate.in_maintenance(name, cluster.spec.maintenance)
        if cluster.status.phase != "Available":
            return gate.not_available(name, cluster.status.phase)
        space = obj.metadata.namespace
        return gate.waits_for(
            [
                before(one, self._caches.active_checks.get(f"{space}/{one}"))
                for one in obj.spec.depends_on
            ]
        )

    def _unknown(self, found: Collected) -> Finding | None:
        if not found.unknown:
            return None
        return Finding(
            None, CheckReason.RESULTS_UNKNOWN, f"Results of jobs are not known: {found.unknown}"
        )

    def requeue_after(self, obj: ActiveCheck) -> float | None:
        """Soon while a job has no result, since another poll may be needed to see its end."""
        found = self._states.of(obj).collected
        if found.has_more:
            return NEXT_S
        return RETRY_S if found.waits or found.unknown or found.postponed else None

    def status(self, obj: ActiveCheck) -> Status:
        """The last run."""
        runs = self._states.of(obj).collected.runs
        now = self.client.clock.time()
        return check_status(obj, runs[-1] if runs else None, self._cron_job(obj), now)

    def stored(self, obj: ActiveCheck, found: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """The conditions with the time of their last update, which this kind requires."""
        return timed(obj.status, found, self.client.clock.time())

    def _cluster(self, obj: ActiveCheck) -> SlurmCluster | None:
        name = obj.spec.slurm_cluster_ref_name
        found = self._caches.clusters.get(f"{obj.metadata.namespace}/{name}")
        return None if found is None or found.metadata.deleting else found

    def _elder(self, obj: ActiveCheck) -> str:
        """An older check whose first Job and script have the same names; empty without one.

        Admission rejects such a check, where it is installed. Each would overwrite the script of
        the other one, for ever.
        """
        meta = obj.metadata
        key = f"{meta.namespace}/{obj.spec.slurm_cluster_ref_name}"
        older = [
            one.metadata
            for one in self._caches.checks_of.get(key)
            if one.spec.name == obj.spec.name and _age(one.metadata) < _age(meta)
        ]
        return min(older, key=_age).name if older else ""

    def _cron_job(self, obj: ActiveCheck) -> CronJob | None:
        found = self._caches.cron_jobs.get(obj.metadata.key)
        return None if found is None or found.metadata.deleting else found

    async def _finalize(self, obj: ActiveCheck) -> float | None:
        """Delete the CronJob and with it its Jobs, and the inline script; end its reservations.

        Nobody else would end these. Returns the seconds until it is tried again.
        """
        meta = obj.metadata
        if ACTIVE_CHECK_FINALIZER not in meta.finalizers:
            return None
        script = names.sbatch_script(obj.spec.name)
        await self._delete(self._caches.cron_jobs, CRON_JOBS, meta.namespace, meta.name)
        await self._delete(self._caches.config_maps, CONFIG_MAPS, meta.namespace, script)
        cluster = self._cluster(obj)
        most = await self._results.release(obj, cluster) if cluster is not None else 0.0
        began = times.parse(meta.deletion_timestamp) or 0.0
        if most and self.client.clock.time() < began + most:
            return RETRY_S
        left = [one for one in meta.finalizers if one != ACTIVE_CHECK_FINALIZER]
        # Of a conflict the cache shows the newer object soon.
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._set_finalizers(obj, left)
        return None

    async def _delete(self, cache: Cache[T], resource: Resource[T], space: str, name: str) -> None:
        with contextlib.suppress(NotFoundError):
            live = cache.get(f"{space}/{name}")
            if live is None:
                # The cache may not show yet what was created a moment ago.
                live = await self.client.get(resource, space, name)
            if not live.metadata.deleting and _is_of_checks(live.metadata):
                await self.client.delete(resource, space, name, uid=live.metadata.uid)

    async def _set_finalizers(self, obj: ActiveCheck, finalizers: Iterable[str]) -> None:
        meta = obj.metadata
        body = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "finalizers": list(finalizers),
        }
        await self.client.patch(ACTIVE_CHECKS, meta.namespace, meta.name, {"metadata": body})


def _is_of_checks(meta: ObjectMeta) -> bool:
    """Whether an object is one of a SlurmCluster's checks, and not somebody else's of that name."""
    owner = meta.controller
    return owner is not None and owner.is_kind(SLURM_CLUSTERS.group, SLURM_CLUSTERS.kind)


def _age(meta: ObjectMeta) -> tuple[str, str]:
    return meta.creation_timestamp or "", meta.name
