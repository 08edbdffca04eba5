"""What a check's pod reports, and how its Job and its dependencies count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Job, Pod
from penstock.decide.check.gate import Before, waits_for
from penstock.decide.check.kubernetes_job import JobStatus, failure_words, job_status
from penstock.decide.check.submission import (
    Submission,
    ids_in,
    reported,
    submission,
    submission_annotations,
)


def pod(message: str, code: int = 0, name: str = "check") -> Pod:
    state = {"terminated": {"exitCode": code, "message": message}}
    status = {"containerStatuses": [{"name": name, "state": state}]}
    return msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)


def job(*conditions: str, **status: Any) -> Job:
    held = [{"type": one, "status": "True", "message": f"because {one}"} for one in conditions]
    return msgspec.convert({"status": {"conditions": held or None, **status}}, Job)


def test_ids_are_read_from_ranges_and_written_one_by_one() -> None:
    found = reported([pod("slurm-job-id=5,7-9\n")], "check")
    assert found == Submission((5, 7, 8, 9))
    assert submission_annotations(found) == {
        "slurm-job-id": "5,7,8,9",
        "unhandled-slurm-job-id": "5,7,8,9",
    }
    assert submission(submission_annotations(found)) == found


def test_a_reason_for_no_job_is_read() -> None:
    found = reported([pod("slurm-skipped-reason=no GPUs here\n")], "check")
    assert found.skipped == "no GPUs here"
    assert submission(submission_annotations(found)) == found


@pytest.mark.parametrize(
    "message",
    ["", "Traceback: x=5", "slurm-job-id=", "slurm-job-id=a-b", "slurm-job-id=1-99999999"],
)
def test_other_words_are_no_report(message: str) -> None:
    assert not reported([pod(message, 1)], "check").is_known
    assert not reported([pod("slurm-job-id=5", name="munge")], "check").is_known


@pytest.mark.parametrize("text", ["9" * 5000, "0", "4294967295", "5-9999999999"])
def test_what_is_no_id_of_a_job_is_left_out(text: str) -> None:
    """An annotation that somebody has edited."""
    assert ids_in(f"{text},7") == (7,)


@pytest.mark.parametrize("text", ["", "eJw=", "é", "OkD?"])
def test_a_compressed_list_that_somebody_has_edited_is_none(text: str) -> None:
    assert ids_in(f"zlib:{text}") == ()


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (job(active=1), JobStatus.ACTIVE),
        (job(), JobStatus.PENDING),
        (job("Complete"), JobStatus.COMPLETE),
        (job("SuccessCriteriaMet"), JobStatus.COMPLETE),
        (job("FailureTarget"), JobStatus.FAILED),
        (job("Suspended"), JobStatus.SUSPENDED),
        (job("Other"), JobStatus.UNKNOWN),
    ],
)
def test_a_jobs_status_has_the_published_words(found: Job, status: JobStatus) -> None:
    assert job_status(found) is status


def test_a_failure_has_the_containers_words_before_those_of_the_job() -> None:
    assert failure_words(job("Failed"), (pod("sbatch: no such user\n", 1),)) == (
        "sbatch: no such user"
    )
    assert failure_words(job("Failed"), ()) == "because Failed"


@pytest.mark.parametrize("result", ["", "InProgress", "Failed", "Error", "Cancelled"])
def test_a_check_waits_until_those_before_it_are_complete_or_skipped(result: str) -> None:
    found = waits_for([Before("a", result="Complete"), Before("b", result=result)])
    assert found is not None
    assert "b (" in found.message
    assert "a (" not in found.message


def test_a_check_that_nobody_starts_delays_no_other_one() -> None:
    before = [Before("a", runs_at_creation=False), Before("b", result="Skipped")]
    assert waits_for(before) is None
    missing = waits_for([Before("c", exists=False)])
    assert missing is not None
    assert "c (does not exist)" in missing.message
