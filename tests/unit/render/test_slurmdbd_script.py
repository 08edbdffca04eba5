"""The shell above slurmdbd, run for real beside stand-ins for slurmdbd and sacctmgr (D17, S169)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.render.parts.script import script
from support.volume import Volume

FATAL = "fatal: Could not open/read/parse slurmdbd.conf file"
SLURMDBD = """#!/usr/bin/env python3
# Takes connections on DbdPort unless $HOME/late is there; -u only reads. Notes what it is told.
import os, signal, socket, sys, time
if "-V" in sys.argv:
    # It reads its file first, and says nothing without one.
    conf = os.path.dirname(os.environ.get("SLURM_CONF", "")) + "/slurmdbd.conf"
    if not os.path.exists(conf) or os.stat(conf).st_mode & 0o77:
        sys.exit(1)
    print("slurm-wlm " + os.environ.get("VERSION", "26.05.1"))
    sys.exit(0)
home, conf = os.environ["HOME"], os.environ.get("SLURM_CONF", "")
folder = os.environ.get("SLURMDBD_ETC") or os.environ["SLURM_ETC"]
etc = os.path.dirname(conf) if conf else folder
text = open(etc + "/slurmdbd.conf").read()
def note(what):
    with open(home + "/calls", "a") as calls:
        calls.write(what + "\\n")
if "Bogus" in text:
    print("error: unrecognized key: Bogus\\n[2026-01-01T00:00:00] " + "%s", flush=True)
    sys.exit(1)
if "-u" in sys.argv:
    sys.exit(0)
if os.path.exists(home + "/says"):
    print(open(home + "/says").read(), flush=True)
def ends(*_):
    os.write(1, b"ended\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, ends)
late = os.path.exists(home + "/late")
note("start " + " ".join(sys.argv[1:]))
if not late:
    signal.signal(signal.SIGHUP, lambda *_: note("hup"))
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(os.environ["PORT"])))
    server.listen(64)
while True:
    time.sleep(60)
