"""Conditions follow the findings and stay as they are while nothing changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.api.kubernetes.conditions import Finding, conditions, find, set_conditions
from penstock.api.kubernetes.meta import Condition
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.catalog.reasons.pods import PodReason
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.catalog.reasons.workers import WorkerReason

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
STAMP = "2026-11-21T12:00:00Z"

reasons = st.sampled_from([WorkerReason.CREATING_PODS, SlurmNodeReason.UNKNOWN, PodReason.FAILING])
messages = st.text(max_size=20)
findings = st.builds(
    Finding,
    ok=st.sampled_from([True, False, None]),
    reason=reasons,
    message=messages,
)
findings = st.lists(findings, max_size=4)


def status(of: tuple[Condition, ...], type_: str) -> str | None:
    found = find(of, type_)
    return found.status if found else None


def test_without_findings_an_object_is_ready():
    assert conditions([]) == (Condition(type="Ready", status="True", reason="Settled"),)


def test_what_is_under_way_is_reconciling():
    found = conditions(
        [Finding(True, PodReason.READY), Finding(None, WorkerReason.CREATING_PODS, "2 of 3 pods")]
    )
    assert status(found, "Ready") == "False"
    assert status(found, "Reconciling") == "True"
    assert status(found, "Stalled") is None
    ready = find(found, "Ready")
    assert ready is not None
    assert (ready.reason, ready.message) == ("CreatingPods", "2 of 3 pods")


def test_what_needs_somebody_is_stalled_and_comes_first():
    found = conditions(
        [
            Finding(None, WorkerReason.CREATING_PODS, "later"),
            Finding(False, PodReason.FAILING, "first"),
        ]
    )
    assert status(found, "Stalled") == "True"
    assert status(found, "Reconciling") is None
    ready = find(found, "Ready")
    assert ready is not None
    words = "first; later. See https://penstock.dev/r/PodsFailing"
    assert (ready.reason, ready.message) == ("PodsFailing", words)


def test_a_finding_can_be_a_condition_of_its_own():
    found = conditions(
        [Finding(None, ConfigReason.TRYING, "no answer", type=ConditionType.CONFIG_APPLIED)]
    )
    assert status(found, "ConfigApplied") == "Unknown"


def test_a_condition_of_somebody_else_stays():
    theirs = Condition(
        type="ReservationCreated",
        status="True",
        reason="Created",
        last_transition_time="2020-01-01T00:00:00Z",
    )
    assert theirs in set_conditions((theirs,), conditions([]), 1, NOW)


def test_reconciling_goes_when_it_is_over():
    busy = set_conditions((), conditions([Finding(None, WorkerReason.CREATING_PODS, "")]), 1, NOW)
    settled = set_conditions(busy, conditions([Finding(True, ObjectReason.SETTLED)]), 1, LATER)
    assert [one.type for one in settled] == ["Ready"]


def test_a_new_generation_moves_no_time():
    first = set_conditions((), conditions([]), 1, NOW)
    (second,) = set_conditions(first, conditions([]), 2, LATER)
    assert (second.observed_generation, second.last_transition_time) == (2, STAMP)


def test_a_message_never_exceeds_what_the_schema_takes():
    message = conditions([Finding(None, PodReason.FAILING, "x" * 50_000)])[0].message
    assert len(message) == 32768
    assert message.endswith("x. See https://penstock.dev/r/PodsFailing")


def test_an_address_is_there_once_and_for_reasons_that_need_a_person_only():
    waits, fails = conditions([Finding(None, PodReason.NOT_READY, "no node yet")])[0], "no image"
    assert waits.message == "no node yet"
    once = conditions([Finding(False, PodReason.FAILING, fails)])[0].message
    again = conditions([Finding(False, PodReason.FAILING, once)])[0].message
    assert again == once == "no image. See https://penstock.dev/r/PodsFailing"


@given(findings, st.integers(1, 9))
def test_the_same_findings_give_the_same_object(found: list[Finding], generation: int):
    first = set_conditions((), conditions(found), generation, NOW)
    assert set_conditions(first, conditions(found), generation, LATER) is first


@given(findings, findings)
def test_a_time_moves_only_with_its_status(before: list[Finding], after: list[Finding]):
    old = set_conditions((), conditions(before), 1, NOW)
    new = set_conditions(old, conditions(after), 2, LATER)
    for one in new:
        earlier = find(old, one.type)
        kept = earlier is not None and earlier.status == one.status
        assert (one.last_transition_time == STAMP) == kept


@given(findings)
def test_an_object_is_ready_exactly_when_nothing_is_wrong(found: list[Finding]):
    """Feature row 66."""
    made = conditions(found)
    fine = all(finding.ok is True for finding in found)
    assert (status(made, "Ready") == "True") == fine
    abnormal = [one for one in made if one.type in ("Reconciling", "Stalled")]
    assert len(abnormal) == (0 if fine else 1)


@given(findings)
def test_every_condition_has_a_reason_and_one_type_once(found: list[Finding]):
    made = conditions(found)
    assert all(one.reason for one in made)
    assert len({one.type for one in made}) == len(made)
