"""When slurmctld is reconfigured to register with slurmdbd, and what its condition says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.kubernetes.conditions import conditions
from penstock.decide.accounting import registration
from penstock.decide.accounting.registration import FIRST_S, LONGEST_S, PATIENCE_S, RegistrationView
from penstock.slurm.accounting_registration import Registration
from penstock.slurm.known import Known, Unknown

MISSING = RegistrationView(
    cluster="blue",
    slurmdbd="records:6819",
    registration=Known(Registration(since=100.0), 100.0),
    settled=True,
)
THERE = replace(MISSING, registration=Known(Registration("10.0.0.1", 6817), 100.0))
UNKNOWN = replace(MISSING, registration=Unknown("slurmrestd refused the connection"))


def test_slurmctld_has_a_moment_to_register_by_itself() -> None:
    assert not registration.registers_again(MISSING, 100.0 + PATIENCE_S - 0.1)
    assert registration.registers_again(MISSING, 100.0 + PATIENCE_S)


@pytest.mark.parametrize(
    "view",
    [THERE, UNKNOWN, replace(MISSING, settled=False), replace(MISSING, external=True)],
    ids=["registered", "unknown", "configuration on its way", "slurmctld of somebody else"],
)
def test_nobody_else_is_reconfigured(view: RegistrationView) -> None:
    assert not registration.registers_again(view, 1e6)
    assert registration.requeue_after(view, 1e6) is None


def test_the_pauses_between_reconfigures_double_up_to_ten_minutes() -> None:
    for attempts in range(1, 12):
        view = replace(MISSING, attempts=attempts, attempted_at=1000.0)
        pause = min(FIRST_S * 2 ** (attempts - 1), LONGEST_S)
        assert not registration.registers_again(view, 1000.0 + pause - 0.1)
        assert registration.registers_again(view, 1000.0 + pause)
        assert registration.requeue_after(view, 1000.0) == pause


def test_a_missing_registration_is_not_ready_and_says_that_nothing_is_recorded() -> None:
    found = {
        one.type: one
        for one in conditions([registration.finding(MISSING), *registration.ready(MISSING)])
    }
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "AccountingNotRegistered")
    assert "Stalled" not in found
    own = found["AccountingRegistered"]
    assert (own.status, own.reason) == ("False", "NotRegistered")
    assert "slurmdbd at records:6819 does not have cluster blue registered" in own.message
    assert "no records of its jobs are kept there" in own.message


def test_after_two_reconfigures_it_says_where_to_look() -> None:
    view = replace(MISSING, attempts=2)
    assert "see the logs of slurmctld and slurmdbd" in registration.finding(view).message


def test_an_external_slurmctld_is_left_to_its_owner() -> None:
    view = replace(MISSING, external=True)
    assert "run 'scontrol reconfigure' on its slurmctld" in registration.finding(view).message


def test_what_is_unknown_says_nothing_of_ready() -> None:
    """slurmdbd may be away: records wait in slurmctld, and the Accounting says so."""
    found = {one.type: one for one in conditions([registration.finding(UNKNOWN)])}
    assert found["Ready"].status == "True"
    assert found["AccountingRegistered"].status == "Unknown"
    assert "slurmrestd refused the connection" in found["AccountingRegistered"].message
