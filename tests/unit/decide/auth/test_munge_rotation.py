"""S163: a changed munge key reaches all munged at one time, whenever the operator is killed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.decide.auth.munge_rotation import (
    AGAIN_S,
    PATIENCE_S,
    MungePod,
    MungeStep,
    MungeView,
    shows,
    step,
)

NOW = 1_800_000_000.0
OLD, NEW = "0" * 16, "1" * 16
CTLD = MungePod("controller-0", OLD, is_slurmctld=True)
WORKER, LOGIN = MungePod("worker-0"), MungePod("login-0")


def view(*pods: MungePod, digest: str = NEW, since: float | None = None) -> MungeView:
    return MungeView(NOW, digest, pods, since)


def test_the_first_key_is_only_noted_on_the_pod_of_slurmctld() -> None:
    new = replace(CTLD, mark="")
    assert step(view(new, WORKER)) == MungeStep((("controller-0", NEW),))
    assert step(view(replace(CTLD, mark=NEW), WORKER)) == MungeStep()
    assert step(view(WORKER)) == MungeStep()


def test_a_standby_that_comes_later_is_no_rotation() -> None:
    standby = MungePod("controller-1", is_slurmctld=True)
    found = step(view(replace(CTLD, mark=NEW), standby))
    assert found == MungeStep((("controller-1", NEW),))


def test_a_rotation_is_reported_before_a_pod_is_annotated() -> None:
    """Else an operator that is killed in between would not finish it."""
    assert step(view(CTLD, WORKER)) == MungeStep(words="pods get it", begins=True)


def test_slurmctld_is_annotated_last() -> None:
    found = step(view(CTLD, WORKER, LOGIN, since=NOW))
    assert found.marks == (("worker-0", NEW), ("login-0", NEW), ("controller-0", NEW))


def test_a_rotation_ends_once_the_log_of_each_pod_shows_the_key() -> None:
    pods = [replace(one, mark=NEW) for one in (CTLD, WORKER, LOGIN)]
    found = step(view(*pods, since=NOW))
    assert found == MungeStep(words="munged of controller-0, worker-0, login-0 has the former key")
    have = [replace(one, has_key=True) for one in pods]
    assert step(view(*have, since=NOW)) == MungeStep(ends=True)
    away = replace(pods[1], runs=False)
    assert step(view(have[0], away, have[2], since=NOW)) == MungeStep(ends=True)


def test_one_that_is_late_is_given_the_key_again_and_named_after_three_minutes() -> None:
    late = replace(WORKER, mark=NEW)
    pods = replace(CTLD, mark=NEW, has_key=True), late
    found = step(view(*pods, since=NOW - AGAIN_S))
    assert (found.marks, found.stuck) == ((("worker-0", f"{NEW}.1"),), False)
    again = replace(late, mark=f"{NEW}.1")
    assert step(view(pods[0], again, since=NOW - AGAIN_S)).marks == ()
    found = step(view(pods[0], again, since=NOW - PATIENCE_S))
    assert found.stuck
    assert found.words == "munged of worker-0 has the former key"


def test_a_rotation_that_is_stuck_stays_so_until_its_pods_follow() -> None:
    late = replace(WORKER, mark=f"{NEW}.12")
    pods = replace(CTLD, mark=NEW, has_key=True), late
    stuck = replace(view(*pods, since=NOW), was_stuck=True)
    assert step(stuck) == MungeStep(words="munged of worker-0 has the former key", stuck=True)
    done = replace(view(pods[0], replace(late, has_key=True), since=NOW), was_stuck=True)
    assert step(done).ends


def test_a_key_that_changes_twice_is_given_once_more() -> None:
    pods = [replace(one, mark=f"{OLD}.2") for one in (CTLD, WORKER)]
    found = step(view(*pods, since=NOW - 1))
    assert found.marks == (("worker-0", NEW), ("controller-0", NEW))


def test_an_operator_that_is_killed_after_any_write_finishes_the_rotation() -> None:
    """Each write is one state of the pods and the condition, from which another one goes on."""
    pods = {one.name: one for one in (CTLD, WORKER, LOGIN)}
    since: float | None = None
    found = step(view(*pods.values()))
    for _ in range(20):
        if found.begins:
            since = NOW
        elif found.marks:
            name, mark = found.marks[0]  # killed after the first one
            pods[name] = replace(pods[name], mark=mark, has_key=True)
        found = step(view(*pods.values(), since=since))
    assert found.ends
    assert {one.mark for one in pods.values()} == {NEW}


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("", False),
        (f"munge: munged has the key {NEW}\n", True),
        (f"munge: munged has the key {OLD}\nx\nmunge: munged has the key {NEW}\ny\n", True),
        (f"munge: munged has the key {NEW}\nmunge: munged has the key {OLD}\n", False),
        (f"munge: munged has the key {NEW}0\n", False),
    ],
)
def test_the_last_start_of_munged_counts(log: str, shown: bool) -> None:
    assert shows(log, NEW) is shown
