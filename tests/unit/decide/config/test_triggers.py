"""What annotations ask for is done once for each value, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.cluster.trigger import Trigger
from penstock.api.slinky.labels import RESTART_TRIGGER
from penstock.decide.config.acknowledgement import Acks
from penstock.decide.config.triggers import (
    DONE,
    REFUSED,
    WAITING,
    Daemon,
    TriggerView,
    began_with,
    mark_of,
    pending,
    triggered,
)
from penstock.translate.slinky.cluster import MARKS

VIEW = TriggerView(
    marks=MARKS,
    annotations={},
    done=(),
    pods=(Daemon("a", True, {}),),
    acks=Acks(),
    speaks=True,
    persistent=True,
    now="2026-01-01T00:00:00Z",
)


def only(view: TriggerView) -> Trigger:
    (found,) = triggered(view).status
    return found


def test_nothing_is_done_unless_it_is_asked_for():
    """S065."""
    assert triggered(VIEW).status == ()
    assert not pending(MARKS, {}, ())
    assert not pending(MARKS, {RECONFIGURE: ""}, ())
    assert pending(MARKS, {RECONFIGURE: "x"}, ())


def test_a_reconfigure_is_asked_of_the_first_pod_and_its_answer_is_told():
    view = replace(VIEW, annotations={RECONFIGURE: "at noon\n"})
    found = triggered(view)
    assert (found.mark, found.waits, found.delete) == (mark_of("at noon\n"), True, frozenset())
    shown = replace(view, pods=(Daemon("a", True, {RECONFIGURE: found.mark}),), done=found.status)
    assert only(shown).result == WAITING
    assert only(replace(shown, acks=None)).result == WAITING
    for words, result in ((None, DONE), ("error: no", REFUSED)):
        told = replace(shown, acks=Acks(reconfigured={found.mark: words}))
        assert only(told).result == result
        assert words is None or only(told).message == words
        assert not pending(MARKS, view.annotations, triggered(told).status)
        again = replace(told, done=triggered(told).status)
        assert triggered(again).status == again.done
        assert not triggered(again).mark


def test_an_answer_to_another_value_is_none():
    view = replace(VIEW, annotations={RECONFIGURE: "b"}, acks=Acks(reconfigured={"a": None}))
    assert only(view).result == WAITING
    assert pending(MARKS, {RECONFIGURE: "b"}, [Trigger(name="reconfigure", value="a", result=DONE)])


def test_a_restart_is_told_with_its_pods_before_any_of_them_is_deleted():
    view = replace(VIEW, annotations={RESTART: "slurmctld@1"})
    first = triggered(view)
    assert first.delete == frozenset()
    assert first.status[0].pods == ("a",)
    second = triggered(replace(view, done=first.status))
    assert second.delete == {"a"}
    for pods in ((), (Daemon("b", False, {}),)):
        assert triggered(replace(view, done=second.status, pods=pods)).waits
    ended = triggered(replace(view, done=second.status, pods=(Daemon("b", True, {}),)))
    assert (ended.status[0].result, ended.delete) == (DONE, frozenset())
    after = replace(view, done=ended.status, pods=(Daemon("b", True, {}),))
    assert triggered(after).delete == frozenset()
    assert triggered(replace(after, annotations={RESTART: "slurmctld@2"})).waits


def test_any_new_value_of_the_older_annotation_restarts_once():
    """S065."""
    first = triggered(replace(VIEW, annotations={RESTART_TRIGGER: "1763800000"}))
    assert first.status[0].pods == ("a",)
    second = triggered(
        replace(VIEW, annotations={RESTART_TRIGGER: "1763800000"}, done=first.status)
    )
    assert second.delete == {"a"}


def test_a_value_that_a_slurmctld_began_with_restarts_nothing():
    annotations = {RESTART_TRIGGER: "1763800000", RESTART: "slurmctld"}
    noted = began_with(MARKS, annotations, (), VIEW.now)
    assert [(one.name, one.result) for one in noted] == [("restart-trigger", DONE)]
    assert began_with(MARKS, annotations, noted, VIEW.now) == noted
    assert not pending(MARKS, {RESTART_TRIGGER: "1763800000"}, noted)
    assert pending(MARKS, {RESTART_TRIGGER: "1763800001"}, noted)
    assert pending(MARKS, annotations, noted)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (replace(VIEW, annotations={RESTART: "slurmd"}), "only slurmctld"),
        (replace(VIEW, annotations={RESTART: "slurmctld"}, persistent=False), "jobs would be lost"),
        (replace(VIEW, annotations={RECONFIGURE: "x"}, speaks=False), "not Penstock's own"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(view: TriggerView, words: str):
    found = only(view)
    assert found.result == REFUSED
    assert words in found.message
    assert triggered(view).delete == frozenset()
