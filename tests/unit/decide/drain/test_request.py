"""Who drains a node, and who may take that back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Node as Machine
from penstock.api.kubernetes.kinds import NodeStatus, Pod, PodCondition
from penstock.api.slinky.labels import POD_CORDON, POD_CORDON_SHORT
from penstock.decide.action import DrainNode, ResumeNode, UndrainNode
from penstock.decide.drain import request as drain
from penstock.decide.drain.recheck import is_still_valid
from penstock.decide.observed import drain_reason
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.node_comment import NodeComment
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.slurm_node import gres_change, records
from penstock.slurm.known import Known
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import (
    NOW,
    UNKNOWN,
    known_nodes,
    machine,
    node,
    nodeset,
    pod,
    running,
    waiting,
    worker,
)

CORDONED = pod(annotations={POD_CORDON: "true"})
OURS = "slurm-operator: Pod (slurm/compute-0) was cordoned"
SCALE_IN = "slurm-operator: Pod (slurm/compute-0) is pending termination for scale-in"
TERMINATING = "slurm-operator: Pod is terminating"
RELEASED = {POD_CORDON: None, CORDONED_FOR: "nobody"}
MARKED = {POD_CORDON: "true", CORDONED_FOR: "scale-in since 2027-01-15T08:00:00Z"}


def decided(
    found: Pod, record: Node, condemned: DrainCause | None = None, host: Machine | None = None
) -> DrainNode | UndrainNode | ResumeNode | None:
    return drain.next_node_update(
        MARKS,
        worker(found, record),
        record,
        drain.drain_request(MARKS, worker(found, record, host), condemned),
        NOW,
    )


def reason_of(step: object) -> str:
    assert isinstance(step, DrainNode)
    return step.reason


@pytest.mark.parametrize("key", [POD_CORDON, POD_CORDON_SHORT])
def test_each_spelling_of_pod_cordon_drains(key: str) -> None:
    """S016, feature row 32."""
    assert reason_of(decided(pod(annotations={key: "true"}), node(0))) == OURS


@pytest.mark.parametrize(("ago", "wait"), [(0, 4.0), (3, 1.0), (-60, 4.0), (4, None), (600, None)])
def test_a_drain_for_changed_resources_ends_when_slurmd_has_registered(
    ago: int, wait: float | None
) -> None:
    since = int(NOW) - ago
    drained = node(0, "IDLE", "DRAIN", reason=gres_change.reason(MARKS), reason_since=since)
    assert gres_change.settles_in(MARKS, drained, NOW) == wait
    assert isinstance(decided(pod(), drained), UndrainNode) == (wait is None)
    # A cordon of a user takes it over at once.
    assert reason_of(decided(CORDONED, drained)) == OURS


@pytest.mark.parametrize("value", ["True", "1", "false", ""])
def test_only_the_word_true_cordons(value: str) -> None:
    assert decided(pod(annotations={POD_CORDON: value}), node(0)) is None


def test_a_cordoned_node_is_left_drained() -> None:
    """D5, feature row 32."""
    assert decided(CORDONED, node(0, "IDLE", "DRAIN", reason=OURS)) is None


@pytest.mark.parametrize("left", [POD_CORDON, POD_CORDON_SHORT])
def test_a_node_stays_drained_until_both_spellings_are_gone(left: str) -> None:
    """S016."""
    drained = node(0, "IDLE", "DRAIN", reason=OURS)
    assert decided(pod(annotations={left: "true"}), drained) is None
    assert isinstance(decided(pod(), drained), UndrainNode)


@pytest.mark.parametrize("reason", ["Manual maintenance", "", "slurm-operator", "Not responding"])
def test_a_drain_of_somebody_else_stands(reason: str) -> None:
    """S017, feature row 35."""
    drained = node(0, "IDLE", "DRAIN", reason=reason)
    assert decided(pod(), drained) is None
    assert decided(CORDONED, drained) is None
    assert decided(pod(), drained, DrainCause.SCALE_IN) is None


def test_a_node_that_is_being_undrained_is_left_alone() -> None:
    assert decided(pod(), node(0, "IDLE", "DRAIN", "UNDRAIN", reason=OURS)) is None


def test_scale_in_drains_with_a_reason_that_names_the_pod() -> None:
    assert reason_of(decided(pod(), node(0, "ALLOCATED"), DrainCause.SCALE_IN)) == SCALE_IN


def test_scale_in_rewords_only_our_own_drain() -> None:
    step = decided(pod(), node(0, "IDLE", "DRAIN", reason=TERMINATING), DrainCause.SCALE_IN)
    assert reason_of(step) == SCALE_IN


def test_a_user_cordon_outlives_scale_in() -> None:
    """Its words stay in Slurm, so that the annotation is still known to be the user's."""
    drained = node(0, "IDLE", "DRAIN", reason=OURS)
    wish = drain.drain_request(MARKS, worker(CORDONED, drained), DrainCause.SCALE_IN)
    assert drain.next_node_update(MARKS, worker(CORDONED, drained), drained, wish, NOW) is None
    assert drain.cordon_changes(MARKS, worker(CORDONED, drained), wish, NOW) == {}
    kept = drain.drain_request(MARKS, worker(CORDONED, drained))
    assert kept is not None
    assert drain.cordon_changes(MARKS, worker(CORDONED, drained), kept, NOW) == {}


