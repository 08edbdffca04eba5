"""Drains of checks that run as Slurm jobs, over all orders of results and of users."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.check.reaction import (
    CheckPolicy,
    Marks,
    NodeResult,
    check_of,
    is_of_check,
    next_change,
    next_comment,
    reason,
)
from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import Comment, Drain, NodeState, Undrain

GPU = CheckPolicy("gpu-checks", "[node_problem]")
NET = CheckPolicy("net-checks", "[hardware_problem]")
ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
FREE = NodeState(is_drained=False)


def result(policy: CheckPolicy, state: str, job: int = 7) -> NodeResult:
    return NodeResult(policy, Result(job, state, ("worker-0",), ended=job))


def drained(words: str) -> NodeState:
    return NodeState(is_drained=True, reason=words)


def test_a_failed_job_drains_its_node_with_the_published_reason() -> None:
    """S113."""
    found = next_change(FREE, result(GPU, "FAILED"))
    assert found == Drain("[node_problem] gpu-checks: job 7 [slurm_job]")


def test_a_completed_job_undrains_what_its_own_check_drained() -> None:
    mark = "[node_problem] gpu-checks: job 7 [slurm_job]"
    assert next_change(drained(mark), result(GPU, "COMPLETED", 8)) == Undrain(mark)


def test_a_changed_prefix_leaves_the_owner_mark_readable() -> None:
    mark = "old words gpu-checks: job 7 [slurm_job]"
    assert check_of(mark) == "gpu-checks"
    assert next_change(drained(mark), result(GPU, "COMPLETED", 8)) == Undrain(mark)


def test_a_check_whose_name_ends_like_another_one_is_another_one() -> None:
    mark = "[node_problem] more-gpu-checks: job 7 [slurm_job]"
    assert next_change(drained(mark), result(GPU, "COMPLETED", 8)) is None


def test_a_quick_checks_drain_is_not_a_slurm_jobs() -> None:
    mark = "[node_problem] gpu-checks: 7 of 8 devices [hc_program]"
    assert next_change(drained(mark), result(GPU, "COMPLETED", 8)) is None


def test_another_checks_failure_takes_the_place_of_a_repaired_one() -> None:
    mark = "[node_problem] gpu-checks: job 7 [slurm_job]"
    other = result(NET, "FAILED", 3)
    found = next_change(drained(mark), result(GPU, "COMPLETED", 8), [other])
    assert found == Drain("[hardware_problem] net-checks: job 3 [slurm_job]")


def test_a_check_may_drain_after_success() -> None:
    policy = CheckPolicy("burn-in", on_success="[user_problem]")
    found = next_change(FREE, result(policy, "COMPLETED"))
    assert found == Drain("[user_problem] burn-in: job 7 [slurm_job]")
    assert next_change(FREE, result(policy, "FAILED")) is None


IB = CheckPolicy("ib-checks", failure=Marks(comment="[node_problem]"))
MEM = CheckPolicy("mem-checks", failure=Marks(comment="[hardware_problem]"))
IB_MARK = "[node_problem] ib-checks: job 7 [slurm_job]"


def commented(words: str) -> NodeState:
    return NodeState(is_drained=False, comment=words)


def test_a_failed_job_comments_its_node_and_drains_nothing() -> None:
    """S113."""
    failed = result(IB, "FAILED")
    assert next_comment(FREE, failed) == Comment(IB_MARK)
    assert next_change(FREE, failed) is None
    assert next_comment(FREE, result(GPU, "FAILED")) is None
    assert next_comment(FREE, result(IB, "TIMEOUT")) is None


def test_a_completed_job_removes_the_comment_of_its_own_check_alone() -> None:
    passed = result(IB, "COMPLETED", 8)
    assert next_comment(commented(IB_MARK), passed) == Comment("")
    other = "[hardware_problem] mem-checks: job 3 [slurm_job]"
    failed = result(MEM, "FAILED", 3)
    assert next_comment(commented(IB_MARK), passed, [failed]) == Comment(other)
    for words in (other, "bad cable"):
        assert next_comment(commented(words), passed) is None
        assert next_comment(commented(words), result(IB, "FAILED", 8)) is None


def test_a_reservation_of_more_nodes_or_other_flags_is_no_checks() -> None:
    flags = ("IGNORE_JOBS", "MAINT", "SPEC_NODES")
    assert is_of_check(["worker-0"], flags, "worker-0")
    assert not is_of_check(["worker-0", "worker-1"], flags, "worker-0")
    assert not is_of_check(["worker-0"], ("SPEC_NODES",), "worker-0")


@given(st.text(max_size=60).filter(lambda text: not check_of(text)), st.sampled_from(ENDS))
def test_a_drain_of_anybody_else_is_neither_reworded_nor_removed(words: str, end: str) -> None:
    own, other = result(GPU, end), result(NET, "FAILED", 3)
    assert next_change(drained(words), own, [other]) is None


@given(st.sampled_from(("CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "UNKNOWN")))
def test_a_job_that_did_not_run_as_it_should_changes_nothing(end: str) -> None:
    mark = reason(GPU, result(GPU, "FAILED").result)
    for node in (FREE, drained(mark), drained("a user's")):
        assert next_change(node, result(GPU, end), [result(NET, "FAILED", 3)]) is None


@dataclass
class Node:
    """A node with two checks, and what is true of each fault."""

    state: NodeState = FREE
    last: dict[str, NodeResult] = field(default_factory=dict[str, NodeResult])

    def ends(self, policy: CheckPolicy, end: str, job: int) -> None:
        own = result(policy, end, job)
        others = [one for name, one in self.last.items() if name != policy.name]
        change = next_change(self.state, own, others)
        if end in ("COMPLETED", "FAILED"):
            self.last[policy.name] = own
        if isinstance(change, Drain):
            self.state = drained(change.reason)
        elif isinstance(change, Undrain):
            assert change.reason == self.state.reason
            self.state = FREE


@dataclass(frozen=True)
class End:
    """A job of a check ends."""

    policy: CheckPolicy
    state: str


BY_USERS = st.sampled_from(("drain", "resume"))
STEPS = st.lists(
    st.one_of(st.builds(End, st.sampled_from((GPU, NET)), st.sampled_from(ENDS)), BY_USERS),
    max_size=25,
)


@given(STEPS)
def test_two_checks_never_undo_each_other_and_a_users_drain_stands(steps: list[End | str]) -> None:
    node, is_users = Node(), False
    for job, step in enumerate(steps, 1):
        if step == "drain":
            node.state, is_users = drained("bad cable"), True
        elif step == "resume":
            node.state, is_users = FREE, False
        elif isinstance(step, End):
            before = node.state
            node.ends(step.policy, step.state, job)
            if is_users:
                assert node.state == before
                continue
            if step.state == "FAILED":
                assert node.state.is_drained
            if before.is_drained and not node.state.is_drained:
                assert check_of(before.reason) == step.policy.name
                assert all(one.result.state != "FAILED" for one in node.last.values())


@given(STEPS)
def test_a_repeated_reaction_changes_nothing_more(steps: list[End | str]) -> None:
    """A process that ended before it had recorded a result reacts to it once more."""
    node = Node()
    for job, step in enumerate(steps, 1):
        if isinstance(step, End):
            node.ends(step.policy, step.state, job)
            once = node.state
            node.ends(step.policy, step.state, job)
            assert node.state == once
