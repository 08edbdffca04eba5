"""Copies parts of a cluster to a repository of restic, or puts them back.

    backup.py backup --host CLUSTER --tag BACKUP --part jail [--part state] [--keep-last 3 ...]
    backup.py restore --host CLUSTER [--tag BACKUP] --snapshot latest --part jail [--part state]

Each part is a volume at /parts/PART/files, so that a snapshot has the owner and the mode of its
root too. Where the repository is and its password are in the variables of restic. The volume of the
part accounting is empty: a backup writes a dump of the database of slurmdbd there. A restore loads
the dump before it changes a file, and replaces the tables in use after the last file.

The last line of the termination message is JSON: snapshot, bytes, added, unread, and error. Exit
status: 0 done; 1 failed; 3 a restore failed before it changed a file or a table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from accounting_dump import DUMP, Database, DatabaseError

PARTS = Path("/parts")
ACCOUNTING = "accounting"
"""The part that is a database, not a volume of the cluster."""
MESSAGE = Path("/dev/termination-log")
RETRY_LOCK = "35m"
"""Longer than 30 minutes, after which restic removes the lock of a process that was killed."""
FAILED, UNCHANGED = 1, 3
INITIALIZED = "already initialized"
"""Words of `restic init` about a repository that there is."""
ANSWER_S = 300.0
"""Seconds after which a bucket that does not answer counts as absent: restic itself tries on."""
NO_REPOSITORY, SOME_UNREAD = 10, 3
"""Exit statuses of restic. Source: restic manual, "Scripting", exit codes."""
INCOMPLETE = ".penstock-restore-incomplete"
"""In the root of a volume from before the first change of a restore until its end."""
NOT_COPIED = (".snapshot", "lost+found", ".filling", ".filling.lock", INCOMPLETE)
"""Of the root of a volume: its file system's own, and an unfinished copy of populate-jail."""
KEEP = ("last", "hourly", "daily", "weekly", "monthly", "yearly", "within")
LONGEST = 1000
"""Letters of the words of an error. A kubelet keeps 4096 bytes of a message."""
WORDS = 3
VANISHED = "no such file or directory"


class ResticError(Exception):
    """A run of restic failed: its exit status, and the JSON that it had printed until then."""

    def __init__(self, status: int, words: str, records: list[dict[str, Any]]) -> None:
        super().__init__(words)
        self.status = status
        self.records = records


