"""What a change of Slurm's configuration needs to take effect: the least force, key by key.

Which key needs what is in `force_table`. The force of a whole change is the greatest of its parts.
Comments, order and spelling are no change. A key or a file that the table does not know counts as
one that a reconfigure takes over: that is slurm.conf(5)'s own rule for every key of which it says
nothing else, it also hands the files on to the nodes, and a refused one leaves slurmctld running,
which a restart would not. A line that is no setting counts likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from penstock.slurm.conf.document import Change, Document, diff, split_options
from penstock.slurm.conf.includes import SLURM_CONF, included, resolved

SETTINGS = (".conf", ".yaml")
"""How files of settings end. Any other file is a script, which a reconfigure hands on to nodes."""


class Force(IntEnum):
    """How a change takes effect, from the least to the greatest force."""

    NOTHING = 0
    REST = 1
    RECONFIGURE = 2
    RESTART = 3


@dataclass(frozen=True, slots=True)
class Need:
    """What one key needs; `daemons` are those to restart.

    `beware` is what a user should know before the change.
    """

    force: Force
    daemons: tuple[str, ...] = ()
    beware: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One key, named line or whole file that changes, and what it needs.

    `known` is False for what the table does not have. `turn` is "new" or "removed" for what only
    one of the two has.
    """

    file: str
    key: str
    need: Need
    name: str = ""
    known: bool = True
    turn: str = field(default="", compare=False)

    @property
    def gone(self) -> bool:
        """Whether it is taken away."""
        return self.turn == "removed"

    def __str__(self) -> str:
        what = f"{self.key}={self.name}" if self.name else self.key
        if self.key == self.file:
            return self.file
        return what if self.file == SLURM_CONF else f"{what} ({self.file})"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a change of the files needs."""

    items: tuple[Item, ...] = ()

    @property
    def force(self) -> Force:
        """The greatest force that one of them needs."""
        return max((item.need.force for item in self.items), default=Force.NOTHING)

    @property
    def daemons(self) -> tuple[str, ...]:
        """The daemons to restart, each once, sorted."""
        return tuple(sorted({one for item in self.items for one in item.need.daemons}))

    @property
    def unknown(self) -> tuple[Item, ...]:
        """What the table does not have."""
        return tuple(item for item in self.items if not item.known)

    @property
    def beware(self) -> tuple[str, ...]:
        """What a user should know before the change, each once."""
        return tuple(dict.fromkeys(i.need.beware for i in self.items if i.need.beware))

    def of(self, force: Force) -> tuple[Item, ...]:
        """Those that need exactly this."""
        return tuple(item for item in self.items if item.need.force is force)


@dataclass(frozen=True, slots=True)
class Row:
    """Keys of a file that need the same, and where that is written. Keys are as in the manual.

    `options` are those of a comma list that need something else than the rest of it.
    """

    file: str
    keys: tuple[str, ...]
    need: Need
    source: str
    options: tuple[tuple[str, Need], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for keys and for files that count as a whole (`keys` is empty)."""

    rows: tuple[Row, ...]
    otherwise: Need = Need(Force.RECONFIGURE)

    def find(self, file: str, key: str = "") -> Row | None:
        """The row of a key, in whatever case, or of a whole file."""
        low = key.lower()
        for row in self.rows:
            if row.file != file:
                continue
            if (not low and not row.keys) or low in (one.lower() for one in row.keys):
                return row
        return None


def needs(old: Mapping[str, str], new: Mapping[str, str], table: Table) -> Plan:
    """What it takes to get from one set of files, by name, to another.

    Files that slurm.conf includes are part of it.
    """
    items: list[Item] = []
    parts = {*included(old), *included(new)}
    for file in sorted({*old, *new} - parts):
        before, after = (
            (resolved(old), resolved(new))
            if file == SLURM_CONF
            else (old.get(file, ""), new.get(file, ""))
        )
        if before != after or (file in old) != (file in new):
            items += _file(file, before, after, table)
    return Plan(tuple(items))


def _file(file: str, old: str, new: str, table: Table) -> Iterator[Item]:
    if table.find(file) is not None or not any(row.file == file for row in table.rows):
        yield _item(table, file)
        return
    before, after = Document.parse(old), Document.parse(new)
    for change in _changes(file, before, after):
        yield _item(table, file, change)
    # What the parser does not read as a setting may mean something to Slurm all the same.
    if _rest(before) != _rest(after):
        yield Item(file, file, table.otherwise, known=False)


def _changes(file: str, before: Document, after: Document) -> Iterable[Change]:
    if file == SLURM_CONF:
        return diff(before, after)
    old, new = _values(before), _values(after)
    return [
        Change(key, None, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _values(document: Document) -> dict[str, str]:
    """All values of each key, in order: other files have several lines that begin alike."""
    found: dict[str, str] = {}
    for line in document.lines:
        for setting in line.settings:
            key = setting.key.lower()
            found[key] = f"{found[key]},{setting.value}" if key in found else setting.value
    return found


def _rest(document: Document) -> list[str]:
    return [line.text for line in document.lines if line.problem is not None or line.include]


def _item(table: Table, file: str, change: Change | None = None) -> Item:
    if change is None:
        row = table.find(file)
        known = row is not None or not file.endswith(SETTINGS)
        return Item(file, file, row.need if row else table.otherwise, known=known)
    row = table.find(file, change.key)
    name = change.name or ""
    turn = "new" if change.old is None else "removed" if change.new is None else ""
    if row is None:
        return Item(file, change.key, table.otherwise, name, known=False, turn=turn)
    spelt = next((key for key in row.keys if key.lower() == change.key), change.key)
    return Item(file, spelt, _option_need(row, change), name, turn=turn)


def _option_need(row: Row, change: Change) -> Need:
    """The greatest need among the options that come or go."""
    old, new = split_options(change.old or ""), split_options(change.new or "")
    moved = {one.partition("=")[0].lower() for one in {*old} ^ {*new}}
    special = [need for option, need in row.options if option.lower() in moved]
    return max(special, key=lambda need: need.force, default=row.need)
