"""The program of Backups and Restores, with restic or a stand-in of it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.local import debian
from penstock.local.errors import LocalError
from penstock.render.nebius.backup import job
from support.nebius_clusters import CURRENT, of_shape
from unit.images.conftest import ENTRYPOINTS
from unit.render.nebius.test_golden import BACK, NIGHTLY

WITHOUT_CHECKS = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import backup
backup.PARTS, backup.MESSAGE = Path({parts!r}), Path({message!r})
backup.main(sys.argv[1:])
"""


@pytest.fixture(scope="session")
def restic() -> Path:
    """The folder with restic as images have it: it is one file that needs no other package."""
    if os.geteuid() != 0:
        pytest.skip("files change their owner")
    try:
        return debian.unpacked("test-restic", ["restic"]) / "usr/bin"
    except LocalError as error:
        pytest.skip(str(error))


@pytest.fixture
def with_restic(restic: Path, program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the program's own variables."""
    assert program
    monkeypatch.setenv("PATH", f"{restic}:{os.environ['PATH']}")


@pytest.fixture
def program(backup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """It works on folders, and has a stand-in of restic on its path if a test writes one."""
    for part in ("jail", "state"):
        (tmp_path / "parts" / part / "files").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("RESTIC_REPOSITORY", str(tmp_path / "repository"))
    monkeypatch.setenv("RESTIC_PASSWORD", "secret")
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(backup, "PARTS", tmp_path / "parts")
    monkeypatch.setattr(backup, "MESSAGE", tmp_path / "message")
    return backup


Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(program: ModuleType, tmp_path: Path) -> Run:
    def started(*arguments: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as ended:
            program.main(arguments)
        found: dict[str, Any] = json.loads((tmp_path / "message").read_text())
        return int(str(ended.value.code)), found

    return started


def stand_in(tmp_path: Path, script: str) -> None:
    """A restic that notes its arguments."""
    path = tmp_path / "bin/restic"
    path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n{script}\n')
    path.chmod(0o755)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


BACKUP = ("backup", "--host=slurm1", "--tag=nightly", "--part=jail")
RESTORE = ("restore", "--host=slurm1", "--tag=nightly", "--part=jail")
SUMMARY = json.dumps({"message_type": "summary", "snapshot_id": "ab12", "total_bytes_processed": 7})


def unread(item: str, words: str) -> str:
    return json.dumps({"message_type": "error", "item": item, "error": {"message": words}})


def test_a_repository_is_made_only_where_there_is_none(run: Run, tmp_path: Path) -> None:
    stand_in(tmp_path, f"case $1 in cat) exit 10;; backup) echo '{SUMMARY}';; esac")
    assert run(*BACKUP) == (0, {"snapshot": "ab12", "bytes": 7, "added": 0, "unread": 0})
    assert any(one.startswith("init") for one in calls(tmp_path))


@pytest.mark.parametrize("status", [1, 11, 12])
def test_a_repository_that_cannot_be_opened_is_left_alone(
    run: Run, tmp_path: Path, status: int
) -> None:
    stand_in(tmp_path, f"echo 'Fatal: wrong password' >&2; exit {status}")
    assert run(*BACKUP) == (1, {"error": "Fatal: wrong password"})
    assert [one.split()[0] for one in calls(tmp_path)] == ["cat"]


@pytest.fixture
def in_s3(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the program's own variables."""
    assert program
    monkeypatch.setenv("RESTIC_REPOSITORY", "s3:http://s3.example.com/bucket/path")


@pytest.mark.usefixtures("in_s3")
def test_a_bucket_is_made_and_one_with_a_repository_is_used(run: Run, tmp_path: Path) -> None:
    """S175: restic makes a bucket only when it is asked to make a repository."""
    stand_in(tmp_path, f"[ $1 != backup ] || echo '{SUMMARY}'")
    assert run(*BACKUP)[0] == 0
    there = "Fatal: create key failed: repository master key and config already initialized"
    script = f"case $1 in init) echo '{there}' >&2; exit 1;; backup) echo '{SUMMARY}';; esac"
    stand_in(tmp_path, script)
    assert run(*BACKUP)[0] == 0
    assert [one.split()[0] for one in calls(tmp_path)] == ["init", "backup"] * 2


@pytest.mark.usefixtures("in_s3")
def test_storage_that_rejects_the_key_fails_the_backup_with_its_words(
    run: Run, tmp_path: Path
) -> None:
    stand_in(tmp_path, "echo 'Fatal: create repository failed: Access Denied.' >&2; exit 1")
    assert run(*BACKUP) == (1, {"error": "Fatal: create repository failed: Access Denied."})
    assert [one.split()[0] for one in calls(tmp_path)] == ["init"]


@pytest.mark.usefixtures("in_s3")
def test_a_restore_from_a_bucket_that_does_not_exist_ends_and_changes_nothing(
    run: Run, program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S175."""
    monkeypatch.setattr(program, "ANSWER_S", 0.2)
    stand_in(tmp_path, "exec sleep 60")
    status, found = run(*RESTORE)
    assert (status, "does the bucket exist?" in found["error"]) == (3, True)


def test_files_that_vanished_are_counted(run: Run, tmp_path: Path) -> None:
    gone = unread("/a", "lstat /a: no such file or directory")
    stand_in(tmp_path, f"[ $1 = cat ] || {{ echo '{gone}' >&2; echo '{SUMMARY}'; exit 3; }}")
    status, found = run(*BACKUP)
    assert (status, found["unread"], found["snapshot"]) == (0, 1, "ab12")


def test_files_that_cannot_be_read_fail_the_backup(run: Run, tmp_path: Path) -> None:
    denied = unread("/a", "open /a: input/output error")
    stand_in(tmp_path, f"[ $1 = cat ] || {{ echo '{denied}' >&2; echo '{SUMMARY}'; exit 3; }}")
    status, found = run(*BACKUP)
    assert status == 1
    assert found["error"] == "1 files cannot be read: /a: open /a: input/output error"


def test_only_snapshots_of_this_backup_are_forgotten(run: Run, tmp_path: Path) -> None:
    stand_in(tmp_path, f"[ $1 != backup ] || echo '{SUMMARY}'")
    run(*BACKUP, "--keep-last=3", "--keep-within=14d")
    forget = next(one for one in calls(tmp_path) if one.startswith("forget"))
    assert "--host=slurm1 --tag=nightly" in forget
    assert "--keep-last=3 --keep-within=14d" in forget


def test_nothing_is_forgotten_without_a_retention(run: Run, tmp_path: Path) -> None:
    stand_in(tmp_path, f"[ $1 != backup ] || echo '{SUMMARY}'")
    run(*BACKUP)
    assert not [one for one in calls(tmp_path) if one.startswith("forget")]


@pytest.mark.parametrize("listed", ["[]", "", '[{"id": "ab", "time": "1", "paths": ["/other"]}]'])
def test_a_restore_without_a_snapshot_changes_no_file(
    run: Run, tmp_path: Path, listed: str
) -> None:
    stand_in(tmp_path, f"echo '{listed}'")
    status, found = run(*RESTORE)
    assert status == 3
    assert "no snapshot of Backup nightly" in found["error"]
    assert [one.split()[0] for one in calls(tmp_path)] == ["snapshots"]


def test_a_restore_that_fails_may_have_changed_files(run: Run, tmp_path: Path) -> None:
    paths = [str(tmp_path / "parts/jail")]
    listed = json.dumps([{"id": "abcd", "short_id": "ab", "time": "1", "paths": paths}])
    stand_in(tmp_path, f"[ $1 = restore ] && echo no space >&2 && exit 1; echo '{listed}'")
    assert run(*RESTORE) == (1, {"error": "no space"})


def test_a_try_after_one_that_was_killed_never_reports_whole_files(
    run: Run, tmp_path: Path
) -> None:
    paths = [str(tmp_path / "parts/jail")]
    listed = json.dumps([{"id": "abcd", "short_id": "ab", "time": "1", "paths": paths}])
    stand_in(tmp_path, f"[ $1 = restore ] && exit 1; echo '{listed}'")
    assert run(*RESTORE)[0] == 1
    stand_in(tmp_path, "echo unreachable >&2; exit 1")
    assert run(*RESTORE) == (1, {"error": "unreachable"})
    stand_in(tmp_path, f"[ $1 = restore ] || echo '{listed}'")
    assert run(*RESTORE)[0] == 0
    stand_in(tmp_path, "echo unreachable >&2; exit 1")
    assert run(*RESTORE) == (3, {"error": "unreachable"})


@pytest.mark.usefixtures("with_restic")
def test_files_come_back_as_they_were(run: Run, tmp_path: Path) -> None:
    """S175."""
    jail = tmp_path / "parts/jail/files"
    (jail / "deep").mkdir()
    (jail / "one").write_text("one")
    (jail / "deep/same").hardlink_to(jail / "one")
    (jail / "link").symlink_to("one")
    os.mkfifo(jail / "queue")
    os.chown(jail / "one", 1001, 1002)
    (jail / "one").chmod(0o4750)
    (jail / "deep").chmod(0o3770)
    os.setxattr(jail / "one", "user.note", b"kept")
    jail.chmod(0o751)
    (tmp_path / "parts/state/files/job_state").write_text("jobs")
    before = listing(tmp_path / "parts")
    both = "--part=state"
    assert run(*BACKUP, both, "--keep-last=2")[0] == 0
    shutil.rmtree(jail / "deep")
    for name in ("one", "link", "queue"):
        (jail / name).unlink()
    (jail / "new").write_text("x")
    jail.chmod(0o700)
    (tmp_path / "parts/state/files/job_state").write_text("none")
    assert run(*RESTORE, both)[0] == 0
    assert listing(tmp_path / "parts") == before
    assert (jail / "one").stat().st_ino == (jail / "deep/same").stat().st_ino
    assert os.getxattr(jail / "deep/same", "user.note") == b"kept"
    # The newest snapshot has no state; the one before has.
    assert run(*BACKUP)[0] == 0
    assert run(*RESTORE, both)[0] == 0


def listing(folder: Path) -> dict[str, tuple[object, ...]]:
    """Mode, owner, links, time and content by path."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        text = path.read_text() if stat.S_ISREG(about.st_mode) else ""
        times = about.st_mtime_ns
        found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_nlink, times, text)
    return found


def capabilities(action: str) -> list[str]:
    """Those of the container, in the spelling of setpriv(1)."""
    inputs = of_shape(CURRENT).inputs
    source = job.RestoreSource(NIGHTLY.spec.repository, "slurm", "nightly")
    made = {
        "backup": job.single_job(inputs, NIGHTLY),
        "restore": job.restore_job(inputs, BACK, source),
    }
    (container,) = made[action]["spec"]["template"]["spec"]["containers"]
    return [one.lower() for one in container["securityContext"]["capabilities"]["add"]]


def is_done_with(names: Sequence[str], arguments: Sequence[str], tmp_path: Path) -> bool:
    """Whether the program ends well with no other capabilities."""
    program = WITHOUT_CHECKS.format(
        folder=str(ENTRYPOINTS), parts=str(tmp_path / "parts"), message=str(tmp_path / "message")
    )
    given = "-all," + ",".join(f"+{one}" for one in names)
    limits = [f"--bounding-set={given}", f"--inh-caps={given}"]
    command = ["setpriv", *limits, sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("action", "dropped"),
    [(one, name) for one in ("backup", "restore") for name in ("", *capabilities(one))],
)
@pytest.mark.usefixtures("with_restic")
def test_no_capability_can_be_taken_away(
    run: Run, tmp_path: Path, action: str, dropped: str
) -> None:
    """S172."""
    jail = tmp_path / "parts/jail/files"
    (jail / "home").mkdir()
    for name, mode in (("private", 0o600), ("setgid", 0o2755), ("capable", 0o755)):
        (jail / "home" / name).write_text("x")
        os.chown(jail / "home" / name, 1001, 1002)
        (jail / "home" / name).chmod(mode)
    value = bytes.fromhex("0100000200040000000000000000000000000000")
    os.setxattr(jail / "home/capable", "security.capability", value)
    os.mknod(jail / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (jail / "locked").mkdir()
    (jail / "locked/file").write_text("x")
    for name in ("home", "locked"):
        os.chown(jail / name, 1001, 1001)
        (jail / name).chmod(0o700)
    left = [one for one in capabilities(action) if one != dropped]
    if action == "backup":
        assert is_done_with(left, BACKUP, tmp_path) == (not dropped)
        return
    assert run(*BACKUP)[0] == 0
    before = listing(tmp_path / "parts")
    shutil.rmtree(jail / "home")
    (jail / "device").unlink()
    (jail / "locked/file").unlink()
    is_whole = is_done_with(left, RESTORE, tmp_path) and listing(tmp_path / "parts") == before
    has_capability = is_whole and os.getxattr(jail / "home/capable", "security.capability") == value
    assert has_capability == (not dropped)
