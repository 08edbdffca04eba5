"""Results of Slurm jobs: how they are remembered, and what a run comes to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.check.results import (
    Result,
    RunStatus,
    decode,
    encode,
    ended,
    lost,
    newest_by_node,
    run_status,
)
from penstock.slurm.job_result import JobEnd, JobResult

STATES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "UNKNOWN")
RESULTS = st.builds(
    Result,
    job=st.integers(1, 10**7),
    state=st.sampled_from(STATES),
    nodes=st.sets(st.integers(0, 30), max_size=5).map(
        lambda numbers: tuple(f"worker-{one}" for one in sorted(numbers))
    ),
    reason=st.text(max_size=20),
    name=st.text(max_size=20),
    submitted=st.integers(0, 2**31),
    ended=st.integers(0, 2**31),
)


@given(st.lists(RESULTS, max_size=8))
def test_results_are_read_back_as_they_were_written(results: list[Result]) -> None:
    assert list(decode(encode(results))) == results


def test_results_of_jobs_on_all_nodes_fit_into_an_annotation() -> None:
    nodes = [f"a-long-name-of-a-worker-{one}" for one in range(5000)]
    results = [
        Result(7_000_000 + at, "COMPLETED", (node,), "None", "check", 1_700_000_000, 1_700_000_900)
        for at, node in enumerate(nodes)
    ]
    text = encode(results)
    assert len(text) < 131_072
    assert list(decode(text)) == results


@given(st.text(max_size=40).flatmap(lambda text: st.sampled_from([text, f"zlib:{text}"])))
def test_an_edited_annotation_is_no_result(text: str) -> None:
    for one in decode(text):
        assert isinstance(one, Result)


@given(st.lists(st.sampled_from(STATES), max_size=6), st.booleans())
def test_the_worst_end_is_the_runs_once_all_jobs_have_ended(ends: list[str], waits: bool) -> None:
    found = run_status([Result(job, end) for job, end in enumerate(ends)], waits=waits)
    if waits or not ends:
        assert found is RunStatus.IN_PROGRESS
    elif "FAILED" in ends:
        assert found is RunStatus.FAILED
    elif {"TIMEOUT", "NODE_FAIL", "UNKNOWN"} & set(ends):
        assert found is RunStatus.ERROR
    else:
        assert found is (RunStatus.CANCELLED if "CANCELLED" in ends else RunStatus.COMPLETE)


@given(st.lists(RESULTS, max_size=8), st.randoms())
def test_the_last_result_of_a_node_depends_on_no_order_of_their_arrival(
    results: list[Result], random: object
) -> None:
    unique = list({one.job: one for one in results}.values())
    shuffled = sorted(unique, key=lambda one: one.nodes)
    assert newest_by_node(unique) == newest_by_node(shuffled)
    for node, one in newest_by_node(unique).items():
        assert one.end in (JobEnd.COMPLETED, JobEnd.FAILED)
        later = [r for r in unique if node in r.nodes and r.ended > one.ended]
        assert all(r.end not in (JobEnd.COMPLETED, JobEnd.FAILED) for r in later)


def test_a_job_has_no_result_while_a_task_of_it_runs_or_completes() -> None:
    done = JobResult(5, "FAILED", nodes=("a",))
    assert ended([done, JobResult(6, "RUNNING")]) is None
    assert ended([JobResult(5, "FAILED", is_completing=True)]) is None
    assert ended([]) is None
    assert ended([done]) == (Result(5, "FAILED", ("a",)),)


def test_words_name_state_reason_and_nodes() -> None:
    found = Result(5, "FAILED", ("worker-0", "worker-1"), "NonZeroExitCode")
    assert found.words == "FAILED: NonZeroExitCode on worker-[0-1]"
    assert lost(5, "nobody has it").words == "UNKNOWN: nobody has it"
