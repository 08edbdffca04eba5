"""What daemons say is shown, kept by unit, and served by `journalctl`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
SUPERVISE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import journal
journal.KEPT_BYTES = 1000
from supervise import Program, supervise
def sh(name, text): return Program(name, ["/bin/sh", "-c", text])
sys.exit(supervise([sh("sackd", sys.argv[3]), sh("sshd", sys.argv[4])], 0.3, 0.05,
    journal=Path(sys.argv[2])))
"""
READ = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from journalctl import main
sys.exit(main(sys.argv[3:], Path(sys.argv[2])))
"""

Journalctl = Callable[..., str]


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-B", "-c", code, str(ENTRYPOINTS), *map(str, arguments)]


@pytest.fixture
def journalctl(tmp_path: Path) -> Journalctl:
    def run(*options: str) -> str:
        command = python(READ, tmp_path / "journal", *options)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return run


def supervised(tmp_path: Path, sackd: str, sshd: str) -> str:
    """What the container's log has in the end."""
    command = python(SUPERVISE, tmp_path / "journal", sackd, sshd)
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == ""
    return done.stderr


def test_output_of_daemons_is_in_the_log_and_by_unit_in_the_journal(
    tmp_path: Path, journalctl: Journalctl
) -> None:
    said = supervised(
        tmp_path,
        f"echo out; echo err >&2; until [ -e {tmp_path}/said ]; do sleep 0.02; done; printf last",
        f"echo listening; touch {tmp_path}/said; sleep 60",
    )
    lines = said.splitlines()
    assert sorted(lines[:3]) == ["err", "listening", "out"]
    assert lines[3:] == ["penstock: sackd ended with status 0", "last"]
    assert journalctl("-u", "sackd", "-o", "cat") == "out\nerr\nlast\n"
    assert journalctl("-u", "ssh.service", "-o", "cat") == "listening\n"
    assert journalctl("-n", "1", "-o", "cat", "--no-pager") == "last\n"
    assert sorted(journalctl("-xe", "-o", "cat").splitlines()) == sorted([*lines[:3], "last"])
    assert journalctl("-r", "-u", "sackd", "-o", "cat") == "last\nerr\nout\n"
    stamped = journalctl("-u", "sshd").split(maxsplit=5)
    assert stamped[4].startswith("sshd[")
    assert stamped[5] == "listening\n"
    assert journalctl("-u", "sssd") == "-- No entries --\n"


def test_only_the_last_of_a_daemon_with_much_output_is_kept(
    tmp_path: Path, journalctl: Journalctl
) -> None:
    """And all of it is in the container's log."""
    said = supervised(tmp_path, "for i in $(seq 500); do echo line $i; sleep 0; done", "sleep 60")
    assert said.splitlines()[:500] == [f"line {number}" for number in range(1, 501)]
    kept = journalctl("-o", "cat").splitlines()
    assert kept == [f"line {number}" for number in range(501 - len(kept), 501)]
    size = sum(path.stat().st_size for path in (tmp_path / "journal").iterdir())
    assert size < 20_000


def test_the_journal_is_followed_into_the_next_file(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    path = folder / "slurmd.log"
    path.write_text(f"{time.time()} 7 old\n{time.time()} 7 first\n")
    command = python(READ, folder, "-fn1", "-u", "slurmd", "-o", "cat")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        try:
            assert reader.stdout.readline() == "first\n"
            with path.open("a") as file:
                file.write(f"{time.time()} 7 second\n")
            path.replace(folder / "slurmd.log.1")
            path.write_text(f"{time.time()} 7 third\n")
            assert reader.stdout.readline() == "second\n"
            assert reader.stdout.readline() == "third\n"
        finally:
            reader.send_signal(signal.SIGKILL)


def test_an_option_that_is_not_served_is_rejected(tmp_path: Path) -> None:
    command = python(READ, tmp_path, "--vacuum-size=1")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--vacuum-size" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_only_root_reads_it(tmp_path: Path) -> None:
    supervised(tmp_path, "echo secret", "sleep 60")
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700
