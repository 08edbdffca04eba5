"""What an upgrade of a jail changes: the image it was filled from, the new image, the jail.

What the images have in common stays as the jail has it. Where they differ, the jail gets the new
image's file if its own is still that of the old image; else its own stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from upgrade_packages import (
    INFO,
    MERGED,
    STATUS,
    PackagePlan,
    Side,
    listed_paths,
    merged_accounts,
    stems,
)
from upgrade_tree import Entry, Folder, is_folder, same

OWN = "var/lib/penstock"
"""Folder of the jail where upgrades keep what they replaced."""
SKIPPED = frozenset(
    (
        # What pods mount of their own, and what only populate-jail writes.
        *("proc", "sys", "dev", "run", "tmp", "mnt/jail", "jail", "lost+found", ".snapshot"),
        *(".dockerenv", ".filling", ".filling.lock", ".populated", "etc/soperator-jail-populated"),
        *("etc/hosts", "etc/hostname", "etc/resolv.conf", "usr/local/libexec/penstock"),
        # What belongs to users, or is written again from other files.
        *("home", "root", "etc/slurm", "etc/ld.so.cache", "etc/mtab", f"{STATUS}-old", OWN),
        *("var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend"),
        *("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-"),
    )
)
RPM = ("var/lib/rpm/", "usr/lib/sysimage/rpm/")


class PlanError(Exception):
    """The images and the jail cannot be brought together, for the reason of the message."""


class Kind(Enum):
    """What is done about a path; the value is how a line of the list begins."""

    ADD = "+"
    CHANGE = "~"
    REMOVE = "-"
    KEEP = "!"


@dataclass(frozen=True)
class Change:
    """One path. `image` is the entry of the new image, `jail` that of the jail as it was seen.

    `text` is the content of a file that is merged. With `owner_only` it is a folder that both have.
    """

    path: str
    kind: Kind
    image: Entry | None = None
    jail: Entry | None = None
    text: str | None = None
    owner_only: bool = False


@dataclass
class Plan:
    """Changes in the order in which they are made, and a digest of what the images differ in."""

    writes: list[Change] = field(default_factory=list[Change])
    removals: list[Change] = field(default_factory=list[Change])
    late: list[Change] = field(default_factory=list[Change])
    """Files in the place of a folder, which goes first."""
    kept: list[Change] = field(default_factory=list[Change])
    packages: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    own_packages: list[str] = field(default_factory=list[str])
    digest: str = ""

    @property
    def changes(self) -> list[Change]:
        """All that is done."""
        return [*self.writes, *self.removals, *self.late]


def plan(old: Folder, new: Folder, jail: Folder) -> Plan:
    """Compare three roots. Raises PlanError and OSError."""
    roots = (old, new, jail)
    texts = [one.text(STATUS) for one in roots]
    packages = PackagePlan(*texts) if all(texts) else None
    walk = _Walk(_sides(packages, roots) if packages is not None else {})
    walk.folder("", old, new, jail, is_kept=False)
    found = walk.plan
    found.writes += _merges(packages, old, new, jail)
    found.digest = walk.digest.hexdigest()
    if packages is not None:
        found.packages, found.own_packages = packages.changes, packages.own
    if any(one.path.startswith(RPM) for one in found.kept):
        raise PlanError(
            "packages of the jail were changed by rpm, whose database cannot be merged: upgrade "
            "them by the tools of the jail, or fill an empty volume"
        )
    return found


def _sides(packages: PackagePlan, roots: Iterable[Folder]) -> dict[str, Side]:
    """Whose files are taken of packages that both the image and the jail's users changed."""
    contended, found = packages.contended(), dict[str, Side]()
    for root in roots:
        with root.at(INFO) as folder:
            info = folder.names()
            for key, side in contended.items():
                stem = next((one for one in stems(key) if f"{one}.list" in info), "")
                if not stem:
                    continue
                found |= dict.fromkeys(listed_paths(root.text(f"{INFO}/{stem}.list")), side)
                own = (one for one in info if one.rpartition(".")[0] == stem)
                found |= {f"{INFO}/{one}": side for one in own}
    for path in packages.conffiles():
        found.pop(path, None)
    return found


def _merges(packages: PackagePlan | None, old: Folder, new: Folder, jail: Folder) -> list[Change]:
    found: list[Change] = []
    for path in MERGED:
        was = jail.text(path)
        if path == STATUS:
            text = packages.status() if packages is not None else was
        else:
            text = merged_accounts(path, old.text(path), new.text(path), was)
        if was and text != was:
            folder, _, name = path.rpartition("/")
            with jail.at(folder) as found_folder:
                about = found_folder.entry(name)
            found.append(Change(path, Kind.CHANGE, about, about, text))
    return found


