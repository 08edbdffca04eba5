"""The condition of a Backup, and when its one Job is due."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Job, Pod
from penstock.catalog.reasons.backup import BackupReason
from penstock.decide.backup.run import Run, RunResult, newest, run_of
from penstock.decide.backup.schedule import BackupView, finding, is_due
from penstock.decide.check.kubernetes_job import JobStatus

GOOD = Run("backup-b-1", JobStatus.COMPLETE, 100.0, RunResult("0123456789", 5, 3))
BAD = Run("backup-b-2", JobStatus.FAILED, 200.0, words="Fatal: wrong password")
ACTIVE = Run("backup-b-3", JobStatus.ACTIVE, 300.0)
TIME = "2026-01-01T00:00:00Z"


def job(type_: str = "", when: str = TIME) -> Job:
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": when}] if type_ else []
    body = {"metadata": {"name": "backup-b"}, "status": {"conditions": conditions}}
    return msgspec.convert(body, Job)


def pod(message: str, code: int = 0, *, created: str = TIME) -> Pod:
    ended = {"name": "backup", "state": {"terminated": {"exitCode": code, "message": message}}}
    phase = "Failed" if code else "Succeeded"
    body = {
        "metadata": {"name": "p", "creationTimestamp": created},
        "status": {"phase": phase, "containerStatuses": [ended]},
    }
    return msgspec.convert(body, Pod)


def test_the_last_line_of_the_message_is_the_result() -> None:
    run = run_of(job("Complete"), [pod('log\n{"snapshot": "ab", "bytes": 7, "unread": 1}')])
    assert run.is_good
    assert run.result == RunResult(snapshot="ab", bytes=7, unread=1)


@pytest.mark.parametrize("message", ["", "killed", "{", "[1]", '{"bytes": "x"}', "\x00"])
def test_any_other_message_of_a_good_run_is_no_result(message: str) -> None:
    run = run_of(job("Complete"), [pod(message)])
    assert run.is_good
    assert run.result == RunResult()


def test_a_failure_has_restic_s_words() -> None:
    words = '{"error": "Fatal: wrong password or no key found"}'
    run = run_of(job("Failed"), [pod(words, 1)])
    assert (run.words, run.exit_code) == ("Fatal: wrong password or no key found", 1)
    assert run_of(job("Failed"), [pod("OOM\nkilled", 137)]).words == "OOM / killed"
    assert run_of(job("Failed"), []).words == "no message"


def test_the_newest_pod_has_the_result() -> None:
    pods = [pod('{"error": "old"}', 1), pod('{"snapshot": "ab"}', created="2026-01-02T00:00:00Z")]
    assert run_of(job("Complete"), pods).result.snapshot == "ab"


def test_the_newest_run_is_that_which_ended_last() -> None:
    assert newest([BAD, GOOD]) == BAD
    assert newest([]) is None


def test_a_single_backup_is_made_once() -> None:
    assert is_due(BackupView(runs=()))
    assert not is_due(BackupView(runs=(ACTIVE,)))
    assert not is_due(BackupView(runs=(BAD,)))
    # Its Job may be gone.
    assert not is_due(BackupView(runs=(), last_good=TIME))
    assert not is_due(BackupView(runs=(), schedule="0 3 * * *"))
    assert not is_due(BackupView(runs=(), suspended=True))
    assert not is_due(BackupView(runs=(), stopped="Restore/r"))


def test_a_failure_names_the_last_good_backup() -> None:
    found = finding(BackupView((GOOD, BAD, ACTIVE), "0 3 * * *", last_good=TIME))
    assert (found.ok, found.reason) == (False, BackupReason.FAILED)
    assert "Fatal: wrong password" in found.message
    assert TIME in found.message


def test_a_backup_is_ready_while_the_next_one_runs() -> None:
    found = finding(BackupView((GOOD, ACTIVE), "0 3 * * *", last_good=TIME, snapshot="0123456789"))
    assert (found.ok, found.reason) == (True, BackupReason.GOOD)
    assert "snapshot 01234567" in found.message


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (BackupView((), "0 3 * * *"), BackupReason.NOT_YET),
        (BackupView((ACTIVE,)), BackupReason.RUNNING),
        (BackupView((), "0 3 * * *", suspended=True), BackupReason.SUSPENDED),
        (BackupView((), "0 3 * * *", stopped="Restore/r"), BackupReason.STOPPED),
    ],
)
def test_before_the_first_backup_the_condition_has_what_it_waits_for(
    view: BackupView, reason: BackupReason
) -> None:
    assert finding(view).reason is reason
