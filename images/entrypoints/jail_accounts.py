"""Accounts in the root of one worker: its own system accounts, and the users of the shared jail.

Users have numbers from 1000 on, as useradd gives them. They are made on a login and are the same on
each worker, with their passwords and their places in system groups. Accounts below are those of
packages, which differ from root to root.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jail_files

FIRST, NOBODY = 1000, 65534
FILES = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
LOCK = ".pwd.lock"
"""The lock of useradd and of packages. Source: lckpwdf(3)."""
_NUMBER, _MEMBERS = 2, 3
"""Fields of a line. Source: passwd(5), group(5)."""


class BusyError(Exception):
    """Another program changes accounts right now."""


def fields(text: str) -> list[list[str]]:
    """The lines of a file, each as its fields."""
    return [line.split(":") for line in text.splitlines() if ":" in line]


def is_user(line: list[str]) -> bool:
    """Whether a line of passwd or group is of the users, who are the same everywhere."""
    number = line[_NUMBER] if len(line) > _NUMBER else ""
    return number.isdecimal() and FIRST <= int(number) != NOBODY


def merged(own: Mapping[str, str], shared: Mapping[str, str]) -> dict[str, str]:
    """The files of a worker with the users of the shared jail, each by its name.

    A user with the name of a system account of the worker is left out: files of that would change
    their owner.
    """
    out: dict[str, str] = {}
    kept: dict[str, set[str]] = {}
    taken: dict[str, set[str]] = {}
    for name in ("passwd", "group"):
        lines = [one for one in fields(own[name]) if not is_user(one)]
        kept[name] = {one[0] for one in lines}
        users = [one for one in fields(shared[name]) if is_user(one) and one[0] not in kept[name]]
        taken[name] = {one[0] for one in users}
        if name == "group":
            lines = _with_members(lines, fields(shared[name]), kept["passwd"], taken["passwd"])
        out[name] = _text([*lines, *users])
    for name, of in (
        *(("shadow", "passwd"), ("gshadow", "group"), ("subuid", "passwd"), ("subgid", "passwd")),
    ):
        lines = [one for one in fields(own[name]) if one[0] in kept[of]]
        lines += [one for one in fields(shared[name]) if one[0] in taken[of]]
        out[name] = _text(lines)
    return out


def _with_members(
    groups: Iterable[list[str]], shared: Iterable[list[str]], system: set[str], users: set[str]
) -> list[list[str]]:
    """System groups of the worker: system accounts are its own members, users those shared."""
    of_shared = {one[0]: _members(one) for one in shared if not is_user(one)}
    out: list[list[str]] = []
    for one in groups:
        members = [name for name in _members(one) if name in system]
        members += [name for name in of_shared.get(one[0], ()) if name in users]
        out.append([*one[:_MEMBERS], ",".join(members)] if len(one) > _MEMBERS else one)
    return out


def _members(line: list[str]) -> list[str]:
    return [name for name in line[_MEMBERS].split(",") if name] if len(line) > _MEMBERS else []


def _text(lines: Iterable[list[str]]) -> str:
    return "".join(f"{':'.join(line)}\n" for line in lines)


@dataclass
class Accounts:
    """Keeps the accounts of one root; `shared` is the folder etc of the shared jail."""

    jail: Path
    shared: Path
    merge: Callable[[Mapping[str, str], Mapping[str, str]], Mapping[str, str]] = merged
    _seen: list[jail_files.Stamp | None] = field(
        default_factory=list[jail_files.Stamp | None], init=False
    )

    def keep(self) -> bool:
        """Bring the users of the shared jail into the root; return whether a file changed.

        Raises BusyError, and OSError when a file cannot be read or written.
        """
        with jail_files.opened(self.shared) as shared, jail_files.opened(self.jail, "etc") as etc:
            # Taken before files are read: a change of meanwhile is seen the next time.
            given_at = self._stamps(shared)
            if [*self._stamps(etc), *given_at] == self._seen:
                return False
            with _locked(etc):
                given = {name: jail_files.read(shared, name) for name in FILES}
                if not given["passwd"]:
                    raise OSError("passwd of the shared jail is empty")
                own = {name: jail_files.read(etc, name) for name in FILES}
                changed = [
                    (name, text)
                    for name, text in self.merge(own, given).items()
                    if text != own[name]
                ]
                # Names of users come last: who finds one finds its password and groups as well.
                for name, text in reversed(changed):
                    jail_files.replace(etc, name, text)
                self._seen = [*self._stamps(etc), *given_at]
        return bool(changed)

    def _stamps(self, folder: int) -> list[jail_files.Stamp | None]:
        return [jail_files.stamp(folder, name) for name in FILES]


@contextlib.contextmanager
def _locked(etc: int) -> Generator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(LOCK, flags, 0o600, dir_fd=etc)
    try:
        try:
            os.lockf(fd, os.F_TLOCK, 0)
        except OSError as error:
            raise BusyError from error
        yield
    finally:
        os.close(fd)