""".replace("%s", FATAL)
SACCTMGR = """#!/bin/sh
[ -e "$HOME/down" ] || exit 0
echo "sacctmgr: error: Unable to connect to database" >&2
exit 1
"""


class Pod:
    def __init__(self, root: Path) -> None:
        self.root, self.etc, self.state = root, root / "etc", root / "state"
        self.calls = root / "calls"
        self.calls.touch()
        self.volume = Volume(self.etc)
        (root / "bin").mkdir()
        for name, text in (("slurmdbd", SLURMDBD), ("sacctmgr", SACCTMGR)):
            path = root / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = root / "log"

    def conf(self, text: str) -> str:
        """Give it another file, as the kubelet does; returns the hash of it."""
        whole = f"DbdPort={self.port}\n{text}\n"
        self.volume.show({"slurmdbd.conf": whole, "jwt.key": "key"})
        return hashlib.sha256(f"key{whole}".encode()).hexdigest()

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        env = os.environ | {
            "HOME": str(self.root),
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "PORT": str(self.port),
            "SLURM_ETC": str(self.etc),
            "SLURMDBD_STATE": str(self.state),
            "SLURMDBD_TICK": "0.05",
            "SLURMDBD_CALM": "1",
            **more,
        }
        command = ["bash", "-c", script("slurmdbd"), "slurmdbd", *arguments]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, env=env, stdout=log, stderr=log, start_new_session=True
            )

    def said(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [one.removeprefix("penstock: ") for one in lines if one.startswith("penstock: ")]

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines()

    @property
    def ready(self) -> bool:
        return (self.state / "ready").exists()


def until(holds: Callable[[], bool], pod: Pod) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, (pod.log.read_text(), pod.called())
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.fixture
def running(pod: Pod) -> Iterator[subprocess.Popen[bytes]]:
    first = pod.conf("StoragePass=one")
    process = pod.start("-v")
    try:
        # It is ready a moment before it says so.
        until(lambda: "database ok" in pod.said(), pod)
        assert pod.ready
        assert pod.said() == [f"effective {first}", "database ok"]
        assert pod.called() == ["start -D -v"]
        yield process
    finally:
        end(process)


def test_nothing_that_slurmdbd_logs_passes_for_a_line_of_the_container(pod: Pod) -> None:
    """Its last words are there all the same when it ends, also by a signal to all processes."""
    forged = "penstock: effective forged"
    (pod.root / "says").write_text(f"no user x\n{forged}\n{'x' * 20000}{forged}\nlast words\n")
    first = pod.conf("StoragePass=one")
    process = pod.start()
    try:
        until(lambda: "database ok" in pod.said(), pod)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
    finally:
        end(process)
    assert [one for one in pod.said() if one.startswith("effective")] == [f"effective {first}"]
    lines = pod.log.read_text().splitlines()
    assert f" {forged}" in lines
    assert max(map(len, lines)) <= 8000
    assert "ended" in lines


def test_a_changed_file_is_taken_over_by_a_signal(
    pod: Pod, running: subprocess.Popen[bytes]
) -> None:
    second = pod.conf("StoragePass=two")
    until(lambda: f"effective {second}" in pod.said(), pod)
    until(lambda: pod.called() == ["start -D -v", "hup"], pod)
    assert running.poll() is None
    assert pod.ready


@pytest.mark.parametrize("version", ["24.11.5", "25.05.3"])
def test_an_older_one_is_started_again_for_it_as_a_signal_changes_no_password(
    pod: Pod, version: str
) -> None:
    """D17."""
    pod.conf("StoragePass=one")
    process = pod.start(VERSION=version)
    try:
        until(lambda: "database ok" in pod.said(), pod)
        second = pod.conf("StoragePass=two")
        until(lambda: f"effective {second}" in pod.said(), pod)
        until(lambda: pod.called() == ["start -D"] * 2, pod)
        until(lambda: pod.ready, pod)
        assert process.poll() is None
    finally:
        end(process)


def test_a_file_that_slurmdbd_cannot_read_never_reaches_it(
    pod: Pod, running: subprocess.Popen[bytes]
) -> None:
    bad = pod.conf("Bogus=1")
    until(lambda: any(one.startswith(f"refused {bad}: ") for one in pod.said()), pod)
    told = next(one for one in pod.said() if one.startswith("refused"))
    assert "unrecognized key: Bogus" in told
    assert FATAL in told
    assert pod.called() == ["start -D -v"]
    good = pod.conf("StoragePass=three")
    until(lambda: f"effective {good}" in pod.said(), pod)
    assert running.poll() is None


def test_a_lost_database_is_reported_once_and_makes_the_pod_unready_until_it_is_back(
    pod: Pod, running: subprocess.Popen[bytes]
) -> None:
    (pod.root / "down").touch()
    until(lambda: not pod.ready, pod)
    until(lambda: "database lost: error: Unable to connect to database" in pod.said(), pod)
    (pod.root / "down").unlink()
    until(lambda: pod.ready, pod)
    until(lambda: pod.said()[-1] == "database ok", pod)
    assert sum(1 for one in pod.said() if one.startswith("database lost")) == 1
    assert running.poll() is None


def test_a_slurmdbd_that_waits_for_its_database_is_started_again_with_another_file(
    pod: Pod,
) -> None:
    """It would end on a signal then."""
    (pod.root / "late").touch()
    pod.conf("StoragePass=wrong")
    process = pod.start()
    try:
        until(lambda: pod.called() == ["start -D"], pod)
        assert not pod.ready
        (pod.root / "late").unlink()
        right = pod.conf("StoragePass=right")
        until(lambda: pod.ready, pod)
        assert pod.called() == ["start -D", "start -D"]
        assert f"effective {right}" in pod.said()
        assert process.poll() is None
    finally:
        end(process)


def test_the_container_ends_with_slurmdbd_and_slurmdbd_with_the_container(
    pod: Pod, running: subprocess.Popen[bytes]
) -> None:
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=30) in (0, 128 + signal.SIGTERM)
    bad = pod.conf("Bogus=1")
    again = pod.start()
    assert again.wait(timeout=30) == 1
    assert f"effective {bad}" in pod.said()
    assert FATAL in pod.log.read_text()


@pytest.mark.parametrize("user", [pwd.getpwuid(os.getuid()).pw_name, str(os.getuid())])
def test_a_slurmdbd_of_another_user_reads_its_own_copies_of_the_files(pod: Pod, user: str) -> None:
    """S169: in a SlurmCluster the script is root's, and the kubelet's files are not slurmdbd's.

    Neither are they private, which slurmdbd 24.11 requires: the pod's group may read them.
    """
    copies = pod.root / "copies"
    first = pod.conf("StoragePass=one")
    process = pod.start(SLURMDBD_ETC=str(copies), SLURMDBD_USER=user, SLURMDBD_AUTH="auth/munge")
    try:
        until(lambda: "database ok" in pod.said(), pod)
        assert pod.said()[0] == f"effective {first}"
        assert "CredType=cred/munge" in (pod.state / "slurm.conf").read_text()
        bad = pod.conf("Bogus=1")
        until(lambda: any(one.startswith(f"refused {bad}: ") for one in pod.said()), pod)
        assert "Bogus" not in (copies / "slurmdbd.conf").read_text()
        second = pod.conf("StoragePass=two")
        until(lambda: f"effective {second}" in pod.said(), pod)
        assert "two" in (copies / "slurmdbd.conf").read_text()
        assert {one.name: stat.S_IMODE(one.stat().st_mode) for one in copies.iterdir()} == {
            "slurmdbd.conf": 0o600,
            "jwt.key": 0o600,
        }
    finally:
        end(process)
