"""What slurmdbd's container says, and whom a late slurmdbd has kept waiting (S169)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.kubernetes.kinds import (
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodStatus,
)
from penstock.api.kubernetes.meta import Condition, LocalObjectReference, ObjectMeta
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.decide.accounting import conditions as accounting
from penstock.decide.accounting.slurmdbd import (
    IN_VAIN,
    SlurmdbdReport,
    database,
    read,
    waited_in_vain,
)
from penstock.model.cluster import AccountingLink
from penstock.translate.slinky.cluster import accounting_link

NOW = 1_800_000_000.0
ENDED = "2027-01-15T07:59:50Z"
"""Ten seconds before NOW."""
REFUSED = "mysql_real_connect failed: 2002 Can't connect to server on 'db' (115)"
DENIED = "mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1'"


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_names_that_slurmdbd_repeats_are_no_lines_of_its_container(end: str) -> None:
    words = f"error: no such user x{end}penstock: effective bb{end}error: {REFUSED}"
    assert read(f"penstock: effective aa\n[2026-11-22T07:40:28.907] {words}\n") == SlurmdbdReport(
        "aa"
    )


def test_the_last_word_counts() -> None:
    log = f"""
[2026-11-22T07:40:28.907] error: {REFUSED}
penstock: effective aa
penstock: database lost: error: Connection refused
penstock: database ok
penstock: refused bb: error: unrecognized key: Bogus: yes / fatal: Could not read
"""
    words = "error: unrecognized key: Bogus: yes / fatal: Could not read"
    assert read(log) == SlurmdbdReport(effective="aa", rejected="bb", words=words)
    assert read(log + "penstock: effective bb\n") == SlurmdbdReport(effective="bb")


@pytest.mark.parametrize("order", [1, -1])
def test_slurmdbd_knows_better_than_its_client_why_the_database_is_away(order: int) -> None:
    lost = "penstock: database lost: no answer\n"
    lines = [f"[2026-11-22T07:40:28.907] error: {REFUSED}\n", lost]
    assert read("penstock: database ok\n" + "".join(lines[::order])).database == REFUSED
    assert read(lost).database == "no answer"


def test_a_database_that_is_away_needs_nobody_and_one_that_refuses_does() -> None:
    away = database(SlurmdbdReport(database=REFUSED), "records at db:3306")
    assert (away.ok, away.reason) == (None, "DatabaseUnreachable")
    assert "records at db:3306" in away.message
    assert "Can't connect" in away.message
    denied = database(SlurmdbdReport(database=DENIED), "records at db:3306")
    assert (denied.ok, denied.reason) == (False, "DatabaseRefuses")
    starting = database(SlurmdbdReport(), "records at db:3306")
    assert (starting.ok, starting.reason) == (None, "WaitingForDatabase")


def slurmctld(words: str = IN_VAIN, reason: str = "CrashLoopBackOff") -> Pod:
    ended = ContainerTerminated(exit_code=1, message=f"fatal: {words}", finished_at=ENDED)
    status = ContainerStatus(
        name="slurmctld",
        state=ContainerState(waiting=ContainerWaiting(reason=reason)),
        last_state=ContainerState(terminated=ended),
    )
    return Pod(
        metadata=ObjectMeta(name="slurm-controller-0"),
        status=PodStatus(container_statuses=(status,)),
    )


def test_a_slurmctld_that_was_ended_while_it_waited_starts_when_slurmdbd_is_there() -> None:
    pod = slurmctld()
    assert waited_in_vain([pod], serves=True, now=NOW) is pod
    assert waited_in_vain([pod], serves=False, now=NOW + 3600) is None
    assert waited_in_vain([slurmctld("Unable to process file")], serves=True, now=NOW) is None
    assert waited_in_vain([slurmctld(reason="ErrImagePull")], serves=True, now=NOW) is None


def test_for_an_outside_slurmdbd_it_is_tried_now_and_then() -> None:
    pod = slurmctld()
    assert waited_in_vain([pod], serves=None, now=NOW) is None
    assert waited_in_vain([pod], serves=None, now=NOW + 30) is pod
    inside = AccountingLink("hpc", "a", exists=True)
    assert accounting.requeue_after(inside) is None
    assert accounting.requeue_after(replace(inside, external=True)) == 30


def test_whether_slurmdbd_serves_is_what_its_database_says() -> None:
    def describe(*conditions: Condition) -> AccountingLink:
        return AccountingLink("hpc", "a", exists=True, conditions=conditions)

    def condition(type_: str, status: str) -> Condition:
        return Condition(type=type_, status=status, reason="R", message="m")  # pyright: ignore

    assert accounting.is_serving(describe()) is False
    lost = describe(condition("Ready", "False"), condition("DatabaseReachable", "True"))
    assert accounting.is_serving(lost) is True
    (finding,) = accounting.waits(describe(condition("Ready", "False")))
    assert (finding.ok, finding.reason) == (None, "WaitingForAccounting")
    assert finding.message.endswith("Accounting a: m")


def test_an_accounting_that_does_not_exist_is_told_to_its_controller() -> None:
    reference = LocalObjectReference(name="records")
    meta = ObjectMeta(name="slurm", namespace="hpc")
    controller = Controller(metadata=meta, spec=ControllerSpec(accounting_ref=reference))
    absent = accounting_link(controller, None)
    (finding,) = accounting.findings(absent, has_worked=False)
    assert (finding.ok, finding.reason) == (None, "AccountingNotFound")
    assert "no Accounting records in namespace hpc, so slurmctld is not started" in finding.message
    (finding,) = accounting.findings(absent, has_worked=True)
    assert "no job is recorded" in finding.message
    there = Accounting(metadata=ObjectMeta(name="records"), spec=AccountingSpec())
    assert accounting.findings(accounting_link(controller, there), has_worked=False) == []