def test_a_condemned_pod_is_marked_as_ours_and_unmarked_when_kept() -> None:
    found = pod()
    wish = drain.drain_request(MARKS, worker(found, node(0)), DrainCause.SCALE_IN)
    assert drain.cordon_changes(MARKS, worker(found, node(0)), wish, NOW) == MARKED
    marked = pod(annotations=MARKED)
    drained = node(0, "IDLE", "DRAIN", reason=SCALE_IN)
    assert drain.cordon_changes(MARKS, worker(marked, drained), wish, NOW + 60) == {}
    assert drain.cordon_changes(MARKS, worker(marked, drained), None, NOW) == RELEASED
    released = pod(annotations={CORDONED_FOR: "nobody"})
    assert drain.cordon_changes(MARKS, worker(released, drained), None, NOW) == {}
    assert drain.cordon_changes(MARKS, worker(released, drained), wish, NOW) == MARKED


def test_a_cordon_after_ours_was_taken_back_is_a_users() -> None:
    found = pod(annotations={POD_CORDON: "true", CORDONED_FOR: "nobody"})
    drained = node(0, "IDLE", "DRAIN", reason=SCALE_IN)
    wish = drain.drain_request(MARKS, worker(found, drained))
    assert drain.cordon_changes(MARKS, worker(found, drained), wish, NOW) == {}
    assert (
        reason_of(drain.next_node_update(MARKS, worker(found, drained), drained, wish, NOW)) == OURS
    )


def test_a_second_spelling_set_by_a_user_survives_our_mark() -> None:
    both = pod(annotations={**MARKED, POD_CORDON_SHORT: "true"})
    drained = node(0, "IDLE", "DRAIN", reason=SCALE_IN)
    wish = drain.drain_request(MARKS, worker(both, drained))
    assert drain.cordon_changes(MARKS, worker(both, drained), wish, NOW) == RELEASED
    assert (
        reason_of(drain.next_node_update(MARKS, worker(both, drained), drained, wish, NOW)) == OURS
    )


@pytest.mark.parametrize(
    "reason",
    [
        SCALE_IN,
        "slurm-operator: Node (machine-0) was cordoned, Pod (slurm/compute-0) must be cordoned",
    ],
)
def test_a_cordon_that_slurm_operator_left_is_not_a_users(reason: str) -> None:
    drained = node(0, "IDLE", "DRAIN", reason=reason)
    assert drain.drain_request(MARKS, worker(CORDONED, drained)) is None
    assert drain.cordon_changes(MARKS, worker(CORDONED, drained), None, NOW) == RELEASED


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (
            machine(0, cordoned=True),
            "Node (machine-0) was cordoned, Pod (slurm/compute-0) must be cordoned",
        ),
        (machine(0, cordoned=True, reason=" broken\tfan\x07 \n"), "broken fan"),
        (machine(0, cordoned=True, reason="x" * 300), "x" * 256),
    ],
)
def test_a_cordoned_kubernetes_node_drains_with_its_reason(host: Machine, reason: str) -> None:
    """Feature rows 33 and 34."""
    assert reason_of(decided(pod(), node(0), host=host)) == f"slurm-operator: {reason}"


def test_conditions_of_a_cordoned_kubernetes_node_are_the_reason() -> None:
    """Feature row 34."""
    conditions = (
        PodCondition(type="GpuBroken", status="True", reason="Xid79", message="fell off the bus"),
        PodCondition(type="DiskPressure", status="True", reason="Full", message="no room"),
        PodCondition(type="FanBroken", status="False", reason="Fan", message="fine"),
    )
    host = machine(0, cordoned=True)
    sick = Machine(metadata=host.metadata, spec=host.spec, status=NodeStatus(conditions=conditions))
    text = drain_reason.node_cordon(MARKS, pod(), sick, ("GpuBroken", "FanBroken"))
    assert text == "slurm-operator: (Xid79: fell off the bus)"


