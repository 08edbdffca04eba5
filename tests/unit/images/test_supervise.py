"""Process 1 of the images, run as a process with shell scripts for daemons."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
# Starts its successor, announces it, leaves; the successor lives while the file `alive` is there.
REEXEC = """
import os, socket, time
if os.fork():
    time.sleep(60)
successor = os.getpid()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(f"READY=1\\nMAINPID={successor}".encode(), os.environ["NOTIFY_SOCKET"])
os.kill(os.getppid(), 9)
open("moved", "w").close()
while os.path.exists("alive"):
    time.sleep(0.01)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start the supervisor in `tmp_path`, with programs given as `Program(...)` source."""

    def start(*programs: str) -> subprocess.Popen[str]:
        code = (
            f"import os, sys; sys.path.insert(0, {str(ENTRYPOINTS)!r})\n"
            "from supervise import Program, always, never, supervise\n"
            "def sh(name, text, **more): return Program(name, ['/bin/sh', '-c', text], **more)\n"
            f"sys.exit(supervise([{', '.join(programs)}], 0.3, 0.05))"
        )
        command = [sys.executable, "-B", "-c", code]
        return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    return start


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    try:
        _, said = process.communicate(timeout=20)
    finally:
        process.kill()
    return process.returncode, said


def until(path: Path) -> None:
    limit = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < limit, f"{path.name} did not appear"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("echo fatal: bad file >&2; exit 3", 3, "fatal: bad file\npenstock: d ended with status 3"),
        ("kill -9 $$", 137, "d was killed by signal 9"),
        ("exit 0", 0, "d ended with status 0"),
    ],
)
def test_the_container_ends_with_its_daemon(start: Start, script: str, status: int, words: str):
    code, said = finish(start(f"sh('d', {script!r})"))
    assert code == status
    assert words in said


def test_a_missing_daemon_is_named(start: Start):
    code, said = finish(start("Program('d', ['/nowhere/slurmctld'])"))
    assert code == 127
    assert "d could not be started" in said
    assert "/nowhere/slurmctld" in said


def test_a_daemon_is_followed_to_the_process_it_announces(start: Start, tmp_path: Path):
    (tmp_path / "alive").touch()
    process = start(f"Program('d', [{sys.executable!r}, '-c', {REEXEC!r}])")
    until(tmp_path / "moved")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.3)
    (tmp_path / "alive").unlink()
    code, said = finish(process)
    assert code == 1, "the end of a process that is not a child counts as a failure"
    assert said.count("penstock:") == 1


def test_a_stop_reaches_the_daemon_and_is_no_failure(start: Start, tmp_path: Path):
    process = start(
        """sh('d', "trap 'echo saved; exit 0' TERM; touch up; while :; do sleep 0.02; done")"""
    )
    until(tmp_path / "up")
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (0, "")


def test_a_hangup_is_handed_to_the_daemon_alone(start: Start, tmp_path: Path):
    loop = "trap 'touch hup-{0}; exit 5' HUP; touch up-{0}; while :; do sleep 0.02; done"
    main, helper = loop.format("main"), loop.format("helper")
    process = start(f'sh("d", "{main}")', f'sh("h", "{helper}", restart=always)')
    for name in ("up-main", "up-helper"):
        until(tmp_path / name)
    process.send_signal(signal.SIGHUP)
    assert finish(process)[0] == 5
    assert (tmp_path / "hup-main").exists()
    assert not (tmp_path / "hup-helper").exists()


def test_a_hangup_reaches_the_daemon_that_asks_for_it(start: Start, tmp_path: Path):
    """A helper that reads keys again, beside sshd, whose sessions would end."""
    loop = "trap 'touch hup-{0}; exit 5' HUP; touch up-{0}; while :; do sleep 0.02; done"
    main = "touch up-main; until test -e hup-helper; do sleep 0.02; done; exit 4"
    helper = loop.format("helper")
    process = start(
        f"sh('d', {main!r}, is_signalled=False)",
        f"sh('h', {helper!r}, restart=always, is_signalled=True)",
    )
    for name in ("up-main", "up-helper"):
        until(tmp_path / name)
    process.send_signal(signal.SIGHUP)
    assert finish(process)[0] == 4


def test_a_helper_is_started_again(start: Start, tmp_path: Path):
    helper = "test -e first && touch second || touch first; exit 1"
    process = start(
        "sh('d', 'while ! test -e second; do sleep 0.02; done; exit 4')",
        f"sh('h', {helper!r}, restart=always)",
    )
    until(tmp_path / "second")
    assert finish(process)[0] == 4


def test_a_daemon_with_work_is_started_again_and_without_is_not(start: Start, tmp_path: Path):
    (tmp_path / "work").touch()
    script = "test -e once && rm work; touch once; kill -9 $$"
    process = start(f"sh('d', {script!r}, restart=lambda: os.path.exists('work'))")
    code, said = finish(process)
    assert code == 137
    assert said.count("killed by signal 9") == 2


def test_what_ignores_a_stop_does_not_delay_a_failed_container(start: Start, tmp_path: Path):
    stubborn = "trap '' TERM; touch up; while :; do sleep 0.1; done"
    process = start(
        "sh('d', 'while ! test -e up; do sleep 0.02; done; exit 6')",
        f'sh("h", "{stubborn}", restart=always)',
    )
    assert finish(process)[0] == 6


def test_a_signal_after_its_end_adds_nothing_to_the_log(tmp_path: Path):
    """S131: the last line of the log is the cause of the end."""
    code = (
        f"import os, signal, sys; sys.path.insert(0, {str(ENTRYPOINTS)!r})\n"
        "from supervise import Program, supervise\n"
        "status = supervise([Program('d', ['/bin/sh', '-c', 'kill -9 $$'])], 0.3, 0.05)\n"
        "os.kill(os.getpid(), signal.SIGCHLD)\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-B", "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (137, "penstock: d was killed by signal 9\n")
