"""The shell that stays in a container, here without one."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from e2e_kit.shell import Shell
from penstock.local.errors import LocalError


class Starts:
    """Shells of this machine, counted."""

    def __init__(self) -> None:
        self.made: list[subprocess.Popen[bytes]] = []

    def __call__(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        self.made.append(subprocess.Popen(["sh"], stdin=pipe, stdout=pipe, stderr=pipe))
        return self.made[-1]


@pytest.fixture
def starts() -> Starts:
    return Starts()


@pytest.fixture
def shell(starts: Starts) -> Generator[Shell]:
    shell = Shell(starts)
    yield shell
    shell.close()
    assert all(one.returncode is not None for one in starts.made)


@pytest.mark.parametrize("text", ["", "a", "a\n", "\n", "two\nlines\n\n", "ä $HOME `x` '\""])
def test_output_and_input_are_byte_for_byte(shell: Shell, text: str):
    assert shell.run(("printf", "%s", text)) == text
    assert shell.run(("cat",), text) == text


def test_one_shell_serves_all_commands(shell: Shell, starts: Starts):
    assert shell.run(("sh", "-c", "echo out; echo err >&2; read x; cd /")) == "out\n"
    assert len(shell.run(("head", "-c", "300000", "/dev/zero"))) == 300000
    assert len(starts.made) == 1


def test_a_command_that_fails_reports_its_output(shell: Shell, starts: Starts):
    with pytest.raises(LocalError, match=r"(?s)kubectl exec sh .*no good.*exit code 3"):
        shell.run(("sh", "-c", "echo no good >&2; exit 3"))
    assert shell.run(("echo", "well")) == "well\n"
    assert len(starts.made) == 1


def test_a_container_that_ended_has_a_new_shell_for_the_next_command(shell: Shell, starts: Starts):
    with pytest.raises(LocalError, match="sleep"):
        shell.run(("sh", "-c", "kill $PPID; sleep 5"))
    shell.run(("true",))
    starts.made[-1].kill()
    starts.made[-1].wait()
    assert shell.run(("echo", "again")) == "again\n"
    assert len(starts.made) == 3


def test_commands_at_once_do_not_wait_for_each_other(shell: Shell, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waits = threading.Thread(target=shell.run, args=(("cat", str(pipe)),))
    waits.start()
    shell.run(("sh", "-c", f"echo go on >{pipe}"))
    waits.join()


def test_a_shell_that_nobody_has_any_more_ends(starts: Starts):
    shell = Shell(starts)
    shell.run(("true",))
    del shell
    gc.collect()
    assert starts.made[0].returncode is not None
