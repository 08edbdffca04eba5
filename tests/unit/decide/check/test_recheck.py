"""Reservations in which a check runs again on nodes that it drained."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.check.reaction import CheckPolicy, check_of
from penstock.decide.check.recheck import Recheck, ending, recheck_of, rechecks
from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import NodeState

GPU = CheckPolicy("gpu-checks", "[node_problem]")
NODE = "worker-0"
BEGAN = 100
RECHECK = Recheck(f"activecheck.{GPU.name}.{NODE}", NODE, BEGAN)
FREE = NodeState(is_drained=False)
RESULTS = st.lists(
    st.builds(
        Result,
        job=st.integers(1, 9),
        state=st.sampled_from(("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")),
        nodes=st.sampled_from(((NODE,), ("worker-1",), (NODE, "worker-1"))),
        ended=st.integers(50, 150),
    ),
    max_size=6,
    unique_by=lambda one: (one.ended, one.job),
)


def result(state: str, ended: int, job: int = 5) -> Result:
    return Result(job, state, (NODE,), ended=ended)


def test_a_job_that_completes_in_the_reservation_brings_the_node_back() -> None:
    """S113."""
    assert ending(RECHECK, FREE, GPU, [result("FAILED", 90), result("COMPLETED", 110)]).drain == ""


def test_any_other_end_drains_the_node_again() -> None:
    mark = "[node_problem] gpu-checks: job 5 [slurm_job]"
    before = result("FAILED", 90)
    assert ending(RECHECK, FREE, GPU, [before]).drain == mark
    assert ending(RECHECK, FREE, GPU, [before, result("TIMEOUT", 110, 7)]).drain == mark
    assert ending(RECHECK, FREE, GPU, [before, result("CANCELLED", 110, 7)]).drain == mark
    # A job of an earlier run is no proof.
    assert ending(RECHECK, FREE, GPU, [result("COMPLETED", 95, 4), before]).drain == mark


def test_a_check_whose_results_are_gone_keeps_its_owner_mark() -> None:
    found = ending(RECHECK, FREE, GPU, []).drain
    assert found == "[node_problem] gpu-checks: not confirmed [slurm_job]"
    assert check_of(found) == GPU.name


@given(RESULTS)
def test_a_node_goes_back_only_where_the_last_job_in_the_reservation_completed(
    results: list[Result],
) -> None:
    shown = [
        one
        for one in results
        if NODE in one.nodes and one.state in ("COMPLETED", "FAILED") and one.ended >= BEGAN
    ]
    last = max(shown, key=lambda one: (one.ended, one.job), default=None)
    found = ending(RECHECK, FREE, GPU, results)
    assert (found.drain == "") == (last is not None and last.state == "COMPLETED")
    if found.drain:
        assert check_of(found.drain) == GPU.name


@given(RESULTS, st.text(max_size=20))
def test_a_drain_of_somebody_else_is_not_reworded(results: list[Result], words: str) -> None:
    node = NodeState(is_drained=True, reason=words)
    assert ending(RECHECK, node, GPU, results).drain == ""


def test_a_node_that_stays_drained_is_not_in_service() -> None:
    drained = NodeState(is_drained=True, reason="bad cable")
    assert not ending(RECHECK, drained, GPU, [result("COMPLETED", 110)]).in_service
    assert not ending(RECHECK, FREE, GPU, []).in_service
    assert ending(RECHECK, FREE, GPU, [result("COMPLETED", 110)]).in_service


def test_reservations_of_others_are_no_rechecks() -> None:
    given = {
        RECHECK.name: BEGAN,
        "activecheck.gpu-checks.more.worker-0": 1,
        "activecheck.net-checks.worker-0": 1,
        "maintenance": 1,
        "activecheck.gpu-checks.": 1,
    }
    assert rechecks(GPU.name, given) == (RECHECK,)
    assert recheck_of("gpu-checks", "activecheck.gpu-checks-2.worker-0", 1) is None
