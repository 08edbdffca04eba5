"""The reconciler of `support.tiny_api`: its source for the engine of the operator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import msgspec

from penstock.api import registry
from penstock.api.cluster.marks import ROLLED_BACK, SAME_REVISIONS
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CLAIMS, NODES, PODS, ControllerRevision
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.controller import CONTROLLERS
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nodeset.engine import WorkerSetEngine, node_matters
from penstock.controllers.observed.watching import (
    PODS_BY_NODE,
    indexed,
    own_key,
    owner_of,
    spec_changed,
)
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.registry.slinky import RECONCILERS as SLINKY_RECONCILERS
from penstock.controllers.runtime.reconciler import StatusWriter
from penstock.controllers.runtime.signals import SLURM
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.slinky import controllers
from penstock.controllers.workers.caches import WorkerCaches, own_stems, stems
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.observed.view import ControllerState
from penstock.kube import Result
from penstock.kube.runtime.declaration import IndexBy, Lookup, Signal, Watch
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_slot import WorkerSlot
from penstock.render.parts.digest import canonical_json, digest
from penstock.slurm.node_parameters import fixed_words
from support.tiny_api import (
    API_GROUP,
    CREWS,
    GROUP,
    MARKS,
    Crew,
    crew_status,
    labels,
    pod_labels,
    spec_of,
    workers_of,
)


def _cluster_of(crew: Crew, _: Lookup | None = None) -> list[str]:
    return [f"{crew.metadata.namespace}/{crew.spec.cluster}"]


CREWS_BY_CLUSTER = IndexBy(CREWS, _cluster_of)
PODS_BY_STEM = IndexBy(PODS, stems)
PODS_BY_OWN_STEM = IndexBy(PODS, own_stems)
PVCS_BY_CREW = IndexBy(
    CLAIMS, lambda pvc: [f"{pvc.metadata.namespace}/{pvc.metadata.labels.get(f'{GROUP}/crew')}"]
)


def _crews_on(node: Any, lookup: Lookup) -> list[str]:
    pods = lookup.by(PODS_BY_NODE, node.metadata.name)
    return [key for pod in pods for key in owner_of(CREWS)(pod, lookup)]


def _crews_of(key: str, lookup: Lookup) -> list[str]:
    return [one.metadata.key for one in lookup.by(CREWS_BY_CLUSTER, key)]


class CrewSource(WorkerSource):
    """The workers of one version of a Crew."""

    def __init__(self, crew: Crew, context: ClusterContext) -> None:
        self._crew = crew
        self._context = context
        self._key = _cluster_of(crew)[0]
        self.object = crew
        self.resource = CREWS
        self.workers = workers_of(crew)
        self.problems = ()
        self.is_cluster_ready = self.cluster_state() is ControllerState.PRESENT

    def has_newer(self) -> bool:
        now = self._context.caches.store.get(CREWS, self._crew.metadata.key)
        meta = self._crew.metadata
        before = meta.uid, meta.generation
        return now is not None and (now.metadata.uid, now.metadata.generation) != before

    def cluster_state(self) -> ControllerState:
        controller = self._context.caches.store.get(CONTROLLERS, self._key)
        if controller is None:
            return ControllerState.ABSENT
        deleting = controller.metadata.deleting
        return ControllerState.DELETING if deleting else ControllerState.PRESENT

    def connection(self) -> SlurmConnection | None:
        return self._context.connections.get(self._key)

    def creation_blocked(self) -> Finding | None:
        if self.is_cluster_ready:
            return None
        return Finding(
            False, ObjectReason.CONTROLLER_NOT_FOUND, f"spec.cluster: there is no {self._key}"
        )

    def pod(self, slot: WorkerSlot) -> Json:
        crew = self._crew
        why = f"{MARKS.drain_prefix}Pod is terminating"
        hook = f"scontrol update nodename=$(hostname) state=down reason='{why}'"
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": slot.pod,
                "namespace": crew.metadata.namespace,
                "labels": {**pod_labels(crew), MARKS.revision[0]: self.revision().hash},
                "ownerReferences": [self._owner()],
            },
            "spec": {
                "hostname": slot.slurm_node,
                "containers": [
                    {
                        "name": "slurmd",
                        "image": crew.spec.image,
                        "args": ["-Z", "--conf", f"Features={crew.metadata.name}"],
                        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", hook]}}},
                    }
                ],
            },
        }

    def revision(self) -> RecordedRevision:
        return self.recorded(self._record(0))

    def recorded(self, record: ControllerRevision) -> RecordedRevision:
        meta, data = record.metadata, record.data
        words = str(data.get("words") or "")
        same = meta.annotations.get(SAME_REVISIONS, "")
        return RecordedRevision(
            name=meta.name,
            uid=meta.uid,
            number=record.revision,
            hash=meta.name.rpartition("-")[2],
            equal_hashes=tuple(sorted(filter(None, same.split(",")))),
            parameters=words,
            fixed_form=canonical_json({**data, "words": fixed_words(words)}),
            read_form=lambda: canonical_json(data),
            read_spec=lambda: data,
        )

    def revision_manifest(self, number: int) -> Json:
        record = self._record(number)
        meta = {
            "name": record.metadata.name,
            "namespace": self._crew.metadata.namespace,
            "labels": labels(self._crew),
            "ownerReferences": [self._owner()],
        }
        kind = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
        return {**kind, "metadata": meta, "data": record.data, "revision": number}

    def rollback_patch(self, live: Json, value: str, spec: Json | None) -> list[Json]:
        meta, path = self._crew.metadata, ROLLED_BACK.replace("/", "~1")
        steps: list[Json] = [
            {"op": "replace", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": f"/metadata/annotations/{path}", "value": value},
        ]
        wanted = {} if spec is None else spec
        return [
            *steps,
            *({"op": "add", "path": f"/spec/{one}", "value": wanted[one]} for one in wanted),
        ]

    def parameters_patch(self, parameters: str) -> Json:
        return spec_of(parameters)

    def _record(self, number: int) -> ControllerRevision:
        spec = self._crew.spec
        data: Json = {"image": spec.image, "words": spec.words}
        name = f"crew-{self._crew.metadata.name}-{digest(data)[:10]}"
        meta = msgspec.structs.replace(ControllerRevision().metadata, name=name)
        return ControllerRevision(metadata=meta, data=data, revision=number)

    def _owner(self) -> Json:
        meta = self._crew.metadata
        kind = {"apiVersion": CREWS.api_version, "kind": CREWS.kind}
        return {**kind, "name": meta.name, "uid": meta.uid, "controller": True}


class CrewReconciler(StatusWriter[Crew]):
    """Leads the workers of Crews by the engine of the operator."""

    name = "crew"
    resource = CREWS
    watches = (
        Watch(CREWS, own_key),
        Watch(CONTROLLERS, indexed(CREWS_BY_CLUSTER, own_key), spec_changed),
        Watch(PODS, owner_of(CREWS)),
        Watch(NODES, _crews_on, node_matters),
    )
    signals = (Signal(SLURM, _crews_of),)

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        self._context, caches = context, context.caches.store
        found = WorkerCaches(
            pods=caches.of(PODS),
            pods_of=context.caches.pods_of,
            pods_named=caches.index(PODS_BY_STEM),
            own_pods_named=caches.index(PODS_BY_OWN_STEM),
            pvcs=caches.of(CLAIMS),
            pvcs_of=caches.index(PVCS_BY_CREW),
            nodes=caches.of(NODES),
            revisions_of=context.caches.revisions_of,
        )
        self._engine = WorkerSetEngine(context, CREWS, found, self.events, context.connections)

    async def reconcile(self, key: str) -> Result:
        crew = self._context.caches.store.get(CREWS, key)
        if crew is None:
            return Result()
        outcome = await self._engine.run(CrewSource(crew, self._context))
        if outcome.status is not None:
            status = crew_status(crew.status, outcome.status)
            await self.write(crew, outcome.findings, status)
        if outcome.rejected is not None:
            raise outcome.rejected
        return Result(requeue_after=outcome.requeue_after)


_slinky, *_others = SERVED_APIS
WITH_CREWS = (
    replace(
        _slinky, build=partial(controllers.build, reconcilers=(*SLINKY_RECONCILERS, CrewReconciler))
    ),
    *_others,
)
"""The APIs of the operator, with one more reconciler."""


def install() -> None:
    """Add the group to the registry of this process."""
    if API_GROUP.rules[0] in registry.registry().rules:
        return
    groups = (*registry.groups(), API_GROUP)
    registry.groups = cache(lambda: groups)
    registry.registry.cache_clear()
