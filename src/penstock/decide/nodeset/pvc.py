"""The PVCs of worker pods: created before the pod, and their owners.

A PVC belongs to its slot: the next pod has it again. With `whenDeleted: Delete` the NodeSet owns
it. With `whenScaled: Delete` the pod that scale-in deletes owns it from then on, and the garbage
collector deletes both; when the pod stays after all, it loses the PVC. The NodeSet loses a PVC
whose slot has no pod once `whenDeleted` is Retain. A cordon of a user, an update and the deletion
of the NodeSet are no scale-in. Source: Kubernetes documentation, "StatefulSet",
"PersistentVolumeClaim retention".

No pod is created while a PVC of its slot is terminating: it would use that one and lose it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from penstock.api.kubernetes.kinds import PersistentVolumeClaim, Pod
from penstock.api.kubernetes.meta import OwnerReference
from penstock.catalog.event import ActionReason
from penstock.decide.action import CreatePvcs, EventReason, SetPvcOwners
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot


def names_of(workers: WorkerSet, slot: WorkerSlot) -> list[str]:
    """Names of the PVCs of a slot."""
    names, templates = workers.names, workers.pvcs.templates
    if slot.ordinal is None:
        return [names.pvc_on(one, slot.slurm_node) for one in templates]
    return [names.pvc(one, slot.ordinal) for one in templates]


def blocking_creation(view: WorkerSetView, slots: Iterable[WorkerSlot]) -> dict[str, str]:
    """By pod that is to be created, the PVC that must be gone before."""
    if not view.workers.pvcs.templates:
        return {}
    living = {pod.metadata.uid for pod in view.pods}
    found: dict[str, str] = {}
    for slot in slots:
        for name in names_of(view.workers, slot):
            pvc = view.pvcs.get(name)
            if pvc is None:
                continue
            if pvc.metadata.deleting or any(_gone(view, o, living) for o in _owners(pvc)):
                found[slot.pod] = name
    return found


def _gone(view: WorkerSetView, owner: OwnerReference, living: Collection[str]) -> bool:
    """Whether an owner is gone, so that the PVC goes as well: a pod, or a former NodeSet."""
    meta = view.workers.metadata
    if _is_pod(owner):
        return owner.uid not in living
    return view.workers.owns_as(owner) and owner.name == meta.name and owner.uid != meta.uid


def plan_pvcs(view: WorkerSetView, roles: PodRoles) -> tuple[CreatePvcs | SetPvcOwners, ...]:
    """PVCs that pods wait for, and PVCs that must get other owners."""
    if not view.workers.pvcs.templates:
        return ()
    return (*_missing(view, roles), *_owned(view, roles))


def _missing(view: WorkerSetView, roles: PodRoles) -> Iterator[CreatePvcs]:
    """PVCs that somebody deleted before their pod could run."""
    if view.deleting:
        return
    for worker in roles.kept:
        slot = _slot_of(worker) if worker.is_never_bound else None
        if slot is None:
            continue
        if any(name not in view.pvcs for name in names_of(view.workers, slot)):
            message = f"Pod {worker.name} waits for PVCs that do not exist"
            yield CreatePvcs(slot, EventReason(ActionReason.CREATE_PVCS, message))


def _owned(view: WorkerSetView, roles: PodRoles) -> Iterator[SetPvcOwners]:
    scaled_in = frozenset[Worker]()
    if roles.cause is DrainCause.SCALE_IN:
        scaled_in = frozenset(roles.to_delete)
    if not scaled_in and not any(
        _may_have_wrong_owner(view.workers, one) for one in view.pvcs.values()
    ):
        # Nearly always, and there may be thousands.
        return
    placed: set[str] = set()
    for worker in (*roles.kept, *roles.updating, *roles.to_delete):
        slot = _slot_of(worker)
        for name in names_of(view.workers, slot) if slot is not None else ():
            placed.add(name)
            pvc = view.pvcs.get(name)
            if pvc is None or pvc.metadata.deleting:
                continue
            wanted = owners(view.workers, pvc, worker.pod, scaled_in=worker in scaled_in)
            if {one.uid for one in wanted} != {one.uid for one in _owners(pvc)}:
                meta = pvc.metadata
                yield SetPvcOwners(meta.name, meta.uid, meta.resource_version, wanted, worker.name)
    yield from _release(view, placed)


def _release(view: WorkerSetView, placed: Collection[str]) -> Iterator[SetPvcOwners]:
    """Take PVCs of slots without a pod from a NodeSet whose deletion must keep them.

    None is given to it: users who keep PVCs at scale-in may need them after the NodeSet as well.
    """
    policy = view.workers.pvcs
    if policy.when_deleted == "Delete":
        return
    for name, pvc in view.pvcs.items():
        meta = pvc.metadata
        wanted = tuple(one for one in _owners(pvc) if one.uid != view.workers.metadata.uid)
        if name not in placed and not meta.deleting and len(wanted) < len(_owners(pvc)):
            yield SetPvcOwners(name, meta.uid, meta.resource_version, wanted)


def _may_have_wrong_owner(workers: WorkerSet, pvc: PersistentVolumeClaim) -> bool:
    """Whether a PVC may have other owners than that of a slot that stays."""
    policy = workers.pvcs
    owned = policy.when_deleted == "Delete"
    # Written out, as it is asked of thousands.
    found = pvc.metadata.owner_references
    return len(found) != owned or (owned and found[0].uid != workers.metadata.uid)


def owners(
    workers: WorkerSet, pvc: PersistentVolumeClaim, pod: Pod, *, scaled_in: bool
) -> tuple[OwnerReference, ...]:
    """The owners of a PVC; those that are neither an object of that kind nor a pod stay."""
    policy = workers.pvcs
    meta = workers.metadata
    others = tuple(
        one
        for one in _owners(pvc)
        if one.uid not in (meta.uid, pod.metadata.uid)
        and not (_is_pod(one) or workers.owns_as(one))
    )
    if policy.when_scaled == "Delete" and scaled_in:
        return (*others, _reference("v1", "Pod", pod.metadata.name, pod.metadata.uid))
    if policy.when_deleted == "Delete":
        version, kind = workers.api_version, workers.kind
        return (*others, _reference(version, kind, meta.name, meta.uid))
    return others


def _is_pod(owner: OwnerReference) -> bool:
    return owner.is_kind("", "Pod")


def _reference(version: str, kind: str, name: str, uid: str) -> OwnerReference:
    return OwnerReference(api_version=version, kind=kind, name=name, uid=uid)


def _owners(pvc: PersistentVolumeClaim) -> tuple[OwnerReference, ...]:
    return pvc.metadata.owner_references


def _slot_of(worker: Worker) -> WorkerSlot | None:
    """The place of a worker; None for a name without ordinal."""
    name, slurm_node = worker.name, worker.slurm_node
    if worker.is_per_node:
        return WorkerSlot(name, slurm_node, node=worker.kubernetes_node_name)
    return None if worker.ordinal is None else WorkerSlot(name, slurm_node, worker.ordinal)