def test_a_cordoned_kubernetes_node_undrains_when_it_is_back() -> None:
    """Feature row 33."""
    marked = pod(annotations={POD_CORDON: "true", CORDONED_FOR: "node-cordon since x"})
    drained = node(0, "IDLE", "DRAIN", reason="slurm-operator: broken fan")
    assert decided(marked, drained, host=machine(0, cordoned=True)) is None
    assert isinstance(decided(marked, drained, host=machine(0)), UndrainNode)


def test_a_node_that_somebody_set_down_is_left_to_them() -> None:
    down = node(0, "DOWN", reason="bad memory")
    assert decided(pod(), down) is None
    assert decided(CORDONED, down) is None
    step = decided(pod(), down, DrainCause.SCALE_IN)
    assert isinstance(step, DrainNode)
    assert drain.reason_to_send(MARKS, down, step) == "bad memory"


def test_slurmctlds_own_words_give_way_to_a_scale_in() -> None:
    down = node(0, "DOWN", "NOT_RESPONDING", reason="Not responding")
    step = decided(pod(), down, DrainCause.SCALE_IN)
    assert isinstance(step, DrainNode)
    assert drain.reason_to_send(MARKS, down, step) == SCALE_IN


def test_words_that_came_after_the_decision_are_not_replaced() -> None:
    step = decided(pod(), node(0), DrainCause.SCALE_IN)
    assert isinstance(step, DrainNode)
    now = node(0, "IDLE", "DRAIN", reason="Manual maintenance")
    assert drain.reason_to_send(MARKS, now, step) == "Manual maintenance"


class TestComingBack:
    """A pod is there again, and its node is still DOWN."""

    def test_after_a_termination_it_is_resumed(self) -> None:
        """D10."""
        assert isinstance(decided(pod(), node(0, "DOWN", reason=TERMINATING)), ResumeNode)
        drained = node(0, "DOWN", "DRAIN", reason=TERMINATING)
        assert isinstance(decided(pod(), drained), ResumeNode)

    @pytest.mark.parametrize("reason", ["bad disk", ""])
    def test_a_drain_that_the_termination_hid_is_put_back(self, reason: str) -> None:
        """D9, feature row 35."""
        hidden = records.comment_action(
            worker_set(nodeset()), worker(pod(), node(0, "IDLE", "DRAIN", reason=reason))
        )
        assert hidden is not None
        after = node(0, "DOWN", "DRAIN", reason=TERMINATING, comment=hidden.comment)
        step = decided(pod(), after)
        assert isinstance(step, DrainNode)
        assert drain.reason_to_send(MARKS, after, step) == reason

    @pytest.mark.parametrize(
        "down",
        [
            node(0, "DOWN", reason="bad memory"),
            node(0, "DOWN", reason=""),
            node(0, "DOWN", "DRAIN", reason="Manual maintenance"),
            node(0, "DOWN", "NOT_RESPONDING", reason=TERMINATING),
            node(0, "DOWN", "FAIL", reason=TERMINATING),
            node(0, "DOWN", reason=TERMINATING, slurmd_start_time=int(NOW) - 7200),
            node(0, "DOWN", "NOT_RESPONDING", reason="Not responding"),
            node(0, "DOWN", "DRAIN", reason="Not responding"),
            node(0, "DOWN", reason="Not responding to my calls"),
        ],
    )
    def test_it_stays_down_for_other_reasons(self, down: Node) -> None:
        assert decided(pod(slurmd=running(NOW - 3600)), down) is None

    @pytest.mark.parametrize(
        "found", [pod(ready=False), pod(phase="Pending", ready=False, slurmd=waiting())]
    )
    def test_it_waits_for_the_pod(self, found: Pod) -> None:
        assert decided(found, node(0, "DOWN", reason=TERMINATING)) is None

    def test_one_that_was_cut_off_is_resumed_when_it_answers_again(self) -> None:
        """S060: slurmctld leaves it DOWN by default."""
        assert isinstance(decided(pod(), node(0, "DOWN", reason="Not responding")), ResumeNode)

    def test_a_pod_that_moved_brings_a_silent_node_back(self) -> None:
        """D10."""
        comment = NodeComment("slurm", "compute-0", "machine-7", "compute", "nodeset-uid")
        moved = node(0, "DOWN", reason="Not responding", comment=comment.text(MARKS.comment))
        assert isinstance(decided(pod(), moved), ResumeNode)

    def test_a_pod_that_moved_does_not_clear_a_drain(self) -> None:
        """D9, feature row 35."""
        comment = NodeComment("slurm", "compute-0", "machine-7", "compute", "nodeset-uid")
        moved = node(
            0, "DOWN", "DRAIN", reason="Not responding", comment=comment.text(MARKS.comment)
        )
        assert decided(pod(), moved) is None

    def test_a_users_cordon_is_kept(self) -> None:
        step = decided(CORDONED, node(0, "DOWN", "DRAIN", reason=TERMINATING))
        assert reason_of(step) == OURS

    def test_somebodys_drain_gets_its_words_back(self) -> None:
        record = NodeComment(
            "slurm", "compute-0", "machine-0", "compute", "nodeset-uid", "Maintenance"
        )
        lost = node(0, "DOWN", "DRAIN", reason=TERMINATING, comment=record.text(MARKS.comment))
        step = decided(pod(), lost)
        assert isinstance(step, DrainNode)
        assert drain.reason_to_send(MARKS, lost, step) == "Maintenance"


