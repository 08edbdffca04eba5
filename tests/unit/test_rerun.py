"""Which files of tests have a second try."""

from __future__ import annotations

from pathlib import Path

import pytest

import rerun

LIVE = "tests/e2e/test_backups.py::test_a"
API = "tests/api/test_two_apis.py::test_b[x::y]"


def test_files_on_a_real_api_server_or_node_run_again() -> None:
    assert rerun.files_again([LIVE, API, LIVE + "2"]) == [
        "tests/api/test_two_apis.py",
        "tests/e2e/test_backups.py",
    ]


def test_one_test_without_a_node_leaves_no_second_try() -> None:
    assert rerun.files_again([LIVE, "tests/unit/test_rerun.py::test_c"]) == []


def test_many_failing_files_are_no_accident() -> None:
    assert rerun.files_again(f"tests/e2e/test_{n}.py::test" for n in range(rerun.MOST + 1)) == []


@pytest.mark.parametrize(("second", "status"), [("1", 0), ("0", 1)])
def test_a_file_that_fails_twice_fails_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    second: str,
    status: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    folder = tmp_path / "tests" / "e2e"
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_luck.py").write_text(
        "from pathlib import Path\n"
        "def test_luck():\n"
        "    seen = Path('seen')\n"
        f"    lucky = seen.exists() and {second}\n"
        "    seen.touch()\n"
        "    assert lucky\n"
    )
    assert rerun.main(["-q", "tests"]) == status
    said = capfd.readouterr().out
    assert ("Failed once and passed" in said) is (status == 0)
