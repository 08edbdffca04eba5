"""Where a node keeps its files: one folder, seen from the machine and from inside the node."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from penstock.local.errors import LocalError

STATE_VARIABLE = "PENSTOCK_STATE"
LONGEST_NAME = 40
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def state_dir() -> Path:
    """The folder of all nodes: `$PENSTOCK_STATE`, or /var/lib/penstock."""
    return Path(os.environ.get(STATE_VARIABLE) or "/var/lib/penstock")


def is_name(name: str) -> bool:
    """Whether `name` can be a folder, a cgroup and a Kubernetes node."""
    return len(name) <= LONGEST_NAME and bool(_NAME.fullmatch(name))


def check_name(name: str) -> None:
    """Raise LocalError unless it is a name (`is_name`)."""
    if not is_name(name):
        raise LocalError(
            f"{name!r} cannot name a node: use at most {LONGEST_NAME} lower case "
            "letters, digits and dashes, as for a Kubernetes object."
        )


@dataclass(frozen=True)
class Layout:
    """The files of one Kubernetes node, as paths of the machine unless noted.

    `name` is the cluster's. `further` is the node's, or empty for the first one, whose folder has
    the folders of all others.
    """

    name: str
    further: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.further:
            check_name(self.further)

    @property
    def folder(self) -> Path:
        """Everything of this node."""
        top = state_dir() / self.name
        return top / "nodes" / self.further if self.further else top

    @property
    def all_further(self) -> "list[Layout]":
        """The cluster's other nodes, by name."""
        folder = state_dir() / self.name / "nodes"
        found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return [Layout(self.name, name) for name in found]

    @property
    def volumes(self) -> Path:
        """The volumes of PVCs, which all nodes of the cluster share."""
        return state_dir() / self.name / "volumes"

    @property
    def images(self) -> Path:
        """Archives of the images that the cluster was given, for nodes that come later."""
        return state_dir() / self.name / "images"

    @property
    def lock(self) -> Path:
        """Locked while the node goes up or down."""
        return state_dir() / f".{self.name}.lock"

    @property
    def record(self) -> Path:
        """What the node is (`Record`, `Further`), written before all of it outside its folder."""
        return self.folder / "node.json"

    @property
    def pid(self) -> Path:
        """Pid file of the node's first process."""
        return self.folder / "init.pid"

    @property
    def plan(self) -> Path:
        """What the node's first process mounts and runs."""
        return self.folder / "init.json"

    @property
    def upper(self) -> Path:
        """What differs from the cached tree: the writable layer of the node's root."""
        return self.folder / "upper"

    @property
    def pki(self) -> Path:
        """Keys and certificates; /etc/kubernetes/pki inside."""
        return self.upper / "etc/kubernetes/pki"

    @property
    def bin(self) -> Path:
        """Compiled programs; /usr/local/bin inside."""
        return self.upper / "usr/local/bin"

    @property
    def logs(self) -> Path:
        """A log for each component; /var/log/penstock inside."""
        return self.folder / "logs"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log: every write, one JSON object a line."""
        return self.logs / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig for use on this machine."""
        return self.folder / "kubeconfig"
