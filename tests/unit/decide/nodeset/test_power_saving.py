"""Workers whose Slurm nodes slurmctld powers up and down."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import (
    Action,
    CreatePod,
    DeletePod,
    DeletionGround,
    DrainNode,
    PatchPod,
    PowerDownNode,
    RegisterNode,
    UndrainNode,
)
from penstock.decide.drain.recheck import is_still_valid
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.nodeset.power_saving import BOOT_S
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.slurm.known import Known
from penstock.translate.slinky.worker_set import MARKS
from support.nodesets import NOW, job, known_nodes, node, nodeset, pod, running, view

A = TypeVar("A", bound=Action)
OURS = "slurm-operator: Pod (slurm/compute-1) is pending termination for update"


def of(found: Plan, kind: type[A]) -> list[A]:
    return [action for action in found.actions if isinstance(action, kind)]


def powered(active: Collection[int], *pods: Pod, size: int = 4, **more: Any) -> WorkerSetView:
    """A set of `size` nodes that slurm.conf has, of which some are to have a pod."""
    seen = view(nodeset(size), *pods, **more)
    workers = replace(
        seen.workers, powered=frozenset(active), replicas=len(active), power_saved=size
    )
    return replace(seen, workers=workers)


def test_exactly_the_active_ordinals_get_a_pod() -> None:
    found = plan(powered({3, 1}, pod(1)))
    assert [one.slot.pod for one in of(found, CreatePod)] == ["compute-3"]
    assert of(found, DeletePod) == of(found, DrainNode) == of(found, PowerDownNode) == []


def test_no_active_node_is_a_set_without_pods_that_is_ready() -> None:
    found = plan(powered(()))
    assert found.actions == () or of(found, CreatePod) == []
    assert found.status.desired == 0
    assert all(one.ok for one in found.findings)


def test_a_worker_goes_at_once_when_slurmctld_has_powered_it_down() -> None:
    nodes = known_nodes(node(0), node(1, "IDLE", "POWERING_DOWN"))
    found = plan(powered({0}, pod(0), pod(1), nodes=nodes))
    (gone,) = of(found, DeletePod)
    assert (gone.name, gone.guard) == ("compute-1", DeletionGround.POWERED_DOWN)
    assert of(found, DrainNode) == []


def test_a_worker_that_slurm_uses_is_powered_down_by_slurm_and_never_drained() -> None:
    """A drain would stay on the record, and no job would power the node up again."""
    nodes = known_nodes(node(0, "ALLOCATED"))
    found = plan(powered((), pod(0), nodes=nodes, jobs=(job(1, 0),)))
    assert [one.node for one in of(found, PowerDownNode)] == ["compute-0"]
    assert of(found, DeletePod) == of(found, DrainNode) == []
    assert all(CORDONED_FOR not in one.annotations for one in of(found, PatchPod))


@pytest.mark.parametrize("state", ["POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN"])
def test_slurm_is_asked_once_to_power_a_node_down(state: str) -> None:
    nodes = known_nodes(node(0, "MIXED", state))
    found = plan(powered((), pod(0), nodes=nodes, jobs=(job(1, 0),)))
    assert of(found, PowerDownNode) == []


def test_a_request_to_power_down_is_dropped_when_slurm_did_so_meanwhile() -> None:
    nodes = known_nodes(node(0, "ALLOCATED"))
    (action,) = of(plan(powered((), pod(0), nodes=nodes, jobs=(job(1, 0),))), PowerDownNode)
    now = SlurmSnapshot.of(known_nodes(node(0, "IDLE", "POWERING_DOWN")), Known((), 1.0))
    assert not is_still_valid(MARKS, action, now)
    assert is_still_valid(MARKS, action, SlurmSnapshot.of(nodes, Known((), 1.0)))


def test_records_of_powered_down_nodes_stay_and_are_never_registered() -> None:
    nodes = known_nodes(*(node(n, "IDLE", "POWERED_DOWN") for n in range(1, 4)))
    found = plan(powered({0}, pod(0), nodes=nodes))
    assert of(found, RegisterNode) == []
    assert not [one for one in found.actions if type(one).__name__ == "DeleteNodeRecord"]


def test_our_drain_of_a_powered_down_node_is_taken_back_and_that_of_others_stays() -> None:
    nodes = known_nodes(
        node(1, "IDLE", "DRAIN", "POWERED_DOWN", reason=OURS),
        node(2, "IDLE", "DRAIN", "POWERED_DOWN", reason="bad fan"),
        node(3, "IDLE", "DRAIN", "POWERING_DOWN", reason=OURS),
    )
    found = plan(powered((), nodes=nodes))
    assert [one.node for one in of(found, UndrainNode)] == ["compute-1"]


def configuring(**more: Any) -> WorkerSetView:
    nodes = known_nodes(node(0, "ALLOCATED", "POWERING_UP"))
    jobs = (job(1, 0, state="RUNNING+CONFIGURING"),)
    return powered({0}, pod(0, **more), nodes=nodes, jobs=jobs)


def test_a_pod_older_than_the_power_up_is_replaced_as_that_is_the_boot() -> None:
    (gone,) = of(plan(configuring(slurmd=running(NOW - BOOT_S - 1))), DeletePod)
    assert gone.guard is DeletionGround.NOT_REBOOTED


def test_a_new_slurmd_has_time_to_register() -> None:
    found = plan(configuring(slurmd=running(NOW - BOOT_S + 20)))
    assert of(found, DeletePod) == []
    assert found.requeue_after is not None
    assert found.requeue_after <= 20
