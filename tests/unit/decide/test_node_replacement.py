"""When the machine of a Kubernetes node is replaced, and how its workers come back. S174."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.base import times
from penstock.decide.node_replacement import (
    KEPT,
    WINDOW_S,
    AskProvider,
    EndDrain,
    Machine,
    PlacedWorker,
    Replacement,
    ReplacementView,
    StartTest,
    WriteRecords,
    after_drain,
    after_start,
    next_step,
    read_records,
    write_records,
)
from penstock.decide.retest import RETEST_S
from penstock.slurm.state import Node

NOW = 1_800_000_000.0
REASON = "[hardware_problem] gpu_health: 7 GPUs [hc_program]"
OPEN = Replacement("m0", "u0", "id0", times.write(NOW), {"w0": REASON})


def broken(name: str = "w0", reason: str = REASON, since: float = NOW) -> Node:
    return Node(name, frozenset({"IDLE", "DRAIN"}), reason, reason_since=int(since))


def worker(number: int = 0, on: str = "", node: Node | None = None, **more: bool) -> PlacedWorker:
    name = f"w{number}"
    found = node or Node(name, frozenset({"IDLE"}))
    return PlacedWorker(name, on or f"m{number}", found, NOW - 100, **more)


def view(
    *workers: PlacedWorker, share: str = "1", records: tuple[Replacement, ...] = (), **more: Machine
) -> ReplacementView:
    machines = {f"m{n}": Machine(f"m{n}", f"u{n}", f"id{n}", has_workers=True) for n in range(3)}
    nodes = {one.slurm_node: one.node for one in workers if one.node is not None}
    return ReplacementView(share, records, machines | more, workers, nodes)


def written(found: ReplacementView) -> tuple[Replacement, ...]:
    step = next_step(found, NOW).step
    assert isinstance(step, WriteRecords), step
    return step.records


def test_a_broken_machine_begins_with_a_record_of_all_its_drains():
    both = [worker(n, "m0", broken(f"w{n}")) for n in (0, 1)]
    (one,) = written(view(*both))
    assert one == replace(OPEN, drains={"w0": REASON, "w1": REASON})


def test_a_drain_that_is_older_than_the_pod_is_about_another_machine():
    old = broken(since=NOW - 200)
    found = next_step(view(worker(node=old)), NOW)
    assert found.step is None
    (one,) = found.blockers
    assert one.node == "m0"
    assert "drain of Slurm node w0 ([hardware_problem] gpu_health" in one.message
    assert one.message.endswith("resume w0")
    # Nothing of it where its replacement is under way, or where machines are not replaced.
    both = view(worker(0, "m1", old), records=(OPEN,))
    assert next_step(both, NOW).blockers == ()
    assert next_step(view(worker(node=old), share=""), NOW).blockers == ()


@pytest.mark.parametrize("share", ["", "none"])
def test_without_a_share_nothing_begins(share: str):
    found = view(worker(node=broken()), share="" if share == "none" else share)
    assert next_step(found, NOW).step is None


def test_an_ended_replacement_counts_for_an_hour():
    other = replace(OPEN, uid="u9", machine="id9", drains={}, ended=True)
    found = view(worker(node=broken()), records=(other,))
    assert next_step(found, NOW + WINDOW_S - 1).step is None
    assert next_step(found, NOW + WINDOW_S).step is not None


def test_the_provider_is_asked_once_no_worker_is_there_and_not_while_it_deletes():
    out = Machine("m0", "u0", "id0", is_out=True, has_workers=True)
    found = replace(view(worker(1), records=(OPEN,), m0=out), nodes={"w0": broken()})
    assert next_step(found, NOW).step is None
    free = replace(out, has_workers=False)
    found = replace(found, machines={**found.machines, "m0": free})
    (asked,) = written(found)
    assert asked == replace(OPEN, asked=True)
    found = replace(found, records=(asked,))
    assert next_step(found, NOW).step == AskProvider(asked)
    going = replace(free, is_going=True)
    found = replace(found, machines={**found.machines, "m0": going})
    assert next_step(found, NOW).step is None


def test_a_repaired_node_keeps_its_machine():
    found = view(worker(), records=(OPEN,))
    assert written(found) == ()


def test_a_machine_goes_on_to_be_replaced_after_its_worker_has_moved():
    moved = replace(OPEN, back=("w0",))
    found = view(worker(on="m1", is_registered=True), records=(moved,))
    out = Machine("m0", "u0", "id0", is_out=True)
    found = replace(found, machines={**found.machines, "m0": out})
    assert written(found) == (replace(moved, asked=True),)


AROUND_JOBS = "[hardware_problem] gpu_health: 7 GPUs [prolog]"


@pytest.mark.parametrize("state", [True, False])
def test_a_drain_ends_once_its_worker_is_registered_elsewhere(state: bool):
    asked = replace(OPEN, asked=True, drains={"w0": AROUND_JOBS})
    node = broken(reason=AROUND_JOBS)
    found = view(worker(on="m1", node=node, is_registered=state), records=(asked,))
    found.machines.pop("m0")  # type: ignore[attr-defined]
    step = next_step(found, NOW).step
    assert step == (EndDrain(asked, "w0", AROUND_JOBS) if state else None)
    if isinstance(step, EndDrain):
        (back,) = after_drain(found, step).records
        assert written(replace(found, records=(back,))) == (replace(back, ended=True),)


def test_a_health_check_ends_its_drain_itself_once_it_passes_on_the_next_machine():
    asked = replace(OPEN, asked=True)
    moved = worker(on="m1", node=replace(broken(), slurmd_start_time=int(NOW)), is_registered=True)
    found = view(moved, records=(asked,))
    found.machines.pop("m0")  # type: ignore[attr-defined]
    assert next_step(found, NOW + RETEST_S - 1).step is None
    # One that undrains nothing is not waited for.
    assert next_step(found, NOW + RETEST_S).step == EndDrain(asked, "w0", REASON)
    passed = view(worker(on="m1", is_registered=True), records=(asked,))
    passed = replace(passed, machines={"m1": Machine("m1", "u1", "id1")})
    (back,) = written(passed)
    assert written(replace(passed, records=(back,))) == (replace(back, ended=True),)


OF_CHECK = "[hardware_problem] all-reduce: job 7 [slurm_job]"


def test_a_check_in_jobs_runs_on_the_next_machine_once_before_its_drain_ends():
    asked = replace(OPEN, asked=True, drains={"w0": OF_CHECK})
    found = view(
        worker(on="m1", node=broken(reason=OF_CHECK), is_registered=True), records=(asked,)
    )
    found = replace(found, machines={"m1": Machine("m1", "u1", "id1")}, checks=("all-reduce",))
    step = next_step(found, NOW).step
    assert step == StartTest(asked, "w0", "all-reduce")
    assert isinstance(step, StartTest)
    (started,) = after_start(found, step).records
    runs = replace(found, records=(started,), tests={("u0", "w0")})
    assert next_step(runs, NOW).step is None
    # An image of the original takes no drained node.
    left = replace(runs, tests=())
    assert next_step(left, NOW).step == EndDrain(started, "w0", OF_CHECK)


@pytest.mark.parametrize("state", ["DOWN", "NOT_RESPONDING", "REBOOT_ISSUED", "RESERVED"])
def test_a_check_in_jobs_waits_until_the_node_takes_its_job(state: str):
    asked = replace(OPEN, asked=True, drains={"w0": OF_CHECK})
    node = replace(broken(reason=OF_CHECK), state=frozenset({"IDLE", "DRAIN", state}))
    found = view(worker(on="m1", node=node, is_registered=True), records=(asked,))
    found = replace(found, machines={"m1": Machine("m1", "u1", "id1")}, checks=("all-reduce",))
    assert next_step(found, NOW).step is None
    assert isinstance(next_step(found, NOW + RETEST_S).step, EndDrain)


@pytest.mark.parametrize("checks", [(), ("another",)])
def test_a_check_that_cannot_be_started_tests_nothing(checks: tuple[str, ...]):
    asked = replace(OPEN, asked=True, drains={"w0": OF_CHECK})
    found = view(
        worker(on="m1", node=broken(reason=OF_CHECK), is_registered=True), records=(asked,)
    )
    found = replace(found, machines={"m1": Machine("m1", "u1", "id1")}, checks=checks)
    assert isinstance(next_step(found, NOW).step, EndDrain)


def test_the_drain_of_a_worker_that_leaves_stays_until_its_pod_is_gone():
    asked = replace(OPEN, asked=True)
    leaving = worker(on="m1", node=broken(), is_registered=True, is_leaving=True)
    found = view(leaving, records=(asked,))
    found.machines.pop("m0")  # type: ignore[attr-defined]
    assert next_step(found, NOW).step is None
    (back,) = written(replace(found, workers=(), nodes={}))
    assert back.back == ("w0",)


def test_a_drain_with_other_words_stays_and_ends_the_replacement():
    asked, mine = replace(OPEN, asked=True), broken(reason="mine")
    new = Machine("m0", "u5", "id5")
    found = view(worker(node=mine, is_registered=True), records=(asked,), m0=new)
    (back,) = written(found)
    assert back.back == ("w0",)
    # Its slurmd stopped before somebody drained it, who decides when it is in service again.
    down = Node("w0", frozenset({"DOWN", "DRAIN"}), "mine", reason_since=int(NOW))
    (back,) = written(view(worker(node=down, is_registered=True), records=(asked,), m0=new))
    assert back.back == ("w0",)
    changing = view(worker(node=mine, is_registered=True, is_changing=True), records=(asked,))
    changing = replace(changing, machines={"m0": new})
    assert next_step(changing, NOW).step is None


def test_the_same_machine_under_another_uid_is_reported_and_keeps_the_drain():
    asked = replace(OPEN, asked=True)
    same = Machine("m0", "u5", "id0")
    found = view(worker(node=broken(), is_registered=True), records=(asked,), m0=same)
    outcome = next_step(found, NOW)
    assert outcome.step is None
    assert [one.node for one in outcome.blockers] == ["m0"]


def test_a_worker_that_is_not_wanted_any_more_ends_its_replacement():
    asked = replace(OPEN, asked=True)
    found = replace(view(worker(1), records=(asked,)), machines={})
    (back,) = written(found)
    assert written(replace(found, records=(back,))) == (replace(back, ended=True),)


def test_too_many_drains_of_checks_stop_the_next_replacement_and_no_begun_one():
    out = {"w0", "w1"}
    found = replace(view(worker(node=broken()), share="5"), out=out)
    outcome = next_step(found, NOW)
    assert outcome.step is None
    assert "2 Slurm nodes drained, and 1 may be" in outcome.blockers[0].message
    free = Machine("m0", "u0", "id0", is_out=True)
    begun = replace(found, records=(OPEN,), machines={"m0": free})
    assert isinstance(next_step(begun, NOW).step, WriteRecords)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"node": 1}]', "null"])
def test_an_annotation_that_does_not_parse_is_none(text: str):
    assert read_records(text) is None


def test_all_open_records_are_kept_and_the_last_ended_ones():
    every = [replace(OPEN, uid=str(n), ended=n % 2 == 0) for n in range(3 * KEPT)]
    kept = read_records(write_records(every)) or ()
    assert [one for one in kept if not one.ended] == [one for one in every if not one.ended]
    assert [one for one in kept if one.ended] == [one for one in every if one.ended][-KEPT:]
    assert len(write_records(every)) < 200_000
