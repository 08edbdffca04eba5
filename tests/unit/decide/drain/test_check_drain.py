"""Drains by checks: whose they are, and what removes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.drain.check_drain import (
    CONTEXTS,
    HEALTH,
    PREFIXES,
    REPAIRING,
    CheckResult,
    Comment,
    Drain,
    NodeState,
    OnFail,
    OnOk,
    Outcome,
    Undrain,
    is_reason_of,
    is_reason_of_check,
    next_changes,
    reason_text,
)

BASES = [f"{prefix} {name}" for prefix in PREFIXES for name in ("disk", "disk_full", "gpus")]
bases = st.sampled_from(BASES)
details = st.text(max_size=40)
contexts = st.sampled_from(CONTEXTS)
outcomes = st.sampled_from(Outcome)
results = st.lists(
    st.builds(
        CheckResult,
        base=bases,
        outcome=outcomes,
        on_fail=st.sampled_from(OnFail),
        on_ok=st.sampled_from(OnOk),
        details=details,
    ),
    max_size=5,
)
marks = st.builds(reason_text, bases, details, contexts)
foreign = st.one_of(
    st.sampled_from(["", "Prolog error", "Not responding", "bad cable", *BASES]),
    st.text(max_size=30),
    bases.map(lambda base: f"{base}: by hand"),
    bases.map(lambda base: f"{base} [console]"),
).filter(lambda text: not is_reason_of_check(text))
FULL = CheckResult("[user_problem] disk", Outcome.FAILED, OnFail.DRAIN, OnOk.UNDRAIN, "91 %")
FREE = CheckResult("[user_problem] disk", Outcome.PASSED, OnFail.DRAIN, OnOk.UNDRAIN)
BUSY = CheckResult("[user_problem] gpus", Outcome.FAILED, OnFail.DRAIN, OnOk.UNDRAIN, "pid 7")
REASON = "[user_problem] disk: 91 % [prolog]"


def test_a_failure_drains_with_prefix_check_and_value() -> None:
    assert next_changes(NodeState(is_drained=False), [FULL], "prolog") == (Drain(REASON),)


def test_a_repaired_check_removes_its_own_drain() -> None:
    assert next_changes(NodeState(True, REASON), [FREE], HEALTH) == (Undrain(REASON),)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SKIPPED])
def test_without_a_pass_the_drain_stays(outcome: Outcome) -> None:
    unknown = CheckResult(FREE.base, outcome, OnFail.DRAIN, OnOk.UNDRAIN)
    assert next_changes(NodeState(True, REASON), [unknown], HEALTH) == ()
    assert next_changes(NodeState(True, REASON), [], HEALTH) == ()


def test_two_entries_of_one_check_must_both_have_passed() -> None:
    """A check has one entry that drains and one that undrains, with the same base."""
    assert next_changes(NodeState(True, REASON), [FREE, FULL], HEALTH) == ()


def test_a_second_check_neither_undoes_the_first_drain_nor_loses_its_own() -> None:
    """The reason changes hands, and the node is drained all the time."""
    node = NodeState(True, REASON)
    assert next_changes(node, [BUSY], HEALTH) == ()
    taken = Drain("[user_problem] gpus: pid 7 [hc_program]")
    assert next_changes(node, [FREE, BUSY], HEALTH) == (taken,)
    assert next_changes(NodeState(True, taken.reason), [FREE], HEALTH) == ()


def test_a_check_whose_name_begins_like_another_one_is_not_it() -> None:
    longer = "[user_problem] disk_full: 1 [prolog]"
    assert not is_reason_of("[user_problem] disk", longer)
    assert next_changes(NodeState(True, longer), [FREE], HEALTH) == ()


def test_a_comment_that_is_not_the_checks_stays() -> None:
    failed = CheckResult("[node_problem] fan", Outcome.FAILED, OnFail.COMMENT, details="slow")
    passed = CheckResult("[node_problem] fan", Outcome.PASSED, on_ok=OnOk.UNCOMMENT)
    own = "[node_problem] fan: slow [hc_program]"
    assert next_changes(NodeState(False), [failed], HEALTH) == (Comment(own),)
    assert next_changes(NodeState(False, comment=own), [passed], HEALTH) == (Comment(""),)
    for result in (failed, passed):
        assert next_changes(NodeState(False, comment='{"pod":"a"}'), [result], HEALTH) == ()


@given(foreign, results, contexts)
def test_somebody_elses_drain_is_never_touched(reason: str, found: list[CheckResult], on: str):
    changes = next_changes(NodeState(True, reason), found, on)
    assert not any(isinstance(one, Drain | Undrain) for one in changes)


@given(marks, results, contexts)
def test_only_the_check_of_the_mark_that_passed_undrains(
    reason: str, found: list[CheckResult], on: str
):
    changes = next_changes(NodeState(True, reason), found, on)
    if any(isinstance(one, Undrain) for one in changes):
        own = [one for one in found if is_reason_of(one.base, reason)]
        assert on in REPAIRING
        assert any(one.outcome is Outcome.PASSED for one in own)
        drains = [one for one in found if one.on_fail is OnFail.DRAIN]
        assert not any(one.outcome is Outcome.FAILED for one in (*own, *drains))


@given(st.booleans(), st.one_of(marks, foreign), results, contexts)
def test_a_drain_names_the_check_that_failed(
    drained: bool, reason: str, found: list[CheckResult], on: str
):
    for one in next_changes(NodeState(drained, reason), found, on):
        if isinstance(one, Drain):
            failed = [each for each in found if each.outcome is Outcome.FAILED]
            assert any(is_reason_of(each.base, one.reason) for each in failed)
            assert one.reason.startswith(PREFIXES)


@given(bases, details, contexts)
def test_a_reason_is_one_printable_line_and_carries_the_mark(base: str, words: str, on: str):
    reason = reason_text(base, words, on)
    assert reason.isprintable()
    assert '"' not in reason
    assert is_reason_of(base, reason)
    assert is_reason_of_check(reason)
    assert [other for other in BASES if is_reason_of(other, reason)] == [base]


@given(st.lists(st.tuples(results, contexts), max_size=6))
def test_a_node_is_drained_as_long_as_a_known_failure_is_its_reason(
    runs: list[tuple[list[CheckResult], str]],
):
    """Plays runs on one node: a drain ends only in a run in which its own check passed."""
    node = NodeState(is_drained=False)
    for found, on in runs:
        before = node
        for change in next_changes(node, found, on):
            if isinstance(change, Drain):
                node = NodeState(True, change.reason)
            elif isinstance(change, Undrain):
                node = NodeState(is_drained=False)
        if before.is_drained and node != before:
            passed = [one.base for one in found if one.outcome is Outcome.PASSED]
            assert any(is_reason_of(base, before.reason) for base in passed)
