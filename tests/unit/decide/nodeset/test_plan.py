"""The life of a NodeSet: what is done, what is told, what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import pytest

from penstock.api.cluster.marks import CORDONED_FOR, DRAIN_FINALIZER
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import POD_CORDON
from penstock.api.slinky.nodeset import NodeSetStatus, UpdateStrategy
from penstock.catalog.reasons.object import ObjectReason
from penstock.decide.action import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeletionGround,
    DrainNode,
    PatchPod,
    RegisterNode,
    RemoveFinalizer,
    SetPodConditions,
    UndrainNode,
)
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.view import ControllerState
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Job, Node
from penstock.translate.slinky.worker_set import nodeset_status
from support.nodesets import NOW, UNKNOWN, job, known_nodes, node, nodeset, pod, view, waiting
from support.world import World

A = TypeVar("A", bound=Action)
DRAINED = known_nodes(node(0), node(1, "IDLE", "DRAIN"))


def of(found: Plan, kind: type[A]) -> list[A]:
    return [action for action in found.actions if isinstance(action, kind)]


def told(found: Plan, reason: str) -> str:
    return next(finding.message for finding in found.findings if finding.reason == reason)


def going(ordinal: int, cause: str = "scale-in") -> Pod:
    mark = f"{cause} since 2027-01-15T08:00:00Z"
    return pod(ordinal, annotations={POD_CORDON: "true", CORDONED_FOR: mark})


def addressed(one: Pod) -> Pod:
    return msgspec.structs.replace(
        one, status=msgspec.structs.replace(one.status, pod_ip="10.0.0.7")
    )


def counts(found: NodeSetStatus) -> NodeSetStatus:
    return msgspec.structs.replace(found, conditions=())


def names(actions: Sequence[DeletePod | PatchPod]) -> list[str]:
    return [action.name for action in actions]


class TestScaleOut:
    def test_missing_pods_are_made(self) -> None:
        found = plan(view(nodeset(4), pod(1)))
        assert [a.slot.ordinal for a in of(found, CreatePod)] == [0, 2, 3]
        assert of(found, DeletePod) == []

    def test_an_unknown_slurm_does_not_stop_it(self) -> None:
        found = plan(view(nodeset(2), nodes=UNKNOWN, jobs=UNKNOWN))
        assert len(of(found, CreatePod)) == 2

    @pytest.mark.parametrize(
        ("starting", "age", "wait"), [(33, 5.0, True), (32, 5.0, False), (33, 40.0, False)]
    )
    def test_conditions_of_pods_wait_while_many_others_start(
        self, starting: int, age: float, wait: bool
    ) -> None:
        born = NOW - age
        pods = [pod(n, phase="Pending", ready=False, created=born) for n in range(starting)]
        found = plan(view(nodeset(starting + 1), *pods, pod(starting)))
        told_of = {action.name for action in of(found, SetPodConditions)}
        assert (f"compute-{starting}" in told_of) is not wait
        assert found.requeue_after == (5.0 if wait else None)

    @pytest.mark.parametrize("state", [ControllerState.ABSENT, ControllerState.DELETING])
    def test_it_waits_for_the_controller(self, state: ControllerState) -> None:
        found = plan(view(nodeset(1), controller=state))
        assert of(found, CreatePod) == []
        assert found.findings[0].ok is False

    def test_it_waits_for_what_pods_need(self) -> None:
        """D44."""
        hold = Finding(
            False, ObjectReason.SECRET_NOT_FOUND, "Secret slurm-auth-slurm does not exist"
        )
        found = plan(view(nodeset(1), creation_blocked=hold))
        assert of(found, CreatePod) == []
        assert told(found, "SecretNotFound") == hold.message

    def test_a_terminating_pod_keeps_its_ordinal_until_it_is_gone(self) -> None:
        found = plan(view(nodeset(2), pod(0), pod(1, deleted=True)))
        assert of(found, CreatePod) == []
        assert told(found, "PodsTerminating") == "1 pods are terminating: compute-1"

    def test_a_name_that_somebody_has_is_told(self) -> None:
        found = plan(view(nodeset(2), pod(0), others=(pod(1),)))
        assert of(found, CreatePod) == []
        assert "compute-1 (of NodeSet compute)" in told(found, "PodNameTaken")

    def test_a_node_that_was_to_go_is_taken_back(self) -> None:
        reason = "slurm-operator: Pod (slurm/compute-1) is pending termination for scale-in"
        nodes = known_nodes(node(0), node(1, "ALLOCATED", "DRAIN", reason=reason))
        first = plan(view(nodeset(2), pod(0), going(1), nodes=nodes))
        assert names(of(first, PatchPod)) == ["compute-1"]
        then = plan(view(nodeset(2), pod(0), pod(1), nodes=nodes))
        assert [a.node for a in of(then, UndrainNode)] == ["compute-1"]

    def test_the_finalizer_comes_before_the_first_pod(self) -> None:
        bare = nodeset(1)
        bare = type(bare)(metadata=type(bare.metadata)(name="compute"), spec=bare.spec)
        kinds = [type(action) for action in plan(view(bare)).actions]
        assert kinds == [AddFinalizer, CreatePod]


class TestScaleIn:
    def test_a_busy_node_is_drained_and_keeps_its_pod(self) -> None:
        nodes = known_nodes(node(0, "ALLOCATED"), node(1, "ALLOCATED"))
        jobs = (job(17, 0, time_limit=None), job(18, 1))
        first = plan(view(nodeset(1), pod(0), pod(1), nodes=nodes, jobs=jobs))
        assert [a.name for a in of(first, PatchPod) if a.why] == ["compute-1"]
        assert of(first, DrainNode) == []
        found = plan(view(nodeset(1), pod(0), going(1), nodes=nodes, jobs=jobs))
        assert [a.node for a in of(found, DrainNode)] == ["compute-1"]
        assert of(found, DeletePod) == []
        assert told(found, "JobsRunning") == (
            "1 pods wait to be deleted: compute-1 since 2027-01-15T08:00:00Z: "
            "job 18 (since 2027-01-15T07:50:00Z, until 2027-01-15T08:50:00Z)"
        )

    def test_a_drained_node_loses_its_pod_in_exactly_this_version(self) -> None:
        (delete,) = of(plan(view(nodeset(1), pod(0), pod(1), nodes=DRAINED, jobs=())), DeletePod)
        assert delete == replace(
            delete,
            name="compute-1",
            uid="uid-compute-1",
            resource_version="7",
            node="compute-1",
            guard=DeletionGround.DRAINED,
        )

    def test_nothing_else_is_written_to_a_pod_that_is_deleted(self) -> None:
        found = plan(view(nodeset(1), pod(0), pod(1), nodes=DRAINED))
        assert "compute-1" not in names(of(found, PatchPod))

    @pytest.mark.parametrize(
        ("nodes", "jobs"),
        [(UNKNOWN, ()), (DRAINED, UNKNOWN), (UNKNOWN, UNKNOWN)],
    )
    def test_not_knowing_keeps_every_pod_and_says_so(
        self, nodes: Known[dict[str, Node]] | Unknown, jobs: tuple[Job, ...] | Unknown
    ) -> None:
        """D4."""
        found = plan(view(nodeset(0), pod(0), pod(1), nodes=nodes, jobs=jobs))
        assert of(found, DeletePod) == []
        assert "2 pods wait to be deleted" in told(found, "SlurmUnknown")

    @pytest.mark.parametrize("nodes", [known_nodes(), known_nodes(node(9))])
    @pytest.mark.parametrize("replicas", [0, 2])
    def test_pods_without_a_slurm_record_are_never_deleted_but_register_again(
        self, nodes: Known[dict[str, Node]], replicas: int
    ) -> None:
        """D23."""
        pods = [addressed(pod(0)), addressed(pod(1))]
        found = plan(view(nodeset(replicas), *pods, nodes=nodes))
        assert of(found, DeletePod) == []
        assert [one.node for one in of(found, RegisterNode)] == ["compute-0", "compute-1"]
        assert {one.address for one in of(found, RegisterNode)} == {"10.0.0.7"}
        reason = "SlurmNodeNotRegistered" if replicas else "NodeNotRegistered"
        assert told(found, reason).startswith("2 ")

    def test_its_record_goes_after_the_pod(self) -> None:
        comment = (
            '{"namespace":"slurm","podName":"compute-1","node":"machine-1",'
            '"nodeSetName":"compute","nodeSetUID":"nodeset-uid"}'
        )
        gone = node(1, "DOWN", "DRAIN", comment=comment)
        found = plan(view(nodeset(1), pod(0), nodes=known_nodes(node(0), gone)))
        assert [a.node for a in of(found, DeleteNodeRecord)] == ["compute-1"]
        leaving = view(nodeset(1), pod(0), pod(1, deleted=True), nodes=known_nodes(node(0), gone))
        assert of(plan(leaving), DeleteNodeRecord) == []

    def test_a_message_names_a_few_and_counts_the_rest(self) -> None:
        pods = [pod(n) for n in range(9)]
        message = told(plan(view(nodeset(0), *pods, nodes=UNKNOWN)), "SlurmUnknown")
        assert message.count("compute-") == 5
        assert message.endswith("and 4 more")


class TestEndedPods:
    def test_an_evicted_pod_is_made_again_after_a_pause(self) -> None:
        failed = pod(0, phase="Failed", ready=False, created=NOW - 4)
        found = plan(view(nodeset(1), failed))
        assert of(found, DeletePod) == []
        assert found.requeue_after == 6.0
        (delete,) = of(plan(view(nodeset(1), failed, now=NOW + 6)), DeletePod)
        assert delete.guard is DeletionGround.FINISHED

    def test_one_that_is_not_wanted_goes_at_once(self) -> None:
        failed = pod(0, phase="Failed", ready=False, created=NOW)
        assert names(of(plan(view(nodeset(0), failed, nodes=UNKNOWN)), DeletePod)) == ["compute-0"]


class TestDeletion:
    def test_nodes_are_drained_before_anything_goes(self) -> None:
        """D18."""
        found = plan(view(nodeset(2, deleted=NOW), going(0, "deletion"), going(1, "deletion")))
        assert [a.node for a in of(found, DrainNode)] == ["compute-0", "compute-1"]
        assert of(found, DeletePod) + of(found, RemoveFinalizer) == []
        assert told(found, "Deleting").endswith("is being deleted: 2 pods are left")

    def test_the_finalizer_stays_while_pods_or_records_are_left(self) -> None:
        comment = (
            '{"namespace":"slurm","podName":"compute-1","node":"machine-1",'
            '"nodeSetName":"compute","nodeSetUID":"nodeset-uid"}'
        )
        gone = node(1, "DOWN", "DRAIN", comment=comment)
        for seen in (
            view(nodeset(2, deleted=NOW), pod(0, deleted=True)),
            view(nodeset(2, deleted=NOW), nodes=known_nodes(gone)),
        ):
            assert of(plan(seen), RemoveFinalizer) == []

    def test_it_goes_when_nothing_is_left(self) -> None:
        found = plan(view(nodeset(2, deleted=NOW), nodes=known_nodes(node(9))))
        assert [a.finalizer for a in of(found, RemoveFinalizer)] == [DRAIN_FINALIZER]

    def test_a_silent_slurm_is_waited_for_a_while_when_no_pod_is_left(self) -> None:
        waits = plan(view(nodeset(2, deleted=NOW), nodes=UNKNOWN))
        assert waits.actions == ()
        assert waits.requeue_after == 300.0
        late = plan(view(nodeset(2, deleted=NOW - 300), nodes=UNKNOWN))
        assert len(of(late, RemoveFinalizer)) == 1

    @pytest.mark.parametrize("state", [ControllerState.ABSENT, ControllerState.DELETING])
    def test_without_a_controller_nothing_holds_it_up(self, state: ControllerState) -> None:
        found = plan(view(nodeset(1, deleted=NOW), pod(0), nodes=UNKNOWN, controller=state))
        assert [a.guard for a in of(found, DeletePod)] == [DeletionGround.CONTROLLER_GONE]
        assert "without being drained" in told(found, "ControllerGone")
        empty = plan(view(nodeset(1, deleted=NOW), nodes=UNKNOWN, controller=state))
        assert len(of(empty, RemoveFinalizer)) == 1

    def test_a_missing_controller_alone_deletes_nothing(self) -> None:
        absent = ControllerState.ABSENT
        found = plan(view(nodeset(0), pod(0), nodes=UNKNOWN, controller=absent))
        assert of(found, DeletePod) == []


class TestStatus:
    def test_pods_and_slurm_states_are_counted(self) -> None:
        """S015, feature row 48."""
        pods = [pod(n) for n in range(4)]
        young = pod(4, ready_since=NOW - 5)
        unready = pod(5, phase="Pending", ready=False, slurmd=waiting())
        old = pod(6, labels={"controller.kubernetes.io/hash": "old"})
        nodes = known_nodes(
            node(0, "ALLOCATED"),
            node(1, "MIXED"),
            node(2, "IDLE", "DRAIN"),
            node(3, "DOWN", "DRAIN"),
            node(4),
            node(77),
        )
        wanted = nodeset(8, min_ready_seconds=10)
        found = plan(view(wanted, *pods, young, unready, old, nodes=nodes))
        assert counts(nodeset_status(wanted.status, found.status)) == NodeSetStatus(
            observed_generation=3,
            replicas=7,
            updated_replicas=6,
            ready_replicas=6,
            available_replicas=5,
            unavailable_replicas=3,
            desired=8,
            slurm_idle=2,
            slurm_allocated=2,
            slurm_down=1,
            slurm_drain=2,
            node_set_hash="new",
            selector="app.kubernetes.io/instance=compute,app.kubernetes.io/name=slurmd",
        )
        assert found.requeue_after == 5.0

    def test_what_slurm_said_last_stays_while_it_is_silent(self) -> None:
        wanted = nodeset(1)
        wanted = type(wanted)(
            metadata=wanted.metadata, spec=wanted.spec, status=NodeSetStatus(slurm_idle=1)
        )
        assert plan(view(wanted, pod(0), nodes=UNKNOWN)).status.slurm_idle == 1

    def test_an_older_template_is_told_and_kept(self) -> None:
        old = pod(0, labels={"controller.kubernetes.io/hash": "old"})
        by_hand = nodeset(1, update_strategy=UpdateStrategy(type="OnDelete"))
        found = plan(view(by_hand, old))
        assert of(found, DeletePod) + of(found, PatchPod) + of(found, DrainNode) == []
        assert "compute-0" in told(found, "OldRevision")
        same = plan(view(nodeset(1), old, equal=frozenset({"old"})))
        assert same.status.updated_replicas == 1

    def test_a_pod_that_never_got_to_work_is_replaced_when_its_template_changes(self) -> None:
        older = {"controller.kubernetes.io/hash": "old"}
        broken = waiting("ErrImagePull")
        old = pod(0, phase="Pending", ready=False, slurmd=broken, labels=older)
        gone = known_nodes(node(0, "DOWN"))
        found = plan(view(nodeset(1), old, nodes=gone))
        assert [d.guard for d in of(found, DeletePod)] == [DeletionGround.NEVER_STARTED]
        new = pod(0, phase="Pending", ready=False, slurmd=broken)
        assert of(plan(view(nodeset(1), new, nodes=gone)), DeletePod) == []
        by_hand = nodeset(1, update_strategy=UpdateStrategy(type="OnDelete"))
        assert of(plan(view(by_hand, old, nodes=gone)), DeletePod) == []
        loop = pod(0, ready=False, slurmd=waiting("CrashLoopBackOff", restarts=2), labels=older)
        unknown = plan(view(nodeset(1), loop, nodes=known_nodes(node(9))))
        assert [delete.guard for delete in of(unknown, DeletePod)] == [DeletionGround.STOPPED]
        registered = plan(view(nodeset(1), loop, nodes=known_nodes(node(0))))
        assert of(registered, DeletePod) == []
        assert of(plan(view(nodeset(1), loop, nodes=UNKNOWN)), DeletePod) == []

    def test_a_broken_image_is_told_with_the_kubelets_words(self) -> None:
        broken = pod(0, phase="Pending", ready=False, slurmd=waiting("ImagePullBackOff"))
        found = plan(view(nodeset(1), broken, nodes=known_nodes(node(9))))
        assert found.findings[0].ok is False
        assert "compute-0: container slurmd ImagePullBackOff" in told(found, "PodsFailing")

    def test_two_pods_on_one_slurm_node_are_not_drained_by_turns(self) -> None:
        """S069."""

        def hosted(ordinal: int, cordon: dict[str, str]) -> Pod:
            found = pod(ordinal, host_network=True, annotations=cordon)
            spec = type(found.spec)(node_name="machine-0", host_network=True)
            return type(found)(metadata=found.metadata, spec=spec, status=found.status)

        pods = (hosted(0, {}), hosted(1, {POD_CORDON: "true"}))
        machine = replace(node(0), name="machine-0")
        found = plan(view(nodeset(2), *pods, nodes=known_nodes(machine)))
        assert of(found, DrainNode) == []
        assert "Slurm node: machine-0. Give them" in told(found, "SlurmNodeShared")


def test_a_settled_nodeset_is_silent() -> None:
    world = World(nodeset(3))
    for _ in range(8):
        world.one_pass()
        for name in list(world.pods):
            world.advance(name)
        world.now += 15
    settled = world.view()
    found = plan(settled)
    assert found.actions == ()
    assert found.requeue_after is None
    assert found.status == settled.workers.last
    assert [finding.ok for finding in found.findings] == [True]
    assert plan(replace(settled, now=settled.now + 86400)) == found


def test_conditions_follow_the_checks() -> None:
    waits = plan(view(nodeset(2), pod(0)))
    shown = {c.type: (c.status, c.reason) for c in waits.status.conditions}
    assert shown == {
        "Ready": ("False", "CreatingPods"),
        "Reconciling": ("True", "CreatingPods"),
    }
    ready = plan(view(nodeset(1), pod(0)))
    assert [(c.type, c.status, c.reason) for c in ready.status.conditions] == [
        ("Ready", "True", "PodsReady")
    ]
