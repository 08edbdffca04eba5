"""Upgrades the jail to another image while it is in use, after a list of what that changes.

    jail_upgrade.py compare                     list the changes, and make none
    jail_upgrade.py apply --id ID --expect SUM  make them; SUM is the digest that compare printed
    jail_upgrade.py undo --id ID                put back what they replaced

The jail is at /jail. Both images run in containers of the same pod, whose variable
PENSTOCK_UPGRADE_ROOT is old for the image that the jail was filled from, and new for the other;
their roots are read by /proc. --old and --new name folders instead.

A line of the list begins with + for what is added, ~ for what is replaced, - for what is removed,
and ! for what differs in the new image, and stays as the jail has it.

The last line of the termination message is JSON. Exit status: 0 done; 1 failed, and the next run
goes on; 3 failed for good, and nothing was changed by this run.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from upgrade_apply import Upgrade, undo
from upgrade_journal import Journal
from upgrade_plan import Plan, PlanError, plan
from upgrade_tree import Folder

JAIL = "/jail"
MESSAGE = Path("/dev/termination-log")
MARK = b"PENSTOCK_UPGRADE_ROOT="
WAIT_S, LOOK_S = 30.0, 0.1
FAILED, UNCHANGED = 1, 3
FIRST = 20
"""Packages of the result; the list has all."""
LONGEST = 1000
CACHE = "etc/ld.so.cache"
PACKAGE_LOCKS = ("var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
LOCK = ".filling.lock"
"""That of populate-jail: one of them writes at a time."""


class UnchangedError(Exception):
    """Nothing was changed, and another run would not either."""


def main(arguments: Sequence[str]) -> None:
    """Run one of the three. Exits."""
    given = _parser().parse_args(arguments)
    try:
        found = _run(given)
    except (UnchangedError, PlanError) as error:
        _end(UNCHANGED, error=str(error))
    except (OSError, subprocess.CalledProcessError) as error:
        _end(FAILED, error=str(error))
    _end(0, **found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("compare", "apply", "undo"))
    parser.add_argument("--id", default="")
    parser.add_argument("--expect", default="")
    parser.add_argument("--jail", default=JAIL)
    parser.add_argument("--old", default="")
    parser.add_argument("--new", default="")
    return parser


def _run(given: argparse.Namespace) -> dict[str, Any]:
    if given.action == "undo":
        with _locked(given.jail):
            return _undo(given)
    old, new = (getattr(given, one) or _root_of(one) for one in ("old", "new"))
    with Folder.of(old) as old_root, Folder.of(new) as new_root, Folder.of(given.jail) as jail:
        if given.action == "compare":
            found = plan(old_root, new_root, jail)
            _show(found)
            return _summary(found)
        with _locked(given.jail):
            return _apply(given, old_root, new_root, jail)


def _apply(
    given: argparse.Namespace, old_root: Folder, new_root: Folder, jail: Folder
) -> dict[str, Any]:
    journal = Journal(given.jail, given.id)
    done = journal.result() if journal.exists else ""
    if done:
        return json.loads(done)
    found = plan(old_root, new_root, jail)
    if given.expect not in ("", found.digest):
        raise UnchangedError("an image has changed since it was compared: its tag has moved")
    _show(found)
    upgrade = Upgrade(journal, new_root)
    upgrade.apply(found)
    _update_cache(given.jail)
    result = _summary(found)
    # A run that was killed had made some of the changes.
    result["kept"] += upgrade.outcome.kept
    journal.finish(json.dumps(result))
    return result


def _undo(given: argparse.Namespace) -> dict[str, Any]:
    journal = Journal(given.jail, given.id)
    if not journal.exists:
        raise UnchangedError(
            "the jail has nothing to put back of this upgrade: it changed nothing, was undone, or "
            "another upgrade came after it"
        )
    outcome = undo(journal)
    _update_cache(given.jail)
    journal.remove()
    return {"changed": outcome.changed, "kept": outcome.kept}


def _update_cache(jail: str) -> None:
    """Libraries that came or went are in the cache of the jail's loader. Source: ldconfig(8)."""
    if Path(jail, CACHE).exists():
        done = subprocess.run(["ldconfig", "-X", "-r", jail], check=False)
        if done.returncode:
            print(f"ldconfig ended with {done.returncode}: run it in the jail", flush=True)


def _show(found: Plan) -> None:
    """Print the list."""
    for name, before, after in found.packages:
        print(f"package {name}: {before or 'absent'} -> {after or 'absent'}")
    for name in found.own_packages:
        print(f"package {name}: stays as the jail has it")
    for one in (*found.changes, *found.kept):
        print(f"{one.kind.value} /{_printable(one.path)}")
    sys.stdout.flush()


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode().replace("\n", "\\n")


def _summary(found: Plan) -> dict[str, Any]:
    kinds = [one.kind.name for one in found.changes]
    return {
        "digest": found.digest,
        "added": kinds.count("ADD"),
        "changed": kinds.count("CHANGE"),
        "removed": kinds.count("REMOVE"),
        "kept": len(found.kept),
        "packages": len(found.packages),
        "first": [f"{name} {after or 'removed'}" for name, _, after in found.packages[:FIRST]],
    }


def _root_of(role: str) -> str:
    """The root of the container with an image. Raises OSError."""
    deadline = time.monotonic() + WAIT_S
    while True:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (process / "environ").read_bytes().split(b"\0")
                if MARK + role.encode() in variables:
                    return f"{process}/root/."
        if time.monotonic() > deadline:
            raise OSError(f"no container of this pod has the {role} image")
        time.sleep(LOOK_S)


@contextlib.contextmanager
def _locked(jail: str) -> Generator[None]:
    """Wait for other writers of the jail, also for apt and dpkg. Raises OSError."""
    with _only_writer(jail), contextlib.ExitStack() as locks:
        for path in PACKAGE_LOCKS:
            locks.enter_context(_package_lock(jail, path))
        yield


@contextlib.contextmanager
def _package_lock(jail: str, path: str) -> Generator[None]:
    """One lock of apt or dpkg, of a jail that has it. Source: dpkg(1), "FILES"."""
    folder, _, name = path.rpartition("/")
    with Folder.of(jail) as root, root.at(folder) as found:
        about = found.entry(name)
        if about is None or not about.is_file:
            yield
            return
        with os.fdopen(os.open(name, os.O_RDWR | os.O_NOFOLLOW, dir_fd=found.fd), "w") as file:
            deadline = time.monotonic() + WAIT_S
            while True:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() > deadline:
                        words = "apt or dpkg is at work in the jail"
                        raise OSError(error.errno, words, path) from None
                time.sleep(LOOK_S)
            yield


@contextlib.contextmanager
def _only_writer(jail: str) -> Generator[None]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with Folder.of(jail) as folder:
        while True:
            fd = os.open(LOCK, flags, 0o600, dir_fd=folder.fd)
            with os.fdopen(fd, "w"):
                fcntl.flock(fd, fcntl.LOCK_EX)
                there = folder.entry(LOCK)
                if there is None or there.about.st_ino != os.fstat(fd).st_ino:
                    # The former holder removed the file that it had locked.
                    continue
                try:
                    yield
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(LOCK, dir_fd=folder.fd)
                return


def _end(status: int, **found: Any) -> NoReturn:
    """Leave the result where the kubelet reads it, and exit."""
    if "error" in found:
        found["error"] = found["error"][:LONGEST]
        print(f"jail_upgrade.py: {found['error']}", file=sys.stderr, flush=True)
    line = json.dumps(found)
    print(line, flush=True)
    with contextlib.suppress(OSError):
        MESSAGE.write_text(line)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