def test_a_node_is_not_undrained_before_the_new_pods_slurmd_is_there() -> None:
    """The hook leaves a drain as it is; on a node without slurmd a job would be lost."""
    left = node(0, "IDLE", "DRAIN", reason=SCALE_IN, slurmd_start_time=int(NOW) - 9000)
    starting = pod(phase="Pending", ready=False, slurmd=waiting())
    assert decided(starting, left) is None
    assert decided(pod(slurmd=running(NOW - 5)), left) is None
    back = replace(left, slurmd_start_time=int(NOW) - 4)
    assert isinstance(decided(pod(slurmd=running(NOW - 5)), back), UndrainNode)


class TestRecheck:
    """An action decided on an older answer."""

    @pytest.mark.parametrize(
        ("now", "right"),
        [
            (node(0, "IDLE", "DRAIN", reason=OURS), True),
            (node(0, "IDLE", "DRAIN", reason="Manual maintenance"), False),
            (node(0, "IDLE"), False),
            (node(0, "DOWN", "DRAIN", reason=TERMINATING), False),
            (node(1), False),
        ],
    )
    def test_only_our_drain_is_undone(self, now: Node, right: bool) -> None:
        slurm = SlurmSnapshot.of(known_nodes(now), Known((), 1.0))
        step = decided(pod(), node(0, "IDLE", "DRAIN", reason=OURS))
        assert isinstance(step, UndrainNode)
        assert is_still_valid(MARKS, step, slurm) is right

    def test_a_resume_does_not_clear_a_drain_that_came_in_between(self) -> None:
        step = decided(pod(), node(0, "DOWN", reason=TERMINATING))
        assert isinstance(step, ResumeNode)
        drained = node(0, "DOWN", "DRAIN", reason="Manual maintenance")
        assert not is_still_valid(
            MARKS, step, SlurmSnapshot.of(known_nodes(drained), Known((), 1.0))
        )

    @pytest.mark.parametrize("reason", ["", "Manual maintenance"])
    def test_a_drain_that_came_in_between_is_not_taken_over(self, reason: str) -> None:
        step = decided(CORDONED, node(0))
        assert isinstance(step, DrainNode)
        drained = node(0, "IDLE", "DRAIN", reason=reason)
        assert not is_still_valid(
            MARKS, step, SlurmSnapshot.of(known_nodes(drained), Known((), 1.0))
        )

    def test_a_drain_of_ours_gets_another_reason(self) -> None:
        step = decided(pod(), node(0, "IDLE", "DRAIN", reason=OURS), DrainCause.SCALE_IN)
        assert isinstance(step, DrainNode)
        now = known_nodes(node(0, "IDLE", "DRAIN", reason=OURS))
        assert is_still_valid(MARKS, step, SlurmSnapshot.of(now, Known((), 1.0)))

    def test_a_silent_slurm_is_told_nothing(self) -> None:
        step = decided(CORDONED, node(0))
        assert step is not None
        assert not is_still_valid(MARKS, step, SlurmSnapshot.of(UNKNOWN, UNKNOWN))
