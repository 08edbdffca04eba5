"""Pairs of Kubernetes and Slurm: what is run, kept, resumed and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.local import versions as kubernetes
from penstock.local.recipes import RELEASES
from versions import __main__ as command
from versions import page, pairs, recorder, results
from versions.results import Result

PAIR = pairs.parse("1.35/26.05")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results are kept elsewhere."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


def record(expected: list[str], ended: dict[str, str]) -> None:
    """Tests that a run expects, and how some of them end."""
    one = recorder.Recorder(PAIR, "abc", {"a.py", "b.py"})
    one.expect(expected)
    for nodeid, outcome in ended.items():
        for when in ("setup", "call", "teardown"):
            one.report(report(nodeid, when, outcome if when == "call" else "passed"))


def report(nodeid: str, when: str, outcome: str) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", None, ""), {}, outcome, None, when)  # type: ignore[arg-type]


def test_each_kubernetes_runs_with_the_latest_slurm_and_the_oldest_slurm_with_one() -> None:
    run = {(one.kubernetes, one.slurm) for one in pairs.PAIRS}
    assert {minor for minor, _ in run} == set(kubernetes.RELEASES)
    assert {slurm for _, slurm in run} == {one.tag for one in RELEASES}
    assert len(run) == len(kubernetes.RELEASES) + 1


def test_every_group_of_scenarios_has_a_file() -> None:
    files = pairs.files()
    assert {"tests/e2e/test_quickstart.py", "tests/e2e/test_slurmcluster.py"} <= set(files)
    assert not [one for one in files if not (pairs.ROOT / one).is_file()]


def test_a_file_is_kept_once_its_last_test_ended_and_then_not_run_again(folder: Path) -> None:
    tests = ["a.py::one", "a.py::two", "b.py::one", "b.py::two"]
    record(tests, {"a.py::one": "passed", "a.py::two": "skipped", "b.py::one": "passed"})
    assert [one.name for one in folder.iterdir()] == ["kubernetes-1.35-slurm-26.05.toml"]
    kept = results.load(PAIR)
    assert (kept["a.py"].passed, kept["a.py"].skipped, kept["a.py"].commit) == (1, 1, "abc")
    assert results.left(["a.py", "b.py", "c.py"], kept) == ["b.py", "c.py"]


def test_a_file_of_other_tests_is_not_kept() -> None:
    record(["c.py::one"], {"c.py::one": "passed"})
    assert results.load(PAIR) == {}


def test_a_file_with_a_failed_test_is_left() -> None:
    record(["a.py::one"], {"a.py::one": "failed"})
    assert results.left(["a.py"], results.load(PAIR)) == ["a.py"]


def test_a_setup_that_fails_counts_as_its_test() -> None:
    one = recorder.Recorder(PAIR, "abc", {"a.py", "b.py"})
    one.expect(["a.py::one"])
    one.report(report("a.py::one", "setup", "failed"))
    one.report(report("a.py::one", "teardown", "passed"))
    assert results.load(PAIR)["a.py"].failed == 1


def test_the_table_counts_files_of_the_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "files", lambda: ["a.py", "b.py"])
    found = {"a.py": Result("2026-11-28", "abc", 3, 1), "gone.py": Result("2026-11-20", "a", 9, 9)}
    results.save(PAIR, found)
    row = next(line for line in page.table().splitlines() if "1.35.4" in line)
    assert row == "| 1.35.4 | 26.05 | 2026-11-28 | 1 of 2 | 3 | 1 | 0 |"


@pytest.mark.parametrize("pair", ["1.32/26.05", "1.34/25.11", "1.34", "latest/26.05", ""])
def test_a_pair_that_is_not_run_is_rejected_with_the_table(
    pair: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([pair]) == 2
    said = capsys.readouterr().err
    assert f"{pair} is none of the pairs 1.33/26.05," in said
    assert "| 1.36.3 | 26.05 | not yet |" in said
