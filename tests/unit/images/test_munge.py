"""The entry point of the munge image, with programs that write down how they are called."""

import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.slurm.auth.key_rotation import named

PROGRAM = Path(__file__).parents[3] / "images/entrypoints/munge"
SHIMS = {
    # Without the owners: no user munge is needed to run these tests.
    "install": 'set -- $(echo "$@" | sed "s/-[og] munge//g"); exec "$REAL" "$@"',
    "setpriv": 'printf "%s\\n" "$@" >"$LOG"',
    "id": "echo ${USER_ID:-0}",
}


def shown(key: bytes) -> str:
    """The line by which the operator reads which key munged has."""
    return f"munge: munged has the key {named(key)}\n"


@dataclass(frozen=True)
class Container:
    folder: Path

    @property
    def key(self) -> Path:
        return self.folder / "etc/munge.key"

    @property
    def socket(self) -> Path:
        return self.folder / "run/socket"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "REAL": "/usr/bin/install",
            "LOG": str(self.folder / "log"),
            "MUNGE_KEY_SOURCE": str(self.folder / "secret/munge.key"),
            "MUNGE_KEY_FILE": str(self.key),
            "MUNGE_SOCKET_FILE": str(self.socket),
            "MUNGE_PID_FILE": str(self.folder / "run/pid"),
            "MUNGE_FOLLOW_KEY": "0",
            **more,
        }

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(PROGRAM), *arguments],
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", str(PROGRAM)], env=self.environment(**more), stderr=subprocess.PIPE, text=True
        )

    def program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def until_called(self, times: int) -> None:
        until = time.monotonic() + 10
        while not (self.folder / "log").exists() or len(self.called()) < times:
            assert time.monotonic() < until
            time.sleep(0.01)

    def called(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    for name in ("bin", "run", "secret/..data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "secret/..data/munge.key").write_bytes(bytes(range(64)))
    (tmp_path / "secret/munge.key").symlink_to("..data/munge.key")
    for name, script in SHIMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return Container(tmp_path)


def test_munged_gets_a_copy_of_the_key(container: Container) -> None:
    """munged rejects symbolic links, which the files of each Secret's mount are."""
    done = container.run("--benchmark")
    assert (done.returncode, done.stderr) == (0, shown(bytes(range(64))))
    assert not container.key.is_symlink()
    assert container.key.read_bytes() == bytes(range(64))
    assert container.key.stat().st_mode & 0o777 == 0o400
    assert container.socket.parent.stat().st_mode & 0o777 == 0o755
    called = container.called()
    assert called[:3] == ["--reuid=munge", "--regid=munge", "--clear-groups"]
    assert called[called.index("munged") + 1 :] == [
        "--foreground",
        f"--key-file={container.key}",
        f"--socket={container.socket}",
        f"--pid-file={container.folder}/run/pid",
        "--num-threads=10",
        "--benchmark",
    ]


def test_a_restart_takes_the_present_key_and_no_old_socket(container: Container) -> None:
    container.run()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(container.socket))
    (container.folder / "secret/..data/munge.key").write_bytes(b"x" * 32)
    assert container.run(MUNGE_NUM_THREADS="3").returncode == 0
    assert not container.socket.exists()
    assert container.key.read_bytes() == b"x" * 32
    assert "--num-threads=3" in container.called()


def test_a_key_as_long_as_those_of_soperator_is_taken(container: Container) -> None:
    """D81: munged itself has no upper limit."""
    (container.folder / "secret/..data/munge.key").write_bytes(b"x" * 1026)
    assert container.run().returncode == 0
    assert container.key.read_bytes() == b"x" * 1026


@pytest.mark.parametrize("size", [0, 31])
def test_a_key_that_munge_would_reject_is_named(container: Container, size: int) -> None:
    (container.folder / "secret/..data/munge.key").write_bytes(bytes(size))
    done = container.run()
    assert done.returncode == 1
    assert f"has {size} bytes, and munge takes 32 or more" in done.stderr
    assert not (container.folder / "log").exists()


def test_an_absent_key_is_named(container: Container) -> None:
    (container.folder / "secret/munge.key").unlink()
    done = container.run()
    assert done.returncode == 1
    assert done.stderr.endswith("is absent: mount the Secret with munge.key there\n")


def test_a_container_without_root_runs_munged_as_its_own_user(container: Container) -> None:
    """slurmctld's pod is not to have a container of root."""
    container.program("munged", 'printf "%s\\n" "$@" >"$LOG"')
    done = container.run(USER_ID="401")
    assert (done.returncode, done.stderr) == (0, shown(bytes(range(64))))
    assert container.key.read_bytes() == bytes(range(64))
    assert container.key.stat().st_mode & 0o777 == 0o400
    assert {"--force", f"--key-file={container.key}"} <= set(container.called())


def test_a_container_that_cannot_write_its_key_names_the_folder(container: Container) -> None:
    (container.folder / "file").touch()
    done = container.run(USER_ID="401", MUNGE_KEY_FILE=str(container.folder / "file/munge.key"))
    assert done.returncode == 1
    assert "uid 401 cannot write to" in done.stderr


def test_munged_starts_again_with_a_changed_key_and_keeps_it_when_the_next_is_too_short(
    container: Container,
) -> None:
    source = container.folder / "secret/..data/munge.key"
    container.program("setpriv", 'echo start >>"$LOG"; exec sleep 60')
    process = container.start(MUNGE_FOLLOW_KEY="0.02")
    assert process.stderr is not None
    try:
        container.until_called(1)
        source.write_bytes(b"x" * 32)
        assert any("changed; munged starts again" in line for line in process.stderr)
        assert shown(b"x" * 32) in process.stderr
        container.until_called(2)
        assert container.key.read_bytes() == b"x" * 32
        source.write_bytes(b"y" * 31)
        assert any("has 31 bytes" in line for line in process.stderr)
        assert container.key.read_bytes() == b"x" * 32
        assert len(container.called()) == 2
    finally:
        process.terminate()
        with process:
            assert process.wait(10) == 143


def test_munged_follows_the_key_unless_it_is_not_to(container: Container) -> None:
    """S163: pods of a SlurmCluster have no variable for it."""
    container.program("setpriv", 'echo start >>"$LOG"; exec sleep 60')
    environment = container.environment()
    del environment["MUNGE_FOLLOW_KEY"]
    process = subprocess.Popen(["sh", str(PROGRAM)], env=environment)
    try:
        container.until_called(1)
        (container.folder / "secret/..data/munge.key").write_bytes(b"x" * 32)
        container.until_called(2)
        assert container.key.read_bytes() == b"x" * 32
    finally:
        process.terminate()
        assert process.wait(10) == 143
