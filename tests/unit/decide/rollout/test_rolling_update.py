"""An update takes no more pods at once than declared, idle ones first, and waits for jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.labels import POD_CORDON, POD_CORDON_SHORT
from penstock.api.slinky.nodeset import NodeSet, RollingUpdate, UpdateStrategy
from penstock.catalog.reasons.object import ObjectReason
from penstock.decide.action import (
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeletionGround,
    DrainNode,
    EventReason,
    PatchPod,
    SetNodeComment,
    UndrainNode,
)
from penstock.decide.drain.recheck import is_still_valid
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.node_comment import NodeComment
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.rollout.budget import max_unavailable
from penstock.decide.rollout.rolling_update import rollout
from penstock.slurm.known import Known
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import (
    NOW,
    UNKNOWN,
    job,
    known_nodes,
    node,
    nodeset,
    observed,
    pod,
    view,
    waiting,
)

OLD = {"controller.kubernetes.io/hash": "old"}
TAKEN = {POD_CORDON: "true", CORDONED_FOR: "update since 2027-01-15T08:00:00Z"}
REASON = "slurm-operator: Pod (slurm/compute-{}) is pending termination for update"


def rolling(replicas: int, most: int | str = 1, **spec: Any) -> NodeSet:
    strategy = UpdateStrategy(rolling_update=RollingUpdate(max_unavailable=most))
    return nodeset(replicas, update_strategy=strategy, **spec)


def old(ordinal: int, **more: Any) -> Pod:
    return pod(ordinal, labels=OLD, **more)


def taken(ordinal: int) -> Pod:
    return old(ordinal, annotations=TAKEN)


def drained(ordinal: int, *state: str) -> Node:
    return node(ordinal, *(state or ("IDLE",)), "DRAIN", reason=REASON.format(ordinal))


def chosen(seen: WorkerSetView) -> list[str]:
    every = observed(seen)
    found = rollout(seen, every, [one for one in every.all if not one.is_terminating])
    return [one.name for one in found.updating]


def marked(found: Plan) -> list[str]:
    return [
        one.name
        for one in found.actions
        if isinstance(one, PatchPod)
        and (one.annotations.get(CORDONED_FOR) or "").startswith("update")
    ]


def drains(found: Plan) -> list[DrainNode]:
    return [one for one in found.actions if isinstance(one, DrainNode)]


def deletes(found: Plan) -> list[DeletePod]:
    return [one for one in found.actions if isinstance(one, DeletePod)]


def told(found: Plan) -> str:
    return next(one.message for one in found.findings if one.reason == "RollingUpdate")


@pytest.mark.parametrize(
    ("replicas", "most", "budget"),
    [(4, 1, 1), (4, 3, 3), (4, "25%", 1), (5, "25%", 2), (2, "20%", 1), (3, "100%", 3), (0, 1, 1)],
)
def test_percentages_are_of_the_replicas_and_rounded_up(
    replicas: int, most: int | str, budget: int
) -> None:
    """S011, feature row 37."""
    assert max_unavailable(worker_set(rolling(replicas, most)), replicas) == budget


class TestOrder:
    def test_one_is_marked_before_its_node_is_drained(self) -> None:
        first = plan(view(rolling(2), old(0), old(1)))
        assert marked(first) == ["compute-1"]
        assert drains(first) == []
        then = plan(view(rolling(2), old(0), taken(1)))
        assert marked(then) == []
        (drain,) = drains(then)
        assert (drain.node, drain.reason) == ("compute-1", REASON.format(1))
        assert drain.while_idle

    def test_what_does_not_work_goes_first_then_idle_then_busy(self) -> None:
        broken = old(0, ready=False)
        nodes = known_nodes(node(0), node(1, "ALLOCATED"), node(2), node(3, "ALLOCATED"))
        jobs = (job(1, 1), job(2, 3))
        seen = view(rolling(4, 4), broken, old(1), old(2), old(3), nodes=nodes, jobs=jobs)
        assert chosen(seen)[:2] == ["compute-0", "compute-2"]
        assert set(chosen(seen)[2:]) == {"compute-1", "compute-3"}

    @pytest.mark.parametrize(
        "state", [("DOWN",), ("IDLE", "DRAIN"), ("IDLE", "NOT_RESPONDING"), ("IDLE", "INVALID_REG")]
    )
    def test_a_pod_without_a_usable_node_does_not_work(self, state: tuple[str, ...]) -> None:
        nodes = known_nodes(node(0, *state, reason="bad disk"), node(1), node(2))
        assert chosen(view(rolling(3), old(0), old(1), old(2), nodes=nodes)) == ["compute-0"]

    def test_a_suspended_jobs_node_is_not_idle(self) -> None:
        seen = view(rolling(2), old(0), old(1), jobs=(job(1, 1, state="SUSPENDED"),))
        assert chosen(seen) == ["compute-0"]

    def test_a_busy_node_is_taken_when_no_idle_one_is_left(self) -> None:
        nodes = known_nodes(node(0), node(1, "ALLOCATED"))
        (drain,) = drains(plan(view(rolling(2), pod(0), taken(1), nodes=nodes, jobs=(job(9, 1),))))
        assert drain.node == "compute-1"
        assert not drain.while_idle

    def test_one_that_got_a_job_before_its_drain_gives_way_to_an_idle_one(self) -> None:
        nodes = known_nodes(node(0), node(1, "ALLOCATED"))
        found = plan(view(rolling(2), old(0), taken(1), nodes=nodes, jobs=(job(9, 1),)))
        assert marked(found) == ["compute-0"]
        released = [one for one in found.actions if isinstance(one, PatchPod)][-1]
        assert (released.name, released.annotations[CORDONED_FOR]) == ("compute-1", "nobody")

    def test_the_drain_of_an_idle_node_is_not_sent_when_it_has_a_job(self) -> None:
        (drain,) = drains(plan(view(rolling(2), old(0), taken(1))))
        idle = SlurmSnapshot.of(known_nodes(node(1)), Known((), 1.0))
        assert is_still_valid(MARKS, drain, idle)
        assert not is_still_valid(
            MARKS, drain, SlurmSnapshot.of(known_nodes(node(1)), Known((job(1, 1),), 1.0))
        )
        busy = SlurmSnapshot.of(known_nodes(node(1, "MIXED")), Known((), 1.0))
        assert not is_still_valid(MARKS, drain, busy)


class TestBudget:
    def test_the_next_waits_until_the_new_pod_is_in_use(self) -> None:
        made = pod(1, created=NOW - 5, ready_since=NOW - 2)
        for other, state in (
            (pod(1, deleted=True), "IDLE"),
            (pod(1, phase="Pending", ready=False, slurmd=waiting()), "DOWN"),
            (made, "DOWN"),
        ):
            seen = view(rolling(2), old(0), other, nodes=known_nodes(node(0), node(1, state)))
            assert chosen(seen) == []
        missing = view(rolling(2), old(0), nodes=known_nodes(node(0)))
        assert chosen(missing) == []
        assert chosen(view(rolling(2), old(0), made)) == ["compute-0"]

    def test_a_new_pod_whose_record_is_of_the_former_slurmd_is_not_in_use(self) -> None:
        former = node(1, slurmd_start_time=int(NOW) - 9000)
        seen = view(rolling(2), old(0), pod(1), nodes=known_nodes(node(0), former))
        assert chosen(seen) == []

    def test_a_new_pod_counts_after_its_min_ready_seconds(self) -> None:
        """Feature row 41."""
        young = pod(1, ready_since=NOW - 5)
        seen = view(rolling(2, min_ready_seconds=10), old(0), young)
        assert chosen(seen) == []
        assert plan(seen).requeue_after == 5.0

    def test_one_that_waits_for_its_job_uses_it(self) -> None:
        nodes = known_nodes(node(0), drained(1, "ALLOCATED"))
        found = plan(view(rolling(2), old(0), taken(1), nodes=nodes, jobs=(job(18, 1),)))
        assert marked(found) == []
        assert drains(found) + deletes(found) == []
        assert told(found) == (
            "0 of 2 pods have the new template, 1 may be updated at a time: compute-1 since "
            "2027-01-15T08:00:00Z: "
            "job 18 (since 2027-01-15T07:50:00Z, until 2027-01-15T08:50:00Z)"
        )

    def test_one_under_way_is_not_given_up_when_another_pod_fails(self) -> None:
        nodes = known_nodes(node(0), drained(1, "ALLOCATED"), node(2))
        failed = pod(2, ready=False)
        seen = view(rolling(3), old(0), taken(1), failed, nodes=nodes, jobs=(job(18, 1),))
        assert chosen(seen) == ["compute-1"]

    def test_one_not_drained_yet_is_given_up_when_another_pod_fails(self) -> None:
        seen = view(rolling(3), old(0), taken(1), pod(2, ready=False))
        assert chosen(seen) == []
        assert drains(plan(seen)) == []

    def test_many_that_do_not_work_are_not_drained_all_at_once(self) -> None:
        """D32, feature row 37."""
        pods = [old(number, ready=False) for number in range(5)]
        assert len(chosen(view(rolling(5, 2), *pods))) == 2

    def test_a_nodeset_that_grows_is_not_updated_meanwhile(self) -> None:
        assert chosen(view(rolling(4), old(0), old(1))) == []

    def test_pods_that_scale_in_takes_are_no_part_of_it(self) -> None:
        found = plan(view(rolling(2), old(0), old(1), pod(2)))
        causes = [
            one.annotations[CORDONED_FOR] for one in found.actions if isinstance(one, PatchPod)
        ]
        assert sorted((cause or "").split()[0] for cause in causes) == ["scale-in", "update"]

    def test_a_silent_slurm_stops_it_and_releases_nothing(self) -> None:
        assert chosen(view(rolling(2), old(0), old(1), nodes=UNKNOWN)) == []
        assert chosen(view(rolling(2), old(0), taken(1), jobs=UNKNOWN)) == []
        going = view(rolling(2), old(0), taken(1), nodes=UNKNOWN)
        assert chosen(going) == ["compute-1"]
        assert deletes(plan(going)) == []


class TestReplacing:
    def test_a_drained_pod_is_deleted_and_made_anew(self) -> None:
        nodes = known_nodes(node(0), drained(1))
        found = plan(view(rolling(2), old(0), taken(1), nodes=nodes))
        assert [(one.name, one.guard) for one in deletes(found)] == [
            ("compute-1", DeletionGround.DRAINED)
        ]
        gone = plan(view(rolling(2), old(0), nodes=nodes))
        assert [one.slot.ordinal for one in gone.actions if isinstance(one, CreatePod)] == [1]

    def test_a_template_changed_back_releases_what_was_taken(self) -> None:
        back = pod(1, annotations=TAKEN)
        nodes = known_nodes(node(0), drained(1, "ALLOCATED"))
        found = plan(view(rolling(2), pod(0), back, nodes=nodes, jobs=(job(1, 1),)))
        (patch,) = (one for one in found.actions if isinstance(one, PatchPod) and one.annotations)
        assert patch.annotations[CORDONED_FOR] == "nobody"
        then = plan(view(rolling(2), pod(0), pod(1), nodes=nodes, jobs=(job(1, 1),)))
        assert [one.node for one in then.actions if isinstance(one, UndrainNode)] == ["compute-1"]

    @pytest.mark.parametrize("kind", ["OnDelete", "ScheduledUpdate"])
    def test_other_strategies_take_nothing(self, kind: Any) -> None:
        wanted = nodeset(2, update_strategy=UpdateStrategy(type=kind))
        assert chosen(view(wanted, old(0), taken(1))) == []

    def test_nothing_goes_that_could_not_be_made_again(self) -> None:
        hold = Finding(
            False, ObjectReason.SECRET_NOT_FOUND, "Secret slurm-auth-slurm does not exist"
        )
        assert chosen(view(rolling(2), old(0), taken(1), creation_blocked=hold)) == []
        for state in (ControllerState.ABSENT, ControllerState.DELETING):
            assert chosen(view(rolling(2), old(0), taken(1), controller=state)) == []

    def test_pods_of_an_equal_revision_stay(self) -> None:
        assert chosen(view(rolling(1), old(0), equal=frozenset({"old"}))) == []

    def test_new_pods_that_never_work_stop_it_and_say_so(self) -> None:
        broken = pod(1, phase="Pending", ready=False, slurmd=waiting("ErrImagePull"))
        nodes = known_nodes(node(0), node(1, "DOWN", reason="slurm-operator: Pod is terminating"))
        found = plan(view(rolling(2), old(0), broken, nodes=nodes))
        assert marked(found) == []
        assert deletes(found) == []
        assert "compute-1 is new and not in use yet" in told(found)
        assert [one.ok for one in found.findings if one.reason == "PodsFailing"] == [False]

    def test_a_broken_new_pod_is_replaced_at_once_by_the_next_template(self) -> None:
        broken = old(1, phase="Pending", ready=False, slurmd=waiting("ErrImagePull"))
        nodes = known_nodes(node(0), node(1, "DOWN"))
        found = plan(view(rolling(2), pod(0), broken, nodes=nodes))
        assert [one.guard for one in deletes(found)] == [DeletionGround.NEVER_STARTED]

    @pytest.mark.parametrize("key", [POD_CORDON, POD_CORDON_SHORT])
    def test_a_pod_that_a_user_cordoned_stays_and_is_out(self, key: str) -> None:
        kept = old(1, annotations={key: "true"})
        nodes = known_nodes(node(0), node(1, "IDLE", "DRAIN", reason="slurm-operator: x"))
        found = plan(view(rolling(2), old(0), kept, nodes=nodes))
        assert marked(found) == []
        assert deletes(found) == []
        assert "compute-1 is cordoned by a user and stays" in told(found)
        assert chosen(view(rolling(2, 2), old(0), kept, nodes=nodes)) == ["compute-0"]

    def test_a_pod_drained_by_somebody_else_is_out_and_goes_first(self) -> None:
        nodes = known_nodes(node(0, "IDLE", "DRAIN", reason="bad disk"), node(1))
        found = plan(view(rolling(2), old(0), old(1), nodes=nodes))
        assert [one.name for one in deletes(found)] == ["compute-0"]
        assert marked(found) == []

    def test_scale_in_takes_an_older_pod_before_a_newer_one(self) -> None:
        found = plan(view(rolling(1), old(0), pod(1)))
        (mark,) = (one for one in found.actions if isinstance(one, PatchPod))
        assert mark.name == "compute-0"


class TestRecord:
    """A record that was made by another template's slurmd goes before the new pod comes."""

    def left(self, *state: str, reason: str = REASON.format(1), **more: Any) -> Node:
        comment = NodeComment("slurm", "compute-1", "m", "compute", "nodeset-uid", **more)
        text = comment.text(MARKS.comment)
        return node(1, *state, reason=reason, comment=text, slurmd_start_time=77)

    def test_it_is_noted_while_the_old_pod_is_there(self) -> None:
        found = plan(view(rolling(1), old(0)))
        (comment,) = (one for one in found.actions if isinstance(one, SetNodeComment))
        assert '"renew":"true"' in comment.comment
        noted = known_nodes(node(0, comment=comment.comment))
        back = plan(view(rolling(1), pod(0), nodes=noted))
        (comment,) = (one for one in back.actions if isinstance(one, SetNodeComment))
        assert "renew" not in comment.comment

    def test_it_goes_before_the_pod_is_made(self) -> None:
        """D42."""
        nodes = known_nodes(node(0), self.left("IDLE", "DRAIN", renew=True))
        kinds = plan(view(rolling(2), pod(0), nodes=nodes)).actions
        found = [one for one in kinds if isinstance(one, DeleteNodeRecord | CreatePod)]
        assert [type(one) for one in found] == [DeleteNodeRecord, CreatePod]

    def test_it_stays_when_that_would_lose_something(self) -> None:
        for one, jobs in (
            (self.left("IDLE", "DRAIN"), ()),
            (self.left("IDLE", "DRAIN", reason="bad disk", renew=True), ()),
            (self.left("IDLE", "DRAIN", drain="bad disk", renew=True), ()),
            (self.left("ALLOCATED", "DRAIN", renew=True), ()),
            (self.left("IDLE", reason="", renew=True), ()),
            (self.left("IDLE", "DRAIN", renew=True), (job(1, 1, state="SUSPENDED"),)),
        ):
            seen = view(rolling(2), pod(0), nodes=known_nodes(node(0), one), jobs=jobs)
            kinds = [type(action) for action in plan(seen).actions]
            assert DeleteNodeRecord not in kinds
            assert CreatePod in kinds

    def test_it_stays_when_another_slurmd_has_registered_meanwhile(self) -> None:
        seen = self.left("IDLE", "DRAIN", renew=True)
        action = DeleteNodeRecord("compute-1", EventReason("", ""), renews=77)
        assert is_still_valid(MARKS, action, SlurmSnapshot.of(known_nodes(seen), Known((), 1.0)))
        newer = replace(seen, slurmd_start_time=78)
        assert not is_still_valid(
            MARKS, action, SlurmSnapshot.of(known_nodes(newer), Known((), 1.0))
        )
        foreign = replace(seen, reason="bad disk")
        assert not is_still_valid(
            MARKS, action, SlurmSnapshot.of(known_nodes(foreign), Known((), 1.0))
        )


