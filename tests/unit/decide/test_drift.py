"""What was changed in Slurm itself: when it is believed, told, and looked at again."""

from __future__ import annotations

import pytest

from penstock.api.cluster.marks import DRIFT
from penstock.api.kubernetes.conditions import conditions, find
from penstock.decide.drift import AGAIN_S, CONFIRM_S, Watch, choice, findings, is_reported, watch
from penstock.slurm.partition.declaration import Difference

TIME = (Difference("MaxTime", "5", "6"),)
OTHER = (Difference("MaxTime", "7", "6"),)


def test_a_difference_counts_when_it_is_there_in_two_answers() -> None:
    first = watch({}, {"p": TIME}, 10.0)
    assert not first["p"].confirmed
    assert not watch(first, {"p": OTHER}, 10.0 + CONFIRM_S)["p"].confirmed
    assert not watch(first, {"p": TIME}, 10.0)["p"].confirmed
    assert watch(first, {"p": TIME}, 10.0 + CONFIRM_S)["p"].confirmed
    assert watch(first, {}, 11.0) == {}


def test_nothing_is_known_while_a_change_of_ours_is_on_its_way() -> None:
    seen = Watch()
    assert seen.found is None
    assert seen.observe({"p": TIME}, 1.0) == {}
    assert (seen.waits, seen.found) == (True, None)
    assert seen.observe({"p": TIME}, 1.0 + CONFIRM_S) == {"p": TIME}
    assert seen.found == {"p": TIME}
    assert seen.observe({"p": TIME}, 9.0) == {}
    assert seen.observe(None, 10.0) == {}
    assert seen.found is None
    assert seen.observe({}, 11.0) == {}
    assert seen.found == {}


def test_what_did_not_help_is_tried_again_later_and_ever_more_rarely() -> None:
    seen = Watch()
    for as_of in (0.0, CONFIRM_S):
        seen.observe({"p": TIME}, as_of)
    assert seen.due(CONFIRM_S) == ["p"]
    seen.tried("p", 10.0, "not put back: no")
    assert seen.left("p") == "not put back: no"
    assert seen.due(10.0 + AGAIN_S - 1) == []
    assert seen.due(10.0 + AGAIN_S) == ["p"]
    seen.tried("p", 50.0)
    assert seen.due(50.0 + AGAIN_S) == []
    assert seen.due(50.0 + 2 * AGAIN_S) == ["p"]
    # Somebody changes it once more: that is another matter.
    seen.observe({}, 60.0)
    for as_of in (70.0, 70.0 + CONFIRM_S):
        seen.observe({"p": TIME}, as_of)
    assert seen.due(75.0) == ["p"]


def test_a_drift_is_told_and_ready_does_not_depend_on_it() -> None:
    told = conditions(findings(["partition p was changed"], ()))
    ready, drifted = find(told, "Ready"), find(told, "Drifted")
    assert ready is not None
    assert drifted is not None
    assert (ready.status, drifted.status) == ("True", "True")
    assert is_reported("partition p was changed", told)
    assert not is_reported("partition q", told)
    after = find(conditions(findings([], told)), "Drifted")
    assert after is not None
    assert (after.status, after.reason) == ("False", "AsDeclared")
    assert conditions(findings(None, told)) == told
    assert findings([], ()) == findings(None, ()) == findings(None, (), always=True) == []
    assert len(findings([], (), always=True)) == 1


@pytest.mark.parametrize("word", ["Report", "Revert", "Adopt"])
def test_an_annotation_chooses(word: str) -> None:
    assert choice({DRIFT: word}) == (word, [])


@pytest.mark.parametrize("word", ["revert", "", "true"])
def test_a_word_that_is_no_choice_is_told_with_those_that_are(word: str) -> None:
    chosen, (told,) = choice({DRIFT: word})
    assert (chosen, told.ok) == ("Report", False)
    assert repr(word) in told.message
    assert "Report, Revert or Adopt" in told.message


def test_without_an_annotation_drift_is_reported() -> None:
    assert choice({}) == ("Report", [])
