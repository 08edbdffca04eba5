"""The order of a plan's actions: safe to stop after any of them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreatePod,
    CreatePvcs,
    DeleteNodeRecord,
    DeleteReservation,
    DrainNode,
    RegisterNode,
    RemoveFinalizer,
    RemoveStandIns,
    SetPvcOwners,
    SetReservation,
    UndrainNode,
)
from penstock.decide.nodeset.worker_plan import WorkerPlan

SetAction = AddFinalizer | SetReservation | DeleteReservation | RemoveFinalizer


def in_order(
    *,
    creations: Sequence[DeleteNodeRecord | CreatePod],
    pvcs: Sequence[CreatePvcs | SetPvcOwners],
    workers: Sequence[WorkerPlan],
    with_conditions: bool,
    registrations: Sequence[RegisterNode | RemoveStandIns],
    records: Sequence[DrainNode | UndrainNode | DeleteNodeRecord],
    of_set: Sequence[SetAction],
) -> tuple[Action, ...]:
    """All actions. Pods get their marks before Slurm gets drains, and are deleted after all others.

    Finalizers are added before anything that they protect, and removed last.
    """
    return (
        *(one for one in of_set if isinstance(one, AddFinalizer)),
        *creations,
        *pvcs,
        *(one.patch for one in workers if one.patch is not None),
        *(one.topology for one in workers if one.topology is not None),
        *(one.comment for one in workers if one.comment is not None),
        *(one.features for one in workers if one.features is not None),
        *(one.drain for one in workers if one.drain is not None),
        *(one.resume for one in workers if one.resume is not None),
        *(one.conditions for one in workers if one.conditions is not None and with_conditions),
        *registrations,
        *(one.delete for one in workers if one.delete is not None),
        *records,
        *(one for one in of_set if isinstance(one, SetReservation | DeleteReservation)),
        *(one for one in of_set if isinstance(one, RemoveFinalizer)),
    )
