"""Files that programs of the jail and an image both write: packages of dpkg, and accounts.

They are merged entry by entry. Sources: dpkg(1), "FILES"; deb-version(7); passwd(5), shadow(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

STATUS = "var/lib/dpkg/status"
INFO = "var/lib/dpkg/info"
ACCOUNTS = (
    "etc/passwd",
    "etc/group",
    "etc/shadow",
    "etc/gshadow",
    "etc/subuid",
    "etc/subgid",
)
MERGED = (STATUS, *ACCOUNTS)
_NUMBERED = ("etc/passwd", "etc/group")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_PARTS = re.compile(r"(\d+)")
_END: tuple[list[int], int] = ([0], 0)
_UNMERGED_USR = ("bin/", "sbin/", "lib/", "lib32/", "lib64/", "libx32/")


class Side(Enum):
    """Whose version of a package or file is taken."""

    IMAGE = "image"
    JAIL = "jail"


@dataclass(frozen=True)
class Package:
    """One paragraph of the status file."""

    text: str
    fields: Mapping[str, str]

    @property
    def version(self) -> str:
        """Its version; empty when it is not installed."""
        is_installed = self.fields.get("Status", "").endswith(" installed")
        return self.fields.get("Version", "") if is_installed else ""

    @property
    def requires(self) -> set[str]:
        """Names in its dependencies, of alternatives all."""
        words = f"{self.fields.get('Depends', '')},{self.fields.get('Pre-Depends', '')}"
        found = (_NAME.match(one.strip()) for one in re.split(r"[,|]", words))
        return {one.group() for one in found if one is not None}

    @property
    def conffiles(self) -> set[str]:
        """Paths, without the first slash, that dpkg leaves to whoever edits them."""
        lines = self.fields.get("Conffiles", "").split("\n")
        return {line.split()[0].lstrip("/") for line in lines if line.strip()}


Packages = dict[str, Package]


def packages(text: str) -> Packages:
    """Paragraphs of the status file, by name and architecture."""
    found: Packages = {}
    for paragraph in re.split(r"\n{2,}", text.strip("\n")):
        fields: dict[str, str] = {}
        last = ""
        for line in paragraph.split("\n"):
            if line[:1] in (" ", "\t"):
                fields[last] = f"{fields.get(last, '')}\n{line.strip()}"
            elif ":" in line:
                last, _, value = line.partition(":")
                fields[last] = value.strip()
        if "Package" in fields:
            key = f"{fields['Package']}:{fields.get('Architecture', '')}"
            found[key] = Package(paragraph, fields)
    return found


def _order(letter: str) -> int:
    """A tilde sorts before the end, letters before all other characters."""
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 256


def _key(part: str) -> list[tuple[list[int], int]]:
    pieces = [*_PARTS.split(part), ""]
    found = [
        ([*map(_order, pieces[at]), 0], int(pieces[at + 1] or 0))
        for at in range(0, len(pieces) - 1, 2)
    ]
    # What is absent equals 0, but sorts after a tilde.
    while found and found[-1] == _END:
        found.pop()
    return [*found, _END]


def version_key(version: str) -> tuple[int, object, object]:
    """A key that sorts as dpkg does. Source: deb-version(7), "Sorting algorithm"."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return (int(epoch) if epoch.isdigit() else 0, _key(upstream), _key(revision))


