"""What is in the root of one worker, as digests that the operator compares between workers.

The report is a line of the log:

    penstock: root SUBJECT=DIGEST ... [SUBJECT:CHANGE ...]

A change is `+entry` or `-entry` since the root was filled: at most five of each subject, and
`SUBJECT:*` where there are more.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jail_accounts
import jail_files

PACKAGES = "packages"
PROGRAMS = ("usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
MARKER = "soperator-jail-populated"
NOTES = "var/lib/penstock"
BASELINE = "root-baseline"
CLIENTS = "/opt/penstock/slurm/"
SHOWN = 5
MOST_PROGRAMS = 20_000
LONGEST_ENTRY = 80
_DPKG = "var/lib/dpkg"
Subjects = Mapping[str, frozenset[str]]


def packages(status: str) -> frozenset[str]:
    """Installed packages with their versions. Source: dpkg(1), the file `status`."""
    found: set[str] = set()
    for stanza in status.split("\n\n"):
        values = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
        if values.get("Status", "").endswith(" installed"):
            found.add(f"{values.get('Package', '')}={values.get('Version', '')}")
    return frozenset(found)


def accounts(passwd: str, group: str, *, users: bool) -> frozenset[str]:
    """Accounts and groups with their numbers and members: of users, or of the system.

    Users are no members here of groups of the system: they are those of the shared jail.
    """
    found: set[str] = set()
    names = {line[0] for line in jail_accounts.fields(passwd) if jail_accounts.is_user(line)}
    for kind, text in (("", passwd), ("group:", group)):
        for line in jail_accounts.fields(text):
            if jail_accounts.is_user(line) == users and len(line) > 2:
                members = line[3].split(",") if kind and len(line) > 3 else []
                shown = [name for name in members if name and (users or name not in names)]
                of = f":{','.join(shown)}" if shown else ""
                found.add(f"{kind}{line[0]}={line[2]}{of}")
    return frozenset(found)


def digest(entries: Iterable[str]) -> str:
    """A digest of a set of words."""
    text = "\n".join(sorted(entries)).encode(errors="surrogateescape")
    # Python's own sums are no part of the minimal one that the images have.
    done = subprocess.run(["sha256sum"], input=text, stdout=subprocess.PIPE, check=True)
    return done.stdout[:12].decode()


def line(now: Subjects, baseline: Subjects, users: frozenset[str]) -> str:
    """The report of a root that was filled with the baseline."""
    # Of all that is replaced when the root is filled again, packages alone leave nothing behind.
    words = [f"image={digest(baseline.get(PACKAGES, ()))}"]
    words += [f"{name}={digest(entries)}" for name, entries in now.items()]
    words.append(f"users={digest(users)}")
    for name, entries in now.items():
        before = baseline.get(name, frozenset[str]())
        changes = [f"+{one}" for one in sorted(entries - before)]
        changes += [f"-{one}" for one in sorted(before - entries)]
        words += [f"{name}:{_word(one)}" for one in changes[:SHOWN]]
        if len(changes) > SHOWN:
            words.append(f"{name}:*")
    return " ".join(["penstock: root", *words])


def _word(text: str) -> str:
    shown = "".join(one if one.isprintable() and not one.isspace() else "?" for one in text)
    return shown[:LONGEST_ENTRY]


@dataclass
class Reporter:
    """Reports a root whenever it has changed."""

    jail: Path
    _seen: object = field(default=None, init=False)

    def report(self) -> str:
        """The line, or an empty text while nothing has changed. Raises OSError."""
        stamps = self._stamps()
        if stamps == self._seen:
            return ""
        with jail_files.opened(self.jail, "etc") as etc:
            marker = jail_files.read(etc, MARKER).strip()
            passwd, group = (jail_files.read(etc, name) for name in ("passwd", "group"))
        now = {
            PACKAGES: packages(self._text(_DPKG, "status")),
            "programs": frozenset(self._programs()),
            "accounts": accounts(passwd, group, users=False),
        }
        found = line(now, self._baseline(marker, now), accounts(passwd, group, users=True))
        self._seen = stamps
        return found

    def _baseline(self, marker: str, now: Subjects) -> Subjects:
        """What the root was filled with: noted at the first report since it was filled."""
        with jail_files.opened(self.jail, NOTES, make=True) as notes:
            first, _, rest = jail_files.read(notes, BASELINE).partition("\n")
            if first == marker and rest:
                found: dict[str, set[str]] = {name: set() for name in now}
                for one in filter(None, rest.split("\n")):
                    name, _, entry = one.partition("\t")
                    found.setdefault(name, set()).add(entry)
                return {name: frozenset(entries) for name, entries in found.items()}
            lines = [f"{name}\t{one}" for name, entries in now.items() for one in sorted(entries)]
            jail_files.replace(notes, BASELINE, "\n".join([marker, *lines, ""]))
        return now

    def _stamps(self) -> object:
        found: list[object] = [self._stamp("etc", name) for name in ("passwd", "group", MARKER)]
        found.append(self._stamp(_DPKG, "status"))
        for path in PROGRAMS:
            above, _, name = path.rpartition("/")
            found.append(self._stamp(above, name))
        return found

    def _stamp(self, folder: str, name: str) -> jail_files.Stamp | None:
        try:
            with jail_files.opened(self.jail, folder) as fd:
                return jail_files.stamp(fd, name)
        except OSError:
            return None

    def _text(self, folder: str, name: str) -> str:
        try:
            with jail_files.opened(self.jail, folder) as fd:
                return jail_files.read(fd, name)
        except OSError:
            return ""

    def _programs(self) -> Iterable[str]:
        """Names of programs; a folder that is a link to another one has none of its own."""
        for path in PROGRAMS:
            try:
                with jail_files.opened(self.jail, path) as fd, os.scandir(fd) as entries:
                    found = [one.name for one in entries if not _is_client(fd, one)]
            except OSError:
                continue
            names = (name for name in sorted(found)[:MOST_PROGRAMS] if "\n" not in name)
            yield from (f"{path}/{name}" for name in names)


def _is_client(folder: int, entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a link to one of Slurm's clients, which the slurmd image makes."""
    if not entry.is_symlink():
        return False
    try:
        return os.readlink(entry.name, dir_fd=folder).startswith(CLIENTS)
    except OSError:
        return False
