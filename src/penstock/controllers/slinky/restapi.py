"""RestApi: slurmrestd of one cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.api.cluster.marks import ASK_FINALIZER
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS, SERVICES, Pod
from penstock.api.slinky.accounting import ACCOUNTINGS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.base.text import list_some
from penstock.catalog.event import Event
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.cluster import adopted_workload as hold
from penstock.controllers.observed.members import RESTAPIS_BY_CLUSTER, cluster_keys
from penstock.controllers.observed.references import (
    controllers_using_accounting,
    controllers_using_config_map,
    controllers_using_secret,
)
from penstock.controllers.observed.watching import (
    indexed,
    instance_of,
    own_key,
    owner_of,
    spec_changed,
)
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.slinky import chart_labels
from penstock.controllers.slinky.prerequisites import require_cluster
from penstock.decide.accounting import conditions as accounting
from penstock.decide.advice import host_network
from penstock.decide.cluster.restapi_finalizer import needed_for
from penstock.decide.pod.workload import crashed, workload
from penstock.kube import NotFoundError, Result
from penstock.kube.runtime.declaration import Watch
from penstock.render.slinky.cluster import slurmrestd as render
from penstock.render.slinky.config.config_maps import config_hash
from penstock.translate.slinky.cluster import cluster as translated
from penstock.translate.slinky.image_sources import image_sources
from penstock.translate.slinky.worker_set import worker_set


@dataclass(slots=True)
class _State:
    is_kept: bool = False
    """Whether an event has reported that its deletion waits."""


class RestApiReconciler(Reconciler[RestApi]):
    """Brings RestApis about."""

    name = "restapi"
    resource = RESTAPIS
    watches = (
        Watch(RESTAPIS, own_key),
        Watch(CONTROLLERS, indexed(RESTAPIS_BY_CLUSTER, own_key), spec_changed),
        *(Watch(one, owner_of(RESTAPIS)) for one in (SERVICES, DEPLOYMENTS, CONFIG_MAPS)),
        Watch(PODS, instance_of("slurmrestd")),
        Watch(SECRETS, indexed(RESTAPIS_BY_CLUSTER, controllers_using_secret)),
        Watch(CONFIG_MAPS, indexed(RESTAPIS_BY_CLUSTER, controllers_using_config_map)),
        # slurmrestd starts again with a slurm.conf that was delivered.
        Watch(CONFIG_MAPS, indexed(RESTAPIS_BY_CLUSTER, owner_of(CONTROLLERS))),
        Watch(
            ACCOUNTINGS,
            indexed(RESTAPIS_BY_CLUSTER, controllers_using_accounting),
            spec_changed,
        ),
    )

    def __init__(self, context: SlinkyContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        OverriddenFieldDetector(context, self.resource)
        self._restarter = PodRestarter(context.client)
        self._states = context.states(RESTAPIS, _State)

    async def reconcile(self, key: str) -> Result:
        """Bring one RestApi about; keep a deleted one while workers are drained by it."""
        obj = self._caches.restapis.get(key)
        if obj is None or not obj.metadata.deleting:
            return await super().reconcile(key)
        if ASK_FINALIZER not in obj.metadata.finalizers:
            return Result()
        nodesets = (one for of in cluster_keys(obj) for one in self._caches.nodesets_of.get(of))
        staffed = [
            (worker_set(one), self._caches.pods_of.count(owned_by(NODESETS, one)))
            for one in nodesets
        ]
        kept = needed_for(obj.metadata.deletion_timestamp, staffed, self.client.clock.time())
        if kept is None:
            await self._finalize(obj, wanted=False)
            return Result()
        seconds, names = kept
        if names and not self._states.of(obj).is_kept:
            self._states.of(obj).is_kept = True
            note = (
                f"RestApi stays until workers of NodeSet {names} are drained: slurmctld is external"
            )
            self.events.normal(obj, Event.DELETION_WAITS, note, "Finalize")
        return Result(requeue_after=seconds)

    async def _finalize(self, obj: RestApi, *, wanted: bool) -> None:
        """Add the finalizer or remove it."""
        meta = obj.metadata
        if wanted == (ASK_FINALIZER in meta.finalizers):
            return
        left = [one for one in meta.finalizers if one != ASK_FINALIZER]
        finalizers = [*left, ASK_FINALIZER] if wanted else left
        body = {"uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers}
        with contextlib.suppress(NotFoundError):
            await self.client.patch(RESTAPIS, meta.namespace, meta.name, {"metadata": body})

    async def reconcile_object(self, obj: RestApi) -> list[Finding]:
        """Make slurmrestd's Service and Deployment."""
        cluster = require_cluster(self._clusters, obj)
        if isinstance(cluster, Finding):
            return [cluster]
        if absent := self._clusters.absent_config_maps(cluster.controller):
            # slurm.conf is not handed over before they are there, so nobody may restart for it.
            return [
                Finding(
                    None,
                    ObjectReason.CONFIG_MAP_NOT_FOUND,
                    f"Waiting for ConfigMap {list_some(absent)}",
                )
            ]
        if waiting := accounting.first_waits(translated(cluster.controller, cluster.accounting)):
            # There is no slurm.conf before.
            return waiting
        await self._finalize(obj, wanted=cluster.controller.spec.external)
        conf = self._clusters.slurm_conf(cluster.controller)
        made = render.objects(cluster, obj, conf)
        found = hold.inspect(self.objects, obj, made, render.declared(cluster, obj, conf))
        await self.objects.apply(obj, self.events, found.apply())
        pods = self._caches.pods_labelled(obj.metadata.namespace, "slurmrestd", obj.metadata.name)
        await self._after_change(obj, pods, config_hash(cluster))
        await chart_labels.label(self.client, obj, pods)
        listens = "slurmrestd listens on 6820"
        exposed = host_network.findings(obj.spec.template.spec, listens, obj.status.conditions)
        return [
            workload("slurmrestd", obj.spec.replicas, pods, image_sources(obj)),
            *found.findings,
            *exposed,
        ]

    async def _after_change(self, obj: RestApi, pods: Iterable[Pod], wanted: str) -> None:
        """Let a slurmrestd that ended on a bad slurm.conf start at once on the next one."""
        for pod in pods:
            anew = await self._restarter.restart_if_crashed(
                obj, self.events, pod, "slurmrestd", wanted
            )
            if not anew and crashed(pod, "slurmrestd"):
                await self._restarter.annotate(pod, wanted)