class PackagePlan:
    """Whose version of each package the jail gets, by three status files.

    `old` is the image that the jail was filled from, `new` the image of the upgrade.
    """

    def __init__(self, old: str, new: str, jail: str) -> None:
        self._old, self._new, self._jail = packages(old), packages(new), packages(jail)
        self._texts = old, new, jail
        self.sides = {key: self._side(key) for key in {*self._new, *self._jail, *self._old}}
        self._keep_required()

    def _side(self, key: str) -> Side:
        old, new, jail = (one.get(key) for one in (self._old, self._new, self._jail))
        if _text(old) == _text(new):
            return Side.JAIL
        if _text(jail) == _text(old):
            return Side.IMAGE
        if new is None or jail is None or not jail.version:
            # One that its users removed stays away; one that they changed stays.
            return Side.JAIL
        return Side.IMAGE if version_key(new.version) > version_key(jail.version) else Side.JAIL

    def _keep_required(self) -> None:
        """A package that the image lacks stays while one of the jail's own requires it."""
        required: set[str] = set()
        waiting = [key for key, side in self.sides.items() if side is Side.JAIL]
        while waiting:
            package = self._jail.get(waiting.pop())
            if package is None:
                continue
            required |= package.requires
            for key, side in self.sides.items():
                gone = side is Side.IMAGE and key not in self._new
                if gone and key.partition(":")[0] in required:
                    self.sides[key] = Side.JAIL
                    waiting.append(key)

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Name, version in the jail and version of the image, of each package that changes."""
        found: list[tuple[str, str, str]] = []
        for key, side in self.sides.items():
            if side is Side.IMAGE:
                before, after = (_version(one.get(key)) for one in (self._jail, self._new))
                if before != after:
                    found.append((key.partition(":")[0], before, after))
        return sorted(found)

    @property
    def own(self) -> list[str]:
        """Names of packages that differ from the image's and stay as the jail has them."""
        return sorted(
            key.partition(":")[0]
            for key, side in self.sides.items()
            if side is Side.JAIL
            and _text(self._jail.get(key)) != _text(self._new.get(key))
            and _text(self._old.get(key)) != _text(self._new.get(key))
        )

    def contended(self) -> dict[str, Side]:
        """Packages whose files are not compared one by one: all are those of one side."""
        return {
            key: side
            for key, side in self.sides.items()
            if _text(self._jail.get(key)) != _text(self._old.get(key))
            or (side is Side.JAIL and key not in self._new and key in self._old)
        }

    def conffiles(self) -> set[str]:
        """Paths that are compared one by one whatever their package is."""
        every = (*self._old.values(), *self._new.values(), *self._jail.values())
        return {path for one in every for path in one.conffiles}

    def status(self) -> str:
        """The merged status file."""
        old, new, jail = self._texts
        if jail == old:
            return new
        kept: list[str] = []
        for key in dict.fromkeys((*self._jail, *self._new)):
            source = self._new if self.sides[key] is Side.IMAGE else self._jail
            if key in source:
                kept.append(source[key].text)
        return "".join(f"{one}\n\n" for one in kept)


def _version(package: Package | None) -> str:
    return "" if package is None else package.version


def _text(package: Package | None) -> str:
    return "" if package is None else package.text


def stems(key: str) -> tuple[str, str]:
    """How names in INFO of a package may begin: with its architecture, and without."""
    name, _, architecture = key.partition(":")
    return f"{name}:{architecture}", name


def listed_paths(text: str) -> Iterable[str]:
    """Paths of a list of files, below /usr where that has what were folders of the root."""
    for line in text.splitlines():
        path = line.strip().lstrip("/")
        if path and path != ".":
            yield f"usr/{path}" if path.startswith(_UNMERGED_USR) else path


def merged_accounts(path: str, old: str, new: str, jail: str) -> str:
    """The jail's file, with accounts that the image has added and that the jail lacks."""
    known = {line.partition(":")[0] for line in (*old.splitlines(), *jail.splitlines())}
    numbers = {_number(line) for line in jail.splitlines()} if path in _NUMBERED else set[str]()
    added = [
        line
        for line in new.splitlines()
        if line
        and line.partition(":")[0] not in known
        and (path not in _NUMBERED or _number(line) not in numbers)
    ]
    if not added:
        return jail
    start = jail if not jail or jail.endswith("\n") else f"{jail}\n"
    return start + "".join(f"{line}\n" for line in added)


def _number(line: str) -> str:
    fields = line.split(":")
    return fields[2] if len(fields) > 2 else ""