def main(arguments: Sequence[str]) -> None:
    """Run one of the two. Exits."""
    given = _parser().parse_args(arguments)
    absent = [one for one in given.part if not (PARTS / one / "files").is_dir()]
    if given.action == "restore":
        absent = [one for one in absent if one != ACCOUNTING]
    if absent:
        _end(UNCHANGED, error=f"{PARTS / absent[0] / 'files'} is no folder")
    if given.action == "backup":
        _backup(given)
    _restore(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("backup", "restore"):
        one = actions.add_parser(action)
        one.add_argument("--host", required=True)
        one.add_argument("--tag", default="")
        one.add_argument("--part", action="append", required=True)
        if action == "restore":
            one.add_argument("--snapshot", default="latest")
            continue
        for keep in KEEP:
            one.add_argument(f"--keep-{keep}", default="")
    return parser


def _backup(given: argparse.Namespace) -> NoReturn:
    try:
        _ensure_repository()
        if ACCOUNTING in given.part:
            with Database() as database:
                print("copies the database of slurmdbd", flush=True)
                database.dump(PARTS / ACCOUNTING / "files" / DUMP)
        found = _copy(given)
        kept = [f"--keep-{one}={value}" for one in KEEP if (value := getattr(given, f"keep_{one}"))]
        if kept:
            # restic's own grouping would keep all older ones after a change of the parts.
            own = [f"--host={given.host}", f"--tag={given.tag}", "--group-by=host,tags"]
            _run("forget", "--prune", "--quiet", f"--retry-lock={RETRY_LOCK}", *own, *kept)
    except (ResticError, DatabaseError) as error:
        _end(FAILED, error=str(error))
    _end(0, **found)


def _ensure_repository() -> None:
    if _is_s3():
        # It also makes the bucket. `cat config` would wait a quarter of an hour for that.
        try:
            _run("init", "--quiet", shown=False)
        except ResticError as error:
            if INITIALIZED not in str(error):
                raise
        return
    try:
        _run("cat", "config", "--quiet", f"--retry-lock={RETRY_LOCK}", shown=False)
    except ResticError as error:
        if error.status != NO_REPOSITORY:
            raise
        _run("init", "--quiet")


def _copy(given: argparse.Namespace) -> dict[str, Any]:
    arguments = [f"--host={given.host}", f"--tag={given.tag}", f"--retry-lock={RETRY_LOCK}"]
    for part in given.part:
        arguments += [f"--exclude={PARTS / part / 'files' / name}" for name in NOT_COPIED]
    paths = [str(PARTS / part) for part in given.part]
    unread: list[str] = []
    try:
        records = _run("backup", "--json", "--quiet", *arguments, *paths, unread=unread)
    except ResticError as error:
        # Files of running jobs vanish while they are read. All others would be missed.
        if error.status != SOME_UNREAD or not unread:
            raise
        lost = [one for one in unread if VANISHED not in one]
        if lost:
            words = f"{len(lost)} files cannot be read: {'; '.join(lost[:WORDS])}"
            raise ResticError(error.status, words, error.records) from None
        records = error.records
    none: dict[str, Any] = {}
    summary = next((one for one in records if one.get("message_type") == "summary"), none)
    return {
        "snapshot": summary.get("snapshot_id", ""),
        "bytes": summary.get("total_bytes_processed", 0),
        "added": summary.get("data_added_packed", summary.get("data_added", 0)),
        "unread": len(unread),
    }


def _restore(given: argparse.Namespace) -> NoReturn:
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(Database()) if ACCOUNTING in given.part else None
        volumes = [one for one in given.part if one != ACCOUNTING]
        markers = [PARTS / one / "files" / INCOMPLETE for one in volumes]
        # An earlier try may have been killed: then some are incomplete, whatever this one does.
        before = FAILED if any(one.exists() for one in markers) else UNCHANGED
        try:
            if database is not None and database.prepare():
                before = FAILED
            snapshot = _snapshot(given)
            if database is not None:
                _load(database, snapshot)
        except (ResticError, DatabaseError) as error:
            _end(before, error=str(error))
        try:
            _restore_volumes(volumes, markers, snapshot)
            if database is not None:
                database.swap()
        except (ResticError, DatabaseError) as error:
            _end(FAILED, error=str(error))
        for one in markers:
            # The root of the volume has its time from the snapshot.
            about = one.parent.stat()
            one.unlink()
            os.utime(one.parent, ns=(about.st_atime_ns, about.st_mtime_ns))
        _end(0, snapshot=snapshot["id"])


def _restore_volumes(
    volumes: Sequence[str], markers: Sequence[Path], snapshot: dict[str, Any]
) -> None:
    for one in markers:
        one.touch()
    for part in volumes:
        print(f"restores {part} of snapshot {snapshot['short_id']}", flush=True)
        source, target = f"{snapshot['id']}:{PARTS / part}", str(PARTS / part)
        excluded = [f"--exclude=/files/{name}" for name in NOT_COPIED]
        options = [f"--target={target}", "--delete", f"--retry-lock={RETRY_LOCK}", *excluded]
        _run("restore", source, *options)


def _load(database: Database, snapshot: dict[str, Any]) -> None:
    """Load the dump of a snapshot beside the tables in use; one that fails leaves nothing."""
    print(f"loads the database of slurmdbd of snapshot {snapshot['short_id']}", flush=True)
    try:
        database.load(_dump(snapshot))
    except (ResticError, DatabaseError):
        with contextlib.suppress(DatabaseError):
            database.discard()
        raise


def _dump(snapshot: dict[str, Any]) -> Iterator[bytes]:
    """Lines of the dump in a snapshot. Raises ResticError at their end if restic failed."""
    path = str(PARTS / ACCOUNTING / "files" / DUMP)
    command = ["restic", "dump", "--quiet", f"--retry-lock={RETRY_LOCK}", snapshot["id"], path]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        yield from process.stdout or ()
        if process.wait() != 0:
            said.seek(0)
            lines = said.read().decode(errors="replace").split("\n")
            words = " / ".join([one.strip() for one in lines if one.strip()][-WORDS:])
            raise ResticError(process.returncode, words or "restic dump failed", [])


def _snapshot(given: argparse.Namespace) -> dict[str, Any]:
    """The snapshot to restore. Raises ResticError if there is none with the parts."""
    is_latest = given.snapshot == "latest"
    selected = [given.snapshot]
    if is_latest:
        selected = [f"--host={given.host}", *([f"--tag={given.tag}"] if given.tag else [])]
    limit_s = ANSWER_S if _is_s3() else None
    found = _run("snapshots", "--json", f"--retry-lock={RETRY_LOCK}", *selected, limit_s=limit_s)
    paths = {str(PARTS / part) for part in given.part}
    # The parts of a Backup may have been changed since.
    whole = [one for one in found if not is_latest or paths.issubset(one["paths"])]
    if not whole:
        of = f" of Backup {given.tag}" if given.tag else ""
        words = f"no snapshot{of} of SlurmCluster {given.host} with {' and '.join(given.part)}"
        if not is_latest:
            words = f"no snapshot {given.snapshot}"
        raise ResticError(1, f"the repository has {words}", [])
    newest = max(whole, key=lambda one: one["time"])
    missing = [part for part in given.part if str(PARTS / part) not in newest["paths"]]
    if missing:
        raise ResticError(1, f"snapshot {newest['short_id']} has no {missing[0]}", [])
    return newest


def _is_s3() -> bool:
    return os.environ.get("RESTIC_REPOSITORY", "").startswith("s3:")


def _run(
    *arguments: str,
    unread: list[str] | None = None,
    shown: bool = True,
    limit_s: float | None = None,
) -> list[dict[str, Any]]:
    """JSON that restic prints, line by line. Raises ResticError, also after `limit_s` seconds."""
    records: list[dict[str, Any]] = []
    last: deque[str] = deque(maxlen=WORDS)
    with subprocess.Popen(
        ["restic", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        timer = threading.Timer(limit_s or 0.0, process.kill)
        if limit_s is not None:
            timer.start()
        for line in process.stdout or ():
            text = line.strip()
            parsed = list(_records(text))
            if not parsed and text not in ("", "[]"):
                last.append(text)
                if shown:
                    print(text, flush=True)
            for one in parsed:
                kind = one.get("message_type")
                if kind == "error":
                    words = f"{one.get('item', '')}: {_message(one)}"
                    print(words, flush=True)
                    if unread is not None:
                        unread.append(words)
                elif kind == "exit_error":
                    last.append(str(one.get("message", "")))
                elif kind not in ("status", "verbose_status"):
                    records.append(one)
    status = process.returncode
    is_killed = limit_s is not None and timer.finished.is_set()
    timer.cancel()
    if is_killed:
        words = f"the storage has not answered within {limit_s:g} s: does the bucket exist?"
        raise ResticError(status, " / ".join((words, *last)), records)
    if status != 0:
        words = " / ".join(last) or f"restic {arguments[0]} ended with status {status}"
        raise ResticError(status, " / ".join(words.splitlines()), records)
    return records


def _records(text: str) -> Iterator[dict[str, Any]]:
    if text[:1] not in ("{", "["):
        return
    try:
        found: Any = json.loads(text)
    except ValueError:
        return
    if text[0] == "[":
        yield from found
    else:
        yield found


def _message(record: dict[str, Any]) -> str:
    error: Any = record.get("error")
    try:
        return str(error["message"])
    except (TypeError, KeyError):
        return str(error)


def _end(status: int, **found: Any) -> NoReturn:
    """Leave the result where the kubelet reads it, and exit."""
    if "error" in found:
        found["error"] = found["error"][:LONGEST]
        print(f"backup.py: {found['error']}", file=sys.stderr, flush=True)
    line = json.dumps(found)
    print(line, flush=True)
    try:
        MESSAGE.write_text(line)
    except OSError as error:
        print(f"backup.py: {MESSAGE} cannot be written: {error}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
