"""What annotations ask for is done once for each value, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.cluster.trigger import Trigger
from penstock.api.slinky.labels import RESTART_TRIGGER
from penstock.decide.config.reconfigure_log import Acknowledgements
from penstock.decide.config.triggers import (
    DONE,
    REJECTED,
    WAITING,
    Daemon,
    TriggerView,
    initial_triggers,
    is_pending,
    mark_of,
    next_trigger_step,
)
from penstock.translate.slinky.cluster import MARKS

VIEW = TriggerView(
    marks=MARKS,
    annotations={},
    done=(),
    pods=(Daemon("a", True, {}),),
    acks=Acknowledgements(),
    has_own_sidecar=True,
    is_persistent=True,
    now="2026-01-01T00:00:00Z",
)


def only(view: TriggerView) -> Trigger:
    (found,) = next_trigger_step(view).status
    return found


def test_nothing_is_done_unless_it_is_asked_for():
    """S065."""
    assert next_trigger_step(VIEW).status == ()
    assert not is_pending(MARKS, {}, ())
    assert not is_pending(MARKS, {RECONFIGURE: ""}, ())
    assert is_pending(MARKS, {RECONFIGURE: "x"}, ())


def test_a_reconfigure_is_asked_of_the_first_pod_and_its_answer_is_told():
    view = replace(VIEW, annotations={RECONFIGURE: "at noon\n"})
    found = next_trigger_step(view)
    assert (found.mark, found.is_waiting, found.delete) == (mark_of("at noon\n"), True, frozenset())
    shown = replace(view, pods=(Daemon("a", True, {RECONFIGURE: found.mark}),), done=found.status)
    assert only(shown).result == WAITING
    assert only(replace(shown, acks=None)).result == WAITING
    for words, result in ((None, DONE), ("error: no", REJECTED)):
        told = replace(shown, acks=Acknowledgements(reconfigured={found.mark: words}))
        assert only(told).result == result
        assert words is None or only(told).message == words
        assert not is_pending(MARKS, view.annotations, next_trigger_step(told).status)
        again = replace(told, done=next_trigger_step(told).status)
        assert next_trigger_step(again).status == again.done
        assert not next_trigger_step(again).mark


def test_an_answer_to_another_value_is_none():
    view = replace(
        VIEW, annotations={RECONFIGURE: "b"}, acks=Acknowledgements(reconfigured={"a": None})
    )
    assert only(view).result == WAITING
    assert is_pending(
        MARKS, {RECONFIGURE: "b"}, [Trigger(name="reconfigure", value="a", result=DONE)]
    )


def test_a_restart_is_told_with_its_pods_before_any_of_them_is_deleted():
    view = replace(VIEW, annotations={RESTART: "slurmctld@1"})
    first = next_trigger_step(view)
    assert first.delete == frozenset()
    assert first.status[0].pods == ("a",)
    second = next_trigger_step(replace(view, done=first.status))
    assert second.delete == {"a"}
    for pods in ((), (Daemon("b", False, {}),)):
        assert next_trigger_step(replace(view, done=second.status, pods=pods)).is_waiting
    ended = next_trigger_step(replace(view, done=second.status, pods=(Daemon("b", True, {}),)))
    assert (ended.status[0].result, ended.delete) == (DONE, frozenset())
    after = replace(view, done=ended.status, pods=(Daemon("b", True, {}),))
    assert next_trigger_step(after).delete == frozenset()
    assert next_trigger_step(replace(after, annotations={RESTART: "slurmctld@2"})).is_waiting


def test_any_new_value_of_the_older_annotation_restarts_once():
    """S065."""
    first = next_trigger_step(replace(VIEW, annotations={RESTART_TRIGGER: "1763800000"}))
    assert first.status[0].pods == ("a",)
    second = next_trigger_step(
        replace(VIEW, annotations={RESTART_TRIGGER: "1763800000"}, done=first.status)
    )
    assert second.delete == {"a"}


def test_a_value_that_a_slurmctld_began_with_restarts_nothing():
    annotations = {RESTART_TRIGGER: "1763800000", RESTART: "slurmctld"}
    noted = initial_triggers(MARKS, annotations, (), VIEW.now)
    assert [(one.name, one.result) for one in noted] == [("restart-trigger", DONE)]
    assert initial_triggers(MARKS, annotations, noted, VIEW.now) == noted
    assert not is_pending(MARKS, {RESTART_TRIGGER: "1763800000"}, noted)
    assert is_pending(MARKS, {RESTART_TRIGGER: "1763800001"}, noted)
    assert is_pending(MARKS, annotations, noted)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (replace(VIEW, annotations={RESTART: "slurmd"}), "only slurmctld"),
        (
            replace(VIEW, annotations={RESTART: "slurmctld"}, is_persistent=False),
            "jobs would be lost",
        ),
        (
            replace(VIEW, annotations={RECONFIGURE: "x"}, has_own_sidecar=False),
            "not Penstock's own",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(view: TriggerView, words: str):
    found = only(view)
    assert found.result == REJECTED
    assert words in found.message
    assert next_trigger_step(view).delete == frozenset()


@pytest.mark.parametrize(
    ("key", "value"),
    [(RECONFIGURE, "1"), (RESTART, "slurmctld"), (RESTART_TRIGGER, "1763800000")],
)
def test_a_trigger_waits_for_the_files_with_slurmctlds_partitions_and_is_done_then(
    key: str, value: str
):
    view = replace(VIEW, annotations={key: value}, is_delayed=True)
    found = next_trigger_step(view)
    assert (found.mark, found.delete, found.status[0].pods) == ("", frozenset(), ())
    assert found.is_delayed
    assert found.is_waiting
    assert "waits for the changed configuration" in found.status[0].message
    again = next_trigger_step(replace(view, done=found.status, is_delayed=False))
    assert not again.is_delayed
    assert again.status[0].message == ""
    assert again.mark or again.status[0].pods == ("a",)


def test_a_restart_that_was_recorded_waits_as_well_and_keeps_its_pods():
    view = replace(VIEW, annotations={RESTART: "slurmctld"})
    recorded = replace(view, done=next_trigger_step(view).status, is_delayed=True)
    found = next_trigger_step(recorded)
    assert (found.status[0].pods, found.delete) == (("a",), frozenset())
    after = next_trigger_step(replace(recorded, done=found.status, is_delayed=False))
    assert after.delete == {"a"}


def test_a_reconfigure_that_is_in_progress_ends_with_its_answer():
    shown = (Daemon("a", True, {RECONFIGURE: mark_of("1")}),)
    acks = Acknowledgements(reconfigured={mark_of("1"): None})
    view = replace(VIEW, annotations={RECONFIGURE: "1"}, pods=shown, acks=acks, is_delayed=True)
    assert only(view).result == DONE
