"""Fault plans keep the promises, and would notice if one were broken.

CI plays 2,000, people play a few. More on demand: `make plans COUNT=10000 SEED=1`.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from penstock.testing.plans.play import plan_of, play
from penstock.testing.plans.pool import play_all
from penstock.testing.plans.quiet import logging
from support.mutations import MUTATIONS, Mutation

COUNT = int(os.environ.get("PENSTOCK_PLANS") or (300 if os.environ.get("CI") else 40))
FIRST = int(os.environ.get("PENSTOCK_SEED", "1"))
CAUGHT_BY = {
    "unknown_counts_as_drained": (6, 11, 16, 23),
    "jobs_are_not_looked_at": (3,),
    "drain_is_not_waited_for": (2,),
    "deletes_name_no_uid": (16, 1145),
    "slurm_is_not_asked_again": (7, 25, 34),
    "every_drain_is_ours": (7, 15),
    "edits_are_left": (5, 11),
    "budget_is_dropped": (10, 19),
    "gone_pods_are_not_counted": (19, 25),
}
"""For each mutation, seeds of plans that noticed it; a change of the operator makes it others."""
SEARCHED = 400
"""So many further plans are played before a mutation counts as unnoticed."""


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    with logging(show=False):
        yield


def test_fault_plans_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    played = list(play_all(range(FIRST, FIRST + COUNT)))
    broken = [str(one) for one in played if one.broken]
    assert not broken, "\n".join(broken)
    assert len(played) == COUNT
    with capsys.disabled():
        taken = sum(one.cpu for one in played)
        print(f"\n{COUNT} fault plans from seed {FIRST}, {COUNT / taken:.1f} per CPU-second")


def test_a_plan_is_the_same_each_time() -> None:
    first, second = play(plan_of(7), silence=0.0), play(plan_of(7), silence=0.0)
    assert len(first.writes) > 20
    assert first.writes == second.writes
    assert first.plan == second.plan


def test_a_plan_is_the_same_in_another_process() -> None:
    """What a set of strings is walked in the order of differs from process to process."""
    (there,) = play_all([7], workers=1, silence=0.0)
    assert there.digest == play(plan_of(7), silence=0.0).digest


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_plans_notice_a_guard_that_is_missing(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    name = mutation.__name__
    seeds = (*CAUGHT_BY[name], *range(1, SEARCHED))
    assert any(play(plan_of(seed), silence=0.0).broken for seed in seeds), name
