import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from penstock.local import process
from penstock.local.process import Process


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


def test_a_command_name_with_parentheses_does_not_confuse() -> None:
    line = "7 (a) b (c) S 3 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
    assert process.parse_stat(line) == ("S", 3, 4711)


def test_a_running_process_is_alive_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    found = Process.of(sleeper.pid)
    assert found is not None
    assert found.alive
    assert found.signal(signal.SIGKILL)
    assert found.wait(10)
    assert not found.alive


def test_a_later_process_with_the_same_pid_is_not_touched(
    sleeper: subprocess.Popen[bytes],
) -> None:
    found = Process.of(sleeper.pid)
    assert found is not None
    earlier = Process(found.pid, found.start - 1)
    assert not earlier.alive
    assert not earlier.signal(signal.SIGKILL)
    assert earlier.wait(0)
    assert sleeper.poll() is None


def test_a_pid_file_of_a_gone_process_names_nobody(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    found = Process.of(sleeper.pid)
    assert found is not None
    process.save(tmp_path / "pid", found)
    assert process.load(tmp_path / "pid") == found
    process.save(tmp_path / "pid", Process(found.pid, found.start + 1))
    assert process.load(tmp_path / "pid") is None


@pytest.mark.parametrize("text", ["", "12", "x y"])
def test_a_broken_pid_file_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_text(text)
    assert process.load(tmp_path / "pid") is None


def test_children_are_found_by_name(sleeper: subprocess.Popen[bytes]) -> None:
    me = Process.of(os.getpid())
    assert me is not None
    assert me.children()["sleep"].pid == sleeper.pid
