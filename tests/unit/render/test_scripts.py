"""The shell that runs in the pods, run for real beside a stand-in for scontrol."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.render.script import script

REFUSED = "slurm_reconfigure error: Unspecified error"


class Pod:
    """/etc/slurm as the kubelet keeps it, scontrol's stand-in, and the side container."""

    def __init__(self, root: Path) -> None:
        self.etc, self.state, self.bin = root / "etc", root / "state", root / "bin"
        for directory in (self.etc, self.state, self.bin):
            directory.mkdir()
        self.message, self.answer = root / "message", root / "answer"
        self.generation = 0
        scontrol = self.bin / "scontrol"
        scontrol.write_text(
            f"#!/bin/sh\n[ -f {self.answer} ] || exit 0\ncat {self.answer}\nexit 1\n"
        )
        scontrol.chmod(0o755)
        (self.etc / "slurm.conf").symlink_to("..data/slurm.conf")
        self.write("first")

    def write(self, text: str) -> None:
        """Another generation of the volume, put in place at once as the kubelet does it."""
        self.generation += 1
        data = self.etc / f"..{self.generation}"
        data.mkdir()
        (data / "slurm.conf").write_text(text)
        link = self.etc / "..new"
        link.symlink_to(data.name)
        link.rename(self.etc / "..data")

    def refuse(self, answer: str) -> None:
        new = self.answer.with_suffix(".new")
        new.write_text(answer)
        new.rename(self.answer)

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", script("reconfigure")],
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "SLURM_ETC": str(self.etc),
                "RECONFIGURE_STATE": str(self.state),
                "TERMINATION_LOG": str(self.message),
                "RECONFIGURE_TICK": "0.02",
            },
            stderr=subprocess.PIPE,
            text=True,
        )

    def applied(self, text: str) -> bool:
        content = f"{hashlib.sha256(text.encode()).hexdigest()}  slurm.conf\n"
        wanted = hashlib.sha256(content.encode()).hexdigest()
        return (self.state / "applied").read_text() == wanted


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.fixture
def running(pod: Pod) -> Iterator[subprocess.Popen[str]]:
    process = pod.start()
    while not (pod.state / "applied").exists():
        assert process.poll() is None
    yield process
    process.kill()
    process.communicate()


def said(process: subprocess.Popen[str], words: str) -> str:
    """The next line with these words; fails when the process ends before."""
    assert process.stderr
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"ended without saying {words!r}")


def test_a_changed_file_makes_slurmctld_reconfigure(pod: Pod, running: subprocess.Popen[str]):
    assert pod.applied("first")
    pod.write("second")
    said(running, "runs with the new configuration")
    assert pod.applied("second")


def test_a_change_while_nobody_looked_is_taken_up_at_the_next_start(pod: Pod):
    (pod.state / "applied").write_text("something older")
    process = pod.start()
    said(process, "runs with the new configuration")
    process.kill()
    process.communicate()
    assert pod.applied("first")


def test_a_refusal_is_reported_once_and_the_correction_is_taken_at_once(
    pod: Pod, running: subprocess.Popen[str]
):
    pod.refuse(REFUSED)
    pod.write("bad")
    assert "refused the configuration" in said(running, "refused")
    assert running.wait() == 1
    message = pod.message.read_text()
    assert hashlib.sha256(b"bad").hexdigest() in message
    assert REFUSED in message
    assert pod.applied("first")

    again = pod.start()
    assert "next try in 4 s" in said(again, "refused")
    assert again.poll() is None
    pod.answer.unlink()
    pod.write("good")
    said(again, "runs with the new configuration")
    again.kill()
    again.communicate()
    assert pod.applied("good")


def test_what_only_slurmctld_knows_is_asked_of_a_start_beside_it(
    pod: Pod, running: subprocess.Popen[str]
):
    slurmctld, seen = pod.bin / "slurmctld", pod.bin / "seen"
    slurmctld.write_text(
        f'#!/bin/sh\ncp "$4" {seen}\necho "[2026-01-01T00:00:00.123] debug: starts"\n'
        'echo "[2026-01-01T00:00:00.123] error: Invalid node names in partition x" >&2\n'
        'echo "slurmctld: fatal: read_slurm_conf failed"\nexit 1\n'
    )
    slurmctld.chmod(0o755)
    pod.refuse(REFUSED)
    pod.write("SlurmctldPort=6817\n AccountingStorageHost=db\nStateSaveLocation=/real\nbad\n")
    said(running, "refused the configuration")
    assert running.wait() == 1
    assert pod.message.read_text().endswith(
        "keeps the one it has: debug: starts\nerror: Invalid node names in partition x\n"
        "fatal: read_slurm_conf failed"
    )
    lines = seen.read_text().splitlines()
    assert lines[0] == "bad"
    assert lines[-2:] == ["SlurmctldPort=16817", "AuthInfo=disable_sack"]
    assert not any("/real" in line or "Accounting" in line for line in lines)
    assert not (pod.state / "trial").exists()


def test_a_slurmctld_that_is_away_is_no_refusal(pod: Pod, running: subprocess.Popen[str]):
    pod.refuse("slurm_reconfigure error: Unable to contact slurm controller (connect failure)")
    pod.write("second")
    said(running, "could not be asked")
    pod.answer.unlink()
    said(running, "runs with the new configuration")
    assert not pod.message.exists()


def test_the_side_container_ends_when_asked(running: subprocess.Popen[str]):
    running.terminate()
    assert running.wait() == 0


def test_log_lines_come_out_of_the_pipe_and_go_on_after_the_daemon_restarts(tmp_path: Path):
    log = tmp_path / "slurmctld.log"
    process = subprocess.Popen(
        ["sh", "-c", script("logfile")],
        env={"PATH": os.environ["PATH"], "SOCKET": str(log)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    while not log.is_fifo():
        assert process.poll() is None
    for line in ("one\n", "two\n"):
        with log.open("a") as daemon:
            daemon.write(line)
        assert process.stdout.readline() == line
    process.terminate()
    assert process.wait() == 0
    process.communicate()


@pytest.mark.parametrize(
    ("state", "updates"), [("IDLE", 1), ("ALLOCATED+DRAIN", 0), ("IDLE+DRAIN+DYNAMIC_NORM", 0)]
)
def test_a_worker_that_goes_is_set_down_unless_it_drains(state: str, updates: int, tmp_path: Path):
    scontrol = tmp_path / "scontrol"
    calls = tmp_path / "calls"
    calls.touch()
    scontrol.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n'
        f'[ "$1" = show ] && printf "NodeName=x\\n   State={state} Reason=DRAIN\\n"\nexit 0\n'
    )
    scontrol.chmod(0o755)
    subprocess.run(
        ["sh", "-c", script("prestop")],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )
    lines = [line for line in calls.read_text().splitlines() if line.startswith("update")]
    assert len(lines) == updates
    if updates:
        assert lines[0].endswith("state=down reason=slurm-operator: Pod is terminating")


@pytest.mark.parametrize("name", ["reconfigure", "logfile", "initconf", "prestop"])
def test_kubernetes_expands_nothing_in_the_scripts(name: str):
    assert "$$" not in script(name)
