"""What a node is, written to its folder before anything of it exists outside that folder."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.local.addresses import Addresses, choose, routes
from penstock.local.cache import locked
from penstock.local.components import Size
from penstock.local.layout import Layout, state_dir


@dataclass(frozen=True)
class Record:
    """One node. `complete` once everything of it answered."""

    name: str
    size: Size
    block: int
    root: str
    """The cached file tree it runs on."""
    complete: bool = False

    @property
    def addresses(self) -> Addresses:
        """Where it lives in the machine's network."""
        return Addresses(self.block)

    @property
    def cgroup(self) -> str:
        """Its cgroup; nodes of one name in two state folders differ by their block."""
        return f"penstock-{self.block}-{self.name}"


def load(layout: Layout) -> Record | None:
    """The record of a node, if there is one."""
    try:
        return msgspec.json.decode(layout.record.read_bytes(), type=Record)
    except FileNotFoundError:
        return None


def save(layout: Layout, record: Record) -> None:
    """Write the record, complete or not at all."""
    new = layout.record.with_name("node.json.new")
    new.write_bytes(msgspec.json.encode(record))
    new.rename(layout.record)


def claim(layout: Layout, size: Size, root: Path) -> Record:
    """Take a free address block for a new node and write its record."""
    with locked(state_dir() / ".blocks.lock"):
        others = [load(Layout(folder.name)) for folder in nodes()]
        taken = {other.block for other in others if other and other.name != layout.name}
        routed = routes(Path("/proc/net/route").read_text())
        record = Record(layout.name, size, choose(layout.name, taken, routed).block, str(root))
        layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        save(layout, record)
    return record


def nodes() -> list[Path]:
    """The folders of all nodes of this machine's state folder."""
    if not state_dir().is_dir():
        return []
    return sorted(p for p in state_dir().iterdir() if p.is_dir() and not p.name.startswith("."))
