"""The Job that fills the jail of a SlurmCluster."""

from __future__ import annotations

import contextlib

from penstock.api.kubernetes.kinds import JOBS, Job, Pod
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.event import Event
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.decide.jail.populate import (
    JobAction,
    JobPhase,
    PopulateStep,
    PopulateView,
    next_step,
    without_jail,
)
from penstock.decide.observed.pod_failure import pod_failure, termination_message
from penstock.kube import AlreadyExistsError, NotFoundError
from penstock.render.nebius.cluster import populate_jail as render
from penstock.translate.nebius.jail import jail_filling

_USERS = ("login", "worker", "nodeset")
"""Components whose pods use the jail."""


class JailPopulation:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters

    async def advance(self, cluster: SlurmCluster, events: Events) -> PopulateStep:
        """Do the next step of filling its jail, and return it. Raises KubeError."""
        if not cluster.spec.has_jail:
            return without_jail()
        step = next_step(self._view(cluster))
        meta, name = cluster.metadata, names.populate_job(cluster.metadata.name)
        if step.action is JobAction.CREATE:
            manifest = render.job(self._clusters.inputs(cluster), overwrite=step.overwrite)
            # The cache may not show the Job yet that was created just now.
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(JOBS, manifest)
                events.normal(cluster, Event.CREATE_SUCCEEDED, f"Created Job {name}", "Create")
        elif step.action is JobAction.DELETE:
            job = self._caches.populate_job(cluster)
            with contextlib.suppress(NotFoundError):
                uid = job.metadata.uid if job is not None else ""
                await self._client.delete(JOBS, meta.namespace, name, uid=uid)
                events.normal(cluster, Event.DELETE_SUCCEEDED, step.finding.message, "Delete")
        return step

    def _view(self, cluster: SlurmCluster) -> PopulateView:
        job = self._caches.populate_job(cluster)
        users = self._users(cluster) if job is None else []
        annotations = job.metadata.annotations if job is not None else {}
        declared = render.template_hash(cluster)
        return PopulateView(
            filling=jail_filling(cluster),
            phase=_phase(job),
            # One that another operator created has no such annotation, and stays.
            has_current_template=annotations.get(render.TEMPLATE, declared) == declared,
            is_for_overwriting=annotations.get(render.MODE) == cluster.spec.maintenance,
            failure=self._failure(cluster, job),
            users=[pod.metadata.name for pod in users],
            are_ready=any(pod.ready for pod in users),
        )

    def _users(self, cluster: SlurmCluster) -> list[Pod]:
        """Pods that use the jail: what is done about an absent Job depends on them."""
        return [
            pod
            for component in _USERS
            for pod in self._clusters.pods(cluster, component)
            if pod.status.phase not in ("Succeeded", "Failed")
        ]

    def _failure(self, cluster: SlurmCluster, job: Job | None) -> str:
        if job is None:
            return ""
        uid = job.metadata.uid
        pods = [
            pod
            for pod in self._clusters.pods(cluster, "populate-jail")
            if (owner := pod.metadata.controller) is not None and owner.uid == uid
        ]
        last = max(pods, key=lambda pod: pod.metadata.creation_timestamp or "", default=None)
        words = _words(last) if last is not None else ""
        return words or _failed(job)


def _words(pod: Pod) -> str:
    for container in pod.status.container_statuses or ():
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            return termination_message(container) or f"exit code {ended.exit_code}"
    found = pod_failure(pod)
    return found.text if found is not None else ""


def _phase(job: Job | None) -> JobPhase:
    if job is None:
        return JobPhase.ABSENT
    if job.metadata.deleting:
        return JobPhase.DELETING
    held = {one.type for one in job.status.conditions or () if one.status == "True"}
    if "Complete" in held:
        return JobPhase.SUCCEEDED
    return JobPhase.FAILED if "Failed" in held else JobPhase.ACTIVE


def _failed(job: Job) -> str:
    found = job.status.conditions or ()
    return next((one.message or "" for one in found if one.type == "Failed"), "")
