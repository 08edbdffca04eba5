"""What clusters and nodes are, written before anything of them exists outside their folder."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.local.addresses import Addresses, choose, routes
from penstock.local.cache import locked
from penstock.local.components import Size
from penstock.local.config import CLUSTER_DOMAIN
from penstock.local.layout import Layout, is_name, state_dir
from penstock.local.starter import Starter
from penstock.local.versions import KUBERNETES


@dataclass(frozen=True)
class Record:
    """One node. `complete` once everything of it answered."""

    name: str
    size: Size
    block: int
    root: str
    """The cached file tree it runs on."""
    complete: bool = False
    starter: Starter | None = None
    node: str = ""
    """What its first node is called in Kubernetes; empty for the cluster's name."""
    kubernetes: str = KUBERNETES
    """The release that its nodes run."""
    domain: str = CLUSTER_DOMAIN
    """The DNS domain of its Services."""

    @property
    def owner(self) -> tuple[int, int] | None:
        """Pid and start time of the process that the cluster ends with."""
        found = self.starter
        return (found.pid, found.start) if found is not None and found.bound else None

    @property
    def node_name(self) -> str:
        """What its first node is called in Kubernetes."""
        return self.node or self.name

    @property
    def addresses(self) -> Addresses:
        """Where it lives in the machine's network."""
        return Addresses(self.block)

    @property
    def cgroup(self) -> str:
        """Its cgroup; nodes of one name in two state folders differ by their block."""
        return f"penstock-{self.block}-{self.name}"


@dataclass(frozen=True)
class Further:
    """One Kubernetes node beside the first of its cluster."""

    name: str
    number: int
    """From 1: its addresses follow from it."""
    block: int
    root: str
    complete: bool = False
    stopped: bool = False
    """Whether somebody has stopped it, so that it is not started with the cluster's others."""
    domain: str = CLUSTER_DOMAIN
    """The cluster's DNS domain."""

    @property
    def addresses(self) -> Addresses:
        """The cluster's."""
        return Addresses(self.block)

    def cgroup(self, cluster: str) -> str:
        """Its cgroup."""
        return f"penstock-{self.block}-{cluster}.{self.name}"


def load(layout: Layout) -> Record | None:
    """The record of a cluster, if there is one."""
    try:
        return msgspec.json.decode(layout.record.read_bytes(), type=Record)
    except FileNotFoundError:
        return None


def load_further(layout: Layout) -> Further | None:
    """The record of a further node, if there is one."""
    try:
        return msgspec.json.decode(layout.record.read_bytes(), type=Further)
    except FileNotFoundError:
        return None


def save(layout: Layout, record: Record | Further) -> None:
    """Write the record, complete or not at all."""
    new = layout.record.with_name("node.json.new")
    new.write_bytes(msgspec.json.encode(record))
    new.rename(layout.record)


def reserve(
    layout: Layout,
    size: Size,
    root: Path,
    starter: Starter | None = None,
    node: str = "",
    kubernetes: str = KUBERNETES,
    domain: str = CLUSTER_DOMAIN,
) -> Record:
    """Take a free address block for a new node and write its record."""
    with locked(state_dir() / ".blocks.lock"):
        others = [load(Layout(folder.name)) for folder in nodes()]
        taken = {other.block for other in others if other and other.name != layout.name}
        routed = routes(Path("/proc/net/route").read_text())
        block = choose(layout.name, taken, routed).block
        record = Record(
            layout.name,
            size,
            block,
            str(root),
            starter=starter,
            node=node,
            kubernetes=kubernetes,
            domain=domain,
        )
        layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        save(layout, record)
    return record


def nodes() -> list[Path]:
    """The folders of all nodes of this machine's state folder."""
    if not state_dir().is_dir():
        return []
    return sorted(p for p in state_dir().iterdir() if p.is_dir() and is_name(p.name))