@dataclass(frozen=True)
class _Spot:
    """One name of a folder in the three roots."""

    path: str
    name: str
    old: Folder
    new: Folder
    jail: Folder
    before: Entry | None
    after: Entry | None
    present: Entry | None
    is_changed: bool
    """Whether the images differ."""

    @property
    def is_own(self) -> bool:
        """Whether the jail has something else than the old image."""
        return not same(self.name, self.old, self.jail)

    @property
    def is_done(self) -> bool:
        """Whether the jail has what the new image has."""
        return same(self.name, self.new, self.jail)


class _Walk:
    """Collects the changes. `sides` are paths that are not compared with the old image."""

    def __init__(self, sides: dict[str, Side]) -> None:
        self.plan = Plan()
        self.digest = hashlib.sha256()
        self._sides = sides

    def folder(self, path: str, old: Folder, new: Folder, jail: Folder, *, is_kept: bool) -> int:
        """Compare what is in a folder; return how many of its entries leave the jail.

        With `is_kept` the jail has something of its own in the place of the folder.
        """
        left = 0
        for name in sorted(old.names() | new.names()):
            at = f"{path}/{name}" if path else name
            if at in SKIPPED or at in MERGED:
                continue
            entries = [one.entry(name) for one in (old, new, jail)]
            is_changed = not same(name, old, new)
            spot = _Spot(at, name, old, new, jail, *entries, is_changed=is_changed)
            if is_changed:
                self._note(spot)
            with_folder = is_folder(spot.before) or is_folder(spot.after)
            compare = self._one_folder if with_folder else self._one_file
            left += compare(spot, is_kept=is_kept)
        return left

    def _note(self, spot: _Spot) -> None:
        """What the images differ in belongs to the digest."""
        after = spot.after
        about = "" if after is None else f"{after.about.st_mode} {after.owner} {after.target}"
        self.digest.update(f"{spot.path}\0{about}\0".encode(errors="surrogateescape"))
        if after is not None and after.is_file:
            for block in spot.new.blocks(spot.name):
                self.digest.update(block)

    def _one_file(self, spot: _Spot, *, is_kept: bool) -> int:
        side = self._sides.get(spot.path)
        if side is None and not spot.is_changed:
            return 0
        if spot.is_done and not is_kept:
            return 0
        is_own = side is Side.JAIL or (side is None and spot.is_own)
        if is_kept or is_own or is_folder(spot.present):
            self._keep(spot)
            return 0
        if spot.after is None:
            self.plan.removals.append(Change(spot.path, Kind.REMOVE, None, spot.present))
            return 1
        self._write(spot)
        return 0

    def _one_folder(self, spot: _Spot, *, is_kept: bool) -> int:
        has_folder = is_folder(spot.after)
        if has_folder and not is_folder(spot.present) and not is_kept:
            # Its users may have removed it, or put something else there.
            is_kept = is_folder(spot.before) or (spot.present is not None and spot.is_own)
            if not is_kept:
                self._write(spot)
        elif has_folder:
            self._owner(spot)
        with (
            spot.old.below(spot.name, is_there=is_folder(spot.before)) as old,
            spot.new.below(spot.name, is_there=has_folder) as new,
            spot.jail.below(spot.name, is_there=is_folder(spot.present)) as jail,
        ):
            left = self.folder(spot.path, old, new, jail, is_kept=is_kept)
            is_emptied = jail.fd is not None and left == len(jail.names()) and not is_kept
        if has_folder or (spot.is_done and not is_kept):
            return 0
        if spot.after is None:
            if is_emptied:
                self.plan.removals.append(Change(spot.path, Kind.REMOVE, None, spot.present))
            return int(is_emptied)
        if is_emptied:
            self.plan.late.append(Change(spot.path, Kind.CHANGE, spot.after, spot.present))
        else:
            self._keep(spot)
        return 0

    def _owner(self, spot: _Spot) -> None:
        """Mode and owner of a folder that all three have."""
        if spot.is_changed and not spot.is_own and is_folder(spot.before):
            change = Change(spot.path, Kind.CHANGE, spot.after, spot.present, owner_only=True)
            self.plan.writes.append(change)

    def _write(self, spot: _Spot) -> None:
        kind = Kind.ADD if spot.present is None else Kind.CHANGE
        self.plan.writes.append(Change(spot.path, kind, spot.after, spot.present))

    def _keep(self, spot: _Spot) -> None:
        self.plan.kept.append(Change(spot.path, Kind.KEEP, spot.after, spot.present))