def test_a_pod_that_never_started_is_taken_though_the_budget_is_used_up() -> None:
    """Somebody resumed its node, so Slurm calls it idle; two others are out by other hands."""
    waits = old(3, phase="Pending", ready=False, slurmd=waiting("ErrImagePull"))
    out = known_nodes(
        node(0, "IDLE", "DRAIN", reason="bad disk"), node(1, "DOWN"), node(2), node(3, "IDLE")
    )
    seen = view(rolling(4, 2), pod(0), pod(1), old(2), waits, nodes=out)
    assert chosen(seen) == ["compute-3"]
    assert marked(plan(seen)) == ["compute-3"]


@given(
    revisions=st.lists(st.booleans(), min_size=1, max_size=6),
    states=st.lists(
        st.sampled_from(
            [("IDLE",), ("ALLOCATED",), ("DOWN",), ("IDLE", "DRAIN"), ("ALLOCATED", "DRAIN")]
        ),
        min_size=6,
        max_size=6,
    ),
    ready=st.lists(st.booleans(), min_size=6, max_size=6),
    gone=st.sets(st.integers(0, 5)),
    most=st.integers(1, 6),
)
def test_no_node_in_use_is_drained_beyond_the_budget(
    revisions: list[bool],
    states: list[tuple[str, ...]],
    ready: list[bool],
    gone: set[int],
    most: int,
) -> None:
    """Whatever is seen: drained for an update plus all that is out anyway is within the budget."""
    replicas = len(revisions)
    pods = [
        pod(
            number,
            ready=ready[number],
            labels=None if new else OLD,
            annotations=None if new else TAKEN,
        )
        for number, new in enumerate(revisions)
        if number not in gone
    ]
    nodes = known_nodes(*(node(number, *states[number]) for number in range(replicas)))
    found = plan(view(rolling(replicas, most), *pods, nodes=nodes))
    in_use = {
        one.metadata.name
        for one in pods
        if one.ready and not nodes.value[one.metadata.name].state & {"DOWN", "DRAIN"}
    }
    drained_now = {one.node for one in drains(found)}
    if drained_now & in_use:
        assert replicas - len(in_use - drained_now) <= most
