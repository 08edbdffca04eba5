"""The kernel's limit on inotify instances during a run of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.inotify_limit import WANTED, raised_limit


def test_the_limit_is_raised_and_put_back_also_after_a_failure(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    seen: list[str] = []

    def run() -> None:
        with raised_limit(limit):
            seen.append(limit.read_text())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert seen == [f"{WANTED}\n"]
    assert limit.read_text() == "128\n"


def test_a_higher_limit_stays(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("8192\n")
    with raised_limit(limit):
        assert limit.read_text() == "8192\n"
    assert limit.read_text() == "8192\n"


def test_a_kernel_without_the_limit_is_left_alone(tmp_path: Path) -> None:
    with raised_limit(tmp_path / "absent" / "file"):
        pass
