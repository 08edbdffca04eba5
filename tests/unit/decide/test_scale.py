"""Which pods go first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Pod
from penstock.decide import ordinals
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.scale import cost_findings, deletion_cost, workers_to_scale_in
from penstock.slurm.state import Job, Node
from penstock.translate.slinky.worker_set import MARKS
from support.nodesets import (
    NOW,
    UNKNOWN,
    job,
    known_nodes,
    node,
    nodeset,
    observed,
    pod,
    view,
    waiting,
)

COST = "nodeset.slinky.slurm.net/pod-deletion-cost"
CORDON = "nodeset.slinky.slurm.net/pod-cordon"
DEADLINE = "nodeset.slinky.slurm.net/pod-deadline"


def first(
    *pods: Pod, jobs: tuple[Job, ...] = (), nodes: tuple[Node, ...] = (), silent: bool = False
) -> str:
    answer: dict[str, Any] = {
        "nodes": known_nodes(*nodes),
        "jobs": UNKNOWN if silent else jobs,
    }
    chosen = {
        workers_to_scale_in(MARKS, observed(view(nodeset(), *order, **answer)).all, 1)[0].name
        for order in itertools.permutations(pods)
    }
    assert len(chosen) == 1, "the order of the list must not matter"
    return chosen.pop()


def test_the_highest_ordinal_goes_among_equals() -> None:
    assert first(pod(0), pod(10), pod(9)) == "compute-10"


def test_equal_ones_go_by_name_whoever_looks() -> None:
    """Found by plan 9562 of 1 to 10,000: two operators took one worker each in one moment."""
    named = (pod(name="compute-tf6glbslm2"), pod(name="compute-cr84v6npn8"))
    assert first(*named) == "compute-cr84v6npn8"


def test_the_documented_order() -> None:
    """Feature rows 28 and 31."""
    unbound = pod(0, phase="Pending", ready=False, bound=False)
    pending = pod(1, phase="Pending", ready=False, slurmd=waiting())
    strange = pod(2, phase="Unknown", ready=False)
    unready = pod(3, ready=False)
    cheap = pod(4, annotations={COST: "-5"})
    idle = pod(5)
    early = pod(6)
    late = pod(7)
    jobs = (job(1, 6, time_limit=30), job(2, 7, time_limit=None))
    pods = [late, early, idle, cheap, unready, strange, pending, unbound]
    while pods:
        expected = pods.pop()
        assert first(expected, *pods[-3:], jobs=jobs) == expected.metadata.name


def test_a_cordoned_pod_goes_before_a_higher_ordinal() -> None:
    assert first(pod(0, annotations={CORDON: "true"}), pod(1)) == "compute-0"


def test_a_deadline_counts_more_than_a_cordon() -> None:
    """Feature row 28."""
    cordoned = pod(0, annotations={CORDON: "true"})
    assert first(cordoned, pod(1), jobs=(job(1, 0),)) == "compute-1"


def test_an_idle_node_goes_before_a_busy_one_with_a_higher_ordinal() -> None:
    assert first(pod(0), pod(1), nodes=(node(0), node(1, "MIXED"))) == "compute-0"


def test_who_was_taken_stays_the_one_that_goes_unless_its_node_got_a_job() -> None:
    taken = pod(1, annotations={CORDONED_FOR: f"{DrainCause.SCALE_IN} since 2027-01-15T09:00:00Z"})
    assert first(pod(2), taken) == "compute-1"
    assert first(pod(2), taken, jobs=(job(1, 1),)) == "compute-2"
    assert first(pod(2), taken, jobs=(job(1, 1), job(2, 2, time_limit=90))) == "compute-1"
    assert first(pod(2), taken, silent=True) == "compute-1"


def test_without_an_answer_the_written_deadline_counts() -> None:
    busy = pod(1, annotations={DEADLINE: "2027-01-15T09:00:00Z"})
    assert first(pod(0), busy, silent=True) == "compute-0"


def test_a_pod_that_ended_goes_before_one_that_is_new() -> None:
    new = pod(1, phase="Pending", ready=False, bound=False, created=NOW)
    assert first(pod(0, phase="Failed", ready=False), new) == "compute-0"


@pytest.mark.parametrize(
    ("text", "cost"),
    [("7", 7), ("-7", -7), ("0", 0), ("+7", 0), ("07", 0), ("", 0), ("x", 0), ("2147483648", 0)],
)
def test_only_a_plain_32_bit_number_is_a_cost(text: str, cost: int) -> None:
    """Feature row 31."""
    assert deletion_cost(MARKS, pod(annotations={COST: text})) == cost


@pytest.mark.parametrize(
    ("replicas", "kept", "wanted"),
    [
        (3, (), (0, 1, 2)),
        (3, (0, 2), (0, 1, 2)),
        (2, (4,), (0, 4)),
        (1, (0, 1), (0, 1)),
        (0, (), ()),
    ],
)
def test_the_lowest_free_ordinals_are_used(
    replicas: int, kept: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert ordinals.wanted(replicas, kept) == wanted


def test_a_cost_that_is_no_number_is_reported_and_a_good_one_is_not() -> None:
    pods = [pod(annotations={COST: "-1"}), pod(annotations={COST: "9" * 5_000}), pod()]
    (found,) = cost_findings(MARKS, pods)
    assert (found.ok, found.reason) == (True, "DeletionCostIgnored")
    assert "'99999999999999999999'" in found.message
    assert cost_findings(MARKS, pods[:1]) == []
