"""The built-in Kubernetes node: `Node("name").up(Size.NODE)`, `.down()`."""

import contextlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO

from penstock.local import bringup, cgroups, ctr, files, launch, network, process, record
from penstock.local.cache import locked
from penstock.local.components import PROGRAMS, Size, components
from penstock.local.errors import LocalError
from penstock.local.golang import compiled
from penstock.local.layout import Layout, state_dir
from penstock.local.linux import require_root_linux
from penstock.local.process import Process
from penstock.local.progress import step
from penstock.local.record import Record
from penstock.local.root import node_root

DEFAULT_NAME = "penstock"
FLEET_NODES = 100
"""Simulated nodes of a fleet unless told otherwise."""


@dataclass(frozen=True)
class Status:
    """What is there of a node."""

    name: str
    state: str
    """`absent`, `ready`, `unfinished` (an `up` did not reach its end) or `dead`."""
    size: Size | None = None
    server: str = ""
    components: dict[str, Process] | None = None
    """Running components by name."""


class Node:
    """One node by name. `with Node(name) as node: node.up(...)` takes it down at the end."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self._layout = Layout(name)

    def up(self, size: Size | str = Size.NODE, *, nodes: int = FLEET_NODES) -> "Node":
        """Bring the node up and wait until it serves; nothing is done when it is up already.

        `nodes` counts the simulated nodes of a fleet. A node of another size, or one that did
        not come up completely, is taken down first. Raises LocalError.
        """
        require_root_linux()
        size = Size(size)
        programs = {program.name: compiled(program) for program in PROGRAMS[size]}
        root = node_root()
        with locked(self._layout.lock):
            there = record.load(self._layout)
            first = process.load(self._layout.pid)
            if not (there and first and there.complete and there.size is size):
                self._remove()
                there = record.claim(self._layout, size, root)
                with step(f"starting Kubernetes ({size}) as {self.name}"):
                    first = self._start(there, programs)
            if size is Size.FLEET:
                bringup.fleet(self._layout, there, first, nodes)
        return self

    def down(self) -> None:
        """Stop the node and remove everything of it; nothing is done when there is none."""
        require_root_linux()
        if self._layout.folder.exists():
            with locked(self._layout.lock):
                self._remove()
        with contextlib.suppress(OSError):
            state_dir().rmdir()

    def status(self) -> Status:
        """What is there now."""
        there = record.load(self._layout)
        if there is None:
            return Status(self.name, "dead" if self._layout.folder.exists() else "absent")
        first = process.load(self._layout.pid)
        state = "dead" if first is None else "ready" if there.complete else "unfinished"
        running = self.processes() if first else {}
        return Status(self.name, state, there.size, there.addresses.server, running)

    @property
    def name(self) -> str:
        """The node's name, also in Kubernetes."""
        return self._layout.name

    @property
    def kubeconfig_path(self) -> Path:
        """An administrator's kubeconfig."""
        return self._layout.kubeconfig

    @property
    def audit_log(self) -> Path:
        """Every write to the API server with its user and verb, one JSON object a line."""
        return self._layout.audit_log

    @property
    def logs(self) -> Path:
        """The folder with a log for each component."""
        return self._layout.logs

    @property
    def address(self) -> str:
        """The node's address: NodePorts are here. Pods and cluster IPs are routed as well."""
        return self._record().addresses.node

    @property
    def machine_address(self) -> str:
        """The machine's address as pods and the API server see it."""
        return self._record().addresses.machine

    @property
    def env(self) -> dict[str, str]:
        """This process' environment with KUBECONFIG set and the node's kubectl found first."""
        path = f"{self._layout.bin}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig_path), "PATH": path}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Standard output of kubectl. Raises LocalError with what it said when it fails."""
        done = subprocess.run(
            [str(self._layout.bin / "kubectl"), *arguments],
            input=stdin,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LocalError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def run(self, *command: str, stdin: IO[bytes] | None = None) -> str:
        """Standard output of a command run inside the node."""
        return launch.inside(self._first(), command, stdin)

    def import_image(self, archive: Path) -> None:
        """Give the node the images of a docker or OCI archive."""
        ctr.load(self._first(), archive)

    def images(self) -> dict[str, str]:
        """Digest of each image the node has, by name."""
        return ctr.present(self._first())

    def processes(self) -> dict[str, Process]:
        """The node's running components by name, with pids of this machine."""
        there = self._record()
        mine = {c.name for c in components(there.size, self.name, there.addresses)}
        children = self._first().children()
        return {name: children[name] for name in sorted(mine & children.keys())}

    def __enter__(self) -> "Node":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def _start(self, there: Record, programs: dict[str, Path]) -> Process:
        files.write(self._layout, there, programs)
        if there.size is Size.NODE:
            cgroups.make(there.cgroup)
        first = launch.launch(self._layout, there)
        bringup.complete(self._layout, there, first)
        record.save(self._layout, replace(there, complete=True))
        return first

    def _remove(self) -> None:
        """Everything outside the folder goes before the record that tells of it."""
        launch.end(self._layout)
        there = record.load(self._layout)
        if there is not None:
            network.disconnect(Path(there.root), there.addresses)
            cgroups.remove(there.cgroup)
        files.clear(self._layout.folder)

    def _record(self) -> Record:
        there = record.load(self._layout)
        if there is None:
            raise LocalError(f"There is no node {self.name}; bring it up with penstock local up.")
        return there

    def _first(self) -> Process:
        first = process.load(self._layout.pid)
        if first is None:
            raise LocalError(f"The node {self.name} does not run; see {self.logs}.")
        return first


def all_nodes() -> Sequence[Node]:
    """The nodes of this machine."""
    return [Node(folder.name) for folder in record.nodes()]
