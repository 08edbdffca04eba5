"""Pods to create, and records of their Slurm nodes that must go before."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog.event import ActionReason
from penstock.decide.action import CreatePod, DeleteNodeRecord, EventReason
from penstock.decide.nodeset.pod_roles import PodRoles
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.slurm_node.records import deletions_before_recreate


def plan_creations(
    view: WorkerSetView,
    observed: ObservedWorkers,
    roles: PodRoles,
    terminating_pvcs: Mapping[str, str],
) -> tuple[DeleteNodeRecord | CreatePod, ...]:
    """Deletions of records, then creations of pods but those that wait for `terminating_pvcs`."""
    if not view.can_create_pods:
        return ()
    nodes = [slot.slurm_node for slot in roles.missing]
    return (
        *deletions_before_recreate(view, observed, nodes),
        *(
            CreatePod(
                slot, EventReason(ActionReason.CREATE_POD, f"Pod {slot.pod} does not exist yet")
            )
            for slot in roles.missing
            if slot.pod not in terminating_pvcs
        ),
    )
