"""What daemons of a jail wait for before they start."""

import hashlib
import os
import signal
import socket
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILES = {"cgroup.conf": "CgroupPlugin=disabled\n", "slurm.conf": "ClusterName=a\n"}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def write(folder: Path, name: str, text: str) -> None:
    new = folder / f".{name}.new"
    new.write_text(text)
    new.rename(folder / name)


def write_manifest(folder: Path) -> None:
    lines = [f"{hashlib.sha256(t.encode()).hexdigest()}  {n}\n" for n, t in FILES.items()]
    write(folder, ".penstock-files", "".join(lines))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def configuration(jail: ModuleType, clock: Clock, tmp_path: Path) -> Any:
    return jail.Configuration(tmp_path, clock)


def test_a_configuration_is_complete_when_it_matches_its_manifest(
    configuration: Any, tmp_path: Path
) -> None:
    """At once; while one of its files is another's it is not, nor without slurm.conf."""
    assert not configuration.is_complete()
    write(tmp_path, "cgroup.conf", FILES["cgroup.conf"])
    write_manifest(tmp_path)
    assert not configuration.is_complete()
    write(tmp_path, "slurm.conf", "ClusterName=older\n")
    assert not configuration.is_complete()
    write(tmp_path, "slurm.conf", FILES["slurm.conf"])
    assert configuration.is_complete()
    write(tmp_path, "users.conf", "another's")
    assert configuration.is_complete()


def test_without_a_manifest_nothing_changes_for_two_seconds(
    configuration: Any, clock: Clock, tmp_path: Path
) -> None:
    write(tmp_path, "slurm.conf", "include /etc/slurm/base\n")
    assert not configuration.is_complete()
    clock.now += 1.9
    write(tmp_path, "base", "ClusterName=a\n")
    assert not configuration.is_complete()
    clock.now += 1.9
    assert not configuration.is_complete()
    clock.now += 0.2
    assert configuration.is_complete()


def test_files_that_stay_different_do_not_block_for_ever(
    configuration: Any, clock: Clock, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "slurm.conf", "ClusterName=by-hand\n")
    write_manifest(tmp_path)
    assert not configuration.is_complete()
    clock.now += 29
    assert not configuration.is_complete()
    clock.now += 2
    assert configuration.is_complete()
    assert "differ from .penstock-files" in capfd.readouterr().err


@pytest.mark.parametrize("marker", ["etc/soperator-jail-populated", ".populated"])
def test_a_jail_is_filled_when_it_is_marked(jail: ModuleType, tmp_path: Path, marker: str) -> None:
    (tmp_path / "etc").mkdir()
    assert not jail.is_filled(tmp_path)
    (tmp_path / marker).touch()
    assert jail.is_filled(tmp_path)


def test_without_a_jail_nothing_is_filled_and_the_files_of_a_kubelet_are_complete(
    jail: ModuleType, configuration: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jail, "JAIL", tmp_path / "jail")
    assert jail.has_jail()
    monkeypatch.setenv("JAIL_MODE", "None")
    assert not jail.has_jail()
    jail.wait_until_filled()
    jail.use_own_root()
    jail.use_own_root()
    assert (tmp_path / "jail/home").is_dir()
    assert not configuration.is_complete()
    write(tmp_path, "slurm.conf", "ClusterName=a\n")
    assert configuration.is_complete()


def test_a_process_learns_of_each_change_of_a_kubelets_files_and_of_nothing_else(
    jail: ModuleType, tmp_path: Path
) -> None:
    """A kubelet's folder is a link that it renames into place; it may be away for a moment."""
    signals = threading.Semaphore(0)

    def count(number: int, frame: object) -> None:
        del number, frame
        signals.release()

    put(tmp_path, "..1")
    before = signal.getsignal(signal.SIGHUP)
    try:
        jail.follow_configuration(tmp_path, 0.001)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.signal(signal.SIGHUP, count)
        assert not signals.acquire(timeout=0.05)
        put(tmp_path, "..2")
        assert signals.acquire(timeout=10)
        (tmp_path / "..data").unlink()
        assert not signals.acquire(timeout=0.05)
        put(tmp_path, "..2")
        assert not signals.acquire(timeout=0.05)
        put(tmp_path, "..3")
        assert signals.acquire(timeout=10)
    finally:
        put(tmp_path, "..3")
        signal.signal(signal.SIGHUP, signal.SIG_IGN if before is None else before)


def put(folder: Path, generation: str) -> None:
    new = folder / "..data_tmp"
    new.symlink_to(generation)
    new.rename(folder / "..data")


def test_munge_is_there_when_its_socket_is(
    jail: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "munge.socket"
    assert jail.munge_socket() == Path("/run/munge/munge.socket.2")
    monkeypatch.setenv("MUNGE_SOCKET_FILE", str(path))
    assert jail.munge_socket() == path
    assert not jail.is_socket(path)
    path.touch()
    assert not jail.is_socket(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert jail.is_socket(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")
def test_with_auth_slurm_a_daemon_has_its_own_copy_of_the_key_and_waits_for_no_munge(
    jail: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm rejects a key of others, or one that others can read."""
    monkeypatch.setenv("AUTH_TYPE", "auth/slurm")
    monkeypatch.setenv("SLURM_SACK_KEY", "")
    key, copy = tmp_path / "slurm.key", tmp_path / "auth/slurm.key"
    key.write_bytes(b"k" * 64)
    monkeypatch.setattr(jail, "SLURM_KEY", key)
    monkeypatch.setattr(jail, "SLURM_KEY_COPY", copy)
    jail.prepare_auth(401)
    assert os.environ["SLURM_SACK_KEY"] == str(copy)
    found = copy.stat()
    assert (copy.read_bytes(), found.st_uid, found.st_mode & 0o777) == (b"k" * 64, 401, 0o400)
    assert jail.auth_folder() == "/run/slurm"


@pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")
def test_slurmctld_gets_the_key_and_its_state(
    jail: ModuleType, jail_slurmctld: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld of another image ran as root. Links are given, not what they lead to."""
    monkeypatch.setattr(jail_slurmctld, "USER", 401)
    spool, key, outside = tmp_path / "spool", tmp_path / "key", tmp_path / "outside"
    (spool / "hash.1").mkdir(parents=True)
    (spool / "hash.1/job_state").touch()
    outside.touch()
    (spool / "link").symlink_to(outside)
    key.write_bytes(b"one")
    for _ in range(2):
        jail_slurmctld.give_to_slurm(spool)
        jail.copy_for(401, key, spool / "jwt_hs256.key")
        key.write_bytes(b"two")
    owners = {path.name: path.lstat().st_uid for path in (spool, *spool.rglob("*"))}
    assert set(owners.values()) == {401}, owners
    assert outside.stat().st_uid == 0
    assert (spool / "jwt_hs256.key").read_bytes() == b"two"
    assert (spool / "jwt_hs256.key").stat().st_mode & 0o777 == 0o400


def test_sshd_runs_with_what_the_jail_needs(jail_sshd: ModuleType) -> None:
    """First values count: a configuration cannot take PAM or the root away."""
    command = jail_sshd.command(Path("/mnt/config"), ["-o", "Port=2222"])
    text = " ".join(command)
    assert command[0] == "setpriv"
    assert "-all,+chown" in text
    assert "sys_admin" not in text
    assert text.endswith(
        "/usr/sbin/sshd -D -e -f /mnt/config -o UsePAM=yes -o ChrootDirectory=/mnt/jail "
        "-o PerSourcePenalties=no -o Port=2222"
    )
