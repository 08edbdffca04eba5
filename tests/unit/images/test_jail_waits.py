"""What daemons of a jail wait for before they start."""

import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
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


KEY_A, KEY_B = '{"keys": [{"kid": "a"}]}', '{"keys": [{"kid": "a"}, {"kid": "b"}]}'


def sum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Mount:
    """A kubelet's folder of keys, and the copies that a daemon reads."""

    folder: Path
    copies: Path
    number: int = 0

    def show(self, **files: str) -> None:
        """Another generation of files, by their names without `slurm.`."""
        self.number += 1
        new = self.folder / f"..{self.number}"
        new.mkdir()
        for name, text in files.items():
            (new / f"slurm.{name}").write_text(text)
        put(self.folder, new.name)
        for name in ("slurm.key", "slurm.jwks"):
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to(f"..data/{name}")


@pytest.fixture
def mount(jail: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mount:
    monkeypatch.setenv("AUTH_TYPE", "auth/slurm")
    found = Mount(tmp_path / "mount", tmp_path / "auth")
    found.folder.mkdir()
    for variable, name in (("KEY", "slurm.key"), ("JWKS", "slurm.jwks")):
        monkeypatch.setenv(f"SLURM_SACK_{variable}", "")
        monkeypatch.setattr(jail, f"SLURM_{variable}", found.folder / name)
        monkeypatch.setattr(jail, f"SLURM_{variable}_COPY", found.copies / name)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")
def test_with_auth_slurm_a_daemon_has_its_own_copies_of_the_keys_and_waits_for_no_munge(
    jail: ModuleType, mount: Mount
) -> None:
    """Slurm rejects a key of others, or one that others can read."""
    mount.show(key="k" * 64)
    assert jail.prepare_auth(401) == ""
    copy, ring = mount.copies / "slurm.key", mount.copies / "slurm.jwks"
    assert os.environ["SLURM_SACK_KEY"] == str(copy)
    assert os.environ["SLURM_SACK_JWKS"] == str(ring)
    assert not ring.exists()
    mount.show(key="k" * 64, jwks=KEY_A)
    assert jail.prepare_auth(401) == sum_of(KEY_A)
    for path, text in ((copy, "k" * 64), (ring, KEY_A)):
        found = path.stat()
        assert (path.read_text(), found.st_uid, found.st_mode & 0o777) == (text, 401, 0o400)
    assert jail.auth_folder() == "/run/slurm"
    mount.show(key="k" * 64)
    assert jail.copy_keys(401) == ""
    assert not ring.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")
def test_keys_are_copied_before_their_digest_is_observed(jail: ModuleType, mount: Mount) -> None:
    """A kubelet has put others into place, or is about to."""
    mount.show(key="k" * 64, jwks=KEY_A)
    seen: list[tuple[str, str]] = []
    ring = mount.copies / "slurm.jwks"

    def observe(digest: str) -> None:
        seen.append((digest, ring.read_text()))

    jail.follow_keys(0, jail.copy_keys(0), observe, pause=0.001)
    until(lambda: seen)
    mount.show(key="k" * 64, jwks=KEY_B)
    until(lambda: seen[-1] == (sum_of(KEY_B), KEY_B))
    assert set(seen) == {(sum_of(KEY_A), KEY_A), (sum_of(KEY_B), KEY_B)}


def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        time.sleep(0.001)


def test_slurmctld_reports_keys_of_its_start_and_each_change(
    jail_slurmctld: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sidecar that reads the file has slurmctld reconfigure for a change alone."""
    report = tmp_path / "penstock-keys"
    monkeypatch.setattr(jail_slurmctld, "KEYS", report)
    jail_slurmctld.observe_keys("")
    assert not report.exists()
    jail_slurmctld.report_keys("one start")
    jail_slurmctld.observe_keys("one")
    assert report.read_text() == "one start\n"
    jail_slurmctld.observe_keys("other")
    assert report.read_text() == "other\n"
    assert report.stat().st_mode & 0o777 == 0o644
    jail_slurmctld.report_keys("")
    assert not report.exists()


def test_sackd_is_asked_until_it_has_read_other_keys_and_reports_them_in_a_rotation(
    jail: ModuleType,
    jail_login: ModuleType,
    clock: Clock,
    mount: Mount,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    mount.copies.mkdir()
    ring = mount.copies / "slurm.jwks"
    ring.write_text(KEY_B)
    monkeypatch.setattr(jail_login.jail, "SLURM_JWKS_COPY", ring)
    asked: list[int] = []

    def kill(_: int, number: int) -> None:
        asked.append(number)

    monkeypatch.setattr(jail_login.os, "kill", kill)
    keys = jail_login.SackdKeys("one", clock)
    keys.report()
    keys.observe("one")
    keys.moved()
    assert (asked, reports(capfd)) == ([], ["one"])
    keys.observe("other")
    keys.observe("other")
    assert (asked, reports(capfd)) == ([signal.SIGHUP], [])
    keys.moved()
    keys.observe("other")
    assert (len(asked), reports(capfd)) == (1, ["other"])
    clock.now += jail_login.REPORT_SECONDS
    keys.observe("other")
    assert reports(capfd) == ["other"]
    ring.write_text(KEY_A)
    clock.now += jail_login.REPORT_SECONDS
    keys.observe("other")
    assert reports(capfd) == []


def test_a_sackd_that_does_not_reconfigure_is_started_again(
    jail_login: ModuleType,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One that waits for a client takes no SIGHUP."""
    ended: list[str] = []

    def kill(*_: int) -> None:
        """Ignore the signal."""

    monkeypatch.setattr(jail_login.os, "kill", kill)
    monkeypatch.setattr(jail_login, "kill_sackd", lambda: ended.append("sackd"))
    keys = jail_login.SackdKeys("one", clock)
    keys.observe("other")
    keys.observe("other")
    assert ended == []
    clock.now += jail_login.ASK_SECONDS
    keys.observe("other")
    assert ended == ["sackd"]
    assert reports(capfd) == []
    assert keys.restarts()
    assert reports(capfd) == ["other"]


def reports(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The digests that were reported since the last call."""
    lines = capfd.readouterr().err.splitlines()
    return [one.removeprefix("penstock: sackd has the keys ") for one in lines if " keys " in one]


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
