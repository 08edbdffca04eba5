"""A Kubernetes without kubelets: workloads get pods, pods get a node, become ready and end.

It stands for the StatefulSet and Deployment controllers, the scheduler and the kubelet, and does
only what an operator can observe of the real ones. A workload whose template changes has its
pods replaced, so that a test sees a restart as another uid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import (
    DEPLOYMENTS,
    PODS,
    STATEFUL_SETS,
    Deployment,
    Pod,
    StatefulSet,
)
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.decide.observed import drain_reason
from penstock.decide.observed.pod import slurm_node_name
from penstock.kube import Cache, Controller, Manager, NotFoundError, Result
from penstock.render.parts.digest import digest
from penstock.simulation.kubelet.pod_manifests import (
    TEMPLATE,
    node_conf,
    pod_of,
    revision_label,
    running,
)
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.translate.slinky.worker_set import MARKS

BINDINGS = Resource("", "v1", "Binding", "pods", KubeObject)
MACHINE = "machine"
STARTED = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
"""When slurmd started, by the pods' statuses."""

Workload = StatefulSet | Deployment
SlurmOf = Callable[[str], SimulatedSlurmctld | None]


class Kubelet:
    """Runs the pods that `manager`'s caches show. `slurm_of(namespace)` gets worker pods.

    `seen` has every uid that a pod name ever had.
    """

    def __init__(self, manager: Manager, slurm_of: SlurmOf) -> None:
        self.seen: dict[str, list[str]] = {}
        self._client = manager.client
        self._slurm_of = slurm_of
        self._pods = manager.cache(PODS, raw=True)
        self._pods_of = self._pods.index(
            # By name, as a workload that is recreated takes over the pods of its former self.
            lambda pod: (
                [f"{o.kind} {pod.metadata.namespace}/{o.name}"]
                if (o := pod.metadata.controller)
                else []
            )
        )
        self._pods.subscribe(self._note)
        run = self._loop(manager, "pods", self._pod)
        run.watches(self._pods, lambda pod: [pod.metadata.key])
        self._workloads(manager, STATEFUL_SETS)
        self._workloads(manager, DEPLOYMENTS)

    def _workloads(self, manager: Manager, resource: Resource[Any]) -> None:
        cache = manager.cache(resource, raw=True)
        loop = self._loop(manager, resource.plural, self._workload_of(resource, cache))
        loop.watches(cache, lambda one: [one.metadata.key])
        loop.watches(self._pods, _owned_by(resource.kind))

    def _loop(self, manager: Manager, name: str, reconcile: Any) -> Controller:
        client = manager.client
        loop = Controller(
            name, reconcile, clock=client.clock, metrics=client.metrics, concurrency=8
        )
        manager.add(loop)
        return loop

    def _note(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None:
            uids = self.seen.setdefault(new.metadata.key, [])
            if new.metadata.uid not in uids:
                uids.append(new.metadata.uid)

    async def _pod(self, key: str) -> Result:
        pod = self._pods.get(key)
        if pod is None:
            return Result()
        meta = pod.metadata
        try:
            if meta.deleting:
                self._ended(pod)
                await self._client.delete(
                    PODS, meta.namespace, meta.name, uid=meta.uid, grace_period_seconds=0
                )
            elif not pod.spec.node_name:
                await self._bind(pod)
            elif not pod.ready:
                self._started(pod)
                await self._client.patch(
                    PODS,
                    meta.namespace,
                    meta.name,
                    {"status": running(self._pods.raw(key) or {})},
                    kind="strategic",
                    subresource="status",
                )
        except NotFoundError:
            pass
        return Result()

    async def _bind(self, pod: Pod) -> None:
        meta = pod.metadata
        body: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": MACHINE},
        }
        await self._client.create(BINDINGS, body, subresource="binding")

    def _started(self, pod: Pod) -> None:
        slurm, node = self._slurm(pod)
        if slurm is None:
            return
        conf = node_conf(self._pods.raw(pod.metadata.key) or {})
        record = slurm.nodes.get(node) or slurm.register(node, **conf.values)
        record.base, record.started = "IDLE", STARTED
        slurm.touch()

    def _ended(self, pod: Pod) -> None:
        """What the preStop hook of worker pods does."""
        slurm, node = self._slurm(pod)
        if slurm is not None and node in slurm.nodes:
            slurm.update_node(node, ["DOWN"], {"reason": drain_reason.terminating(MARKS)})

    def _slurm(self, pod: Pod) -> tuple[SimulatedSlurmctld | None, str]:
        if pod.metadata.labels.get(app_labels.APP_NAME) != "slurmd":
            return None, ""
        return self._slurm_of(pod.metadata.namespace), slurm_node_name(pod)

    def _workload_of(self, resource: Resource[Any], cache: Cache[Any]) -> Any:
        async def reconcile(key: str) -> Result:
            one: Workload | None = cache.get(key)
            if one is not None:
                await self._workload(resource, cache, one)
            return Result()

        return reconcile

    async def _workload(self, resource: Resource[Any], cache: Cache[Any], one: Workload) -> None:
        meta, revision = one.metadata, digest(one.spec.template)
        strategy: Json = (cache.raw(meta.key) or {}).get("spec", {}).get("updateStrategy") or {}
        waits = strategy.get("type") == "OnDelete"
        wanted = [f"{meta.name}-{number}" for number in range(one.spec.replicas or 0)]
        pods = {pod.metadata.name: pod for pod in self._pods_of.get(f"{resource.kind} {meta.key}")}
        for name, pod in pods.items():
            old = pod.metadata.annotations.get(TEMPLATE) != revision and not waits
            stale = name not in wanted or old
            if stale and not pod.metadata.deleting:
                await self._client.delete(PODS, meta.namespace, name, uid=pod.metadata.uid)
        for name in wanted:
            if name not in pods:
                raw = cache.raw(meta.key) or {}
                await self._client.create(PODS, pod_of(raw, name, revision))
        ready = sum(1 for pod in pods.values() if pod.ready)
        status: Json = {
            "observedGeneration": meta.generation,
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": len(pods),
        }
        if resource is STATEFUL_SETS:
            named: Json = {"metadata": {"name": meta.name}}
            status["updateRevision"] = revision_label(named, revision)
        if status != _status(one):
            await self._client.patch(
                resource, meta.namespace, meta.name, {"status": status}, subresource="status"
            )


def _owned_by(kind: str) -> Callable[[Pod], Sequence[str]]:
    def keys(pod: Pod) -> Sequence[str]:
        owner = pod.metadata.controller
        return [f"{pod.metadata.namespace}/{owner.name}"] if owner and owner.kind == kind else []

    return keys


def _status(one: Workload) -> Json:
    status = one.status
    return {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas or 0,
        "readyReplicas": status.ready_replicas or 0,
        "availableReplicas": status.available_replicas or 0,
        "updatedReplicas": status.updated_replicas or 0,
    } | ({"updateRevision": status.update_revision} if isinstance(one, StatefulSet) else {})
