"""The built-in Kubernetes: `Node("name").up(Size.NODE)`, `.add("another")`, `.down()`."""

import contextlib
import os
import subprocess
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar

from penstock.api.kubernetes.resource import is_object_name
from penstock.local import (
    bringup,
    cgroups,
    ctr,
    files,
    further,
    given_images,
    inotify,
    launch,
    network,
    plain_http,
    process,
    record,
    versions,
)
from penstock.local.addresses import MOST_NODES
from penstock.local.cache import locked
from penstock.local.components import Size, components, programs_of
from penstock.local.config import CLUSTER_DOMAIN
from penstock.local.errors import LocalError
from penstock.local.golang import compiled
from penstock.local.layout import Layout, check_name, state_dir
from penstock.local.linux import require_root_linux
from penstock.local.process import Process
from penstock.local.progress import step
from penstock.local.record import Record
from penstock.local.root import node_root
from penstock.local.starter import this_process

DEFAULT_NAME = "penstock"
FLEET_NODES = 100
"""Default number of simulated nodes of a fleet."""


@dataclass(frozen=True)
class NodeStatus:
    """Observed state of one Kubernetes node of a cluster."""

    name: str
    state: str
    """`running`, `stopped` (by somebody), `unfinished` or `dead`."""
    address: str
    components: dict[str, Process]


@dataclass(frozen=True)
class Status:
    """Observed state of a cluster; `state` is its first node's."""

    name: str
    state: str
    """`absent`, `ready`, `unfinished` (an `up` did not reach its end) or `dead`."""
    size: Size | None = None
    server: str = ""
    components: dict[str, Process] | None = None
    """Running components by name."""


class Node:
    """One cluster by name: one Kubernetes node unless more are added.

    `with Node(name) as node: node.up(...)` takes it down at the end. Should the process not come
    to that end, as when it is killed, the processes of the cluster end with it.
    """

    _bound: ClassVar[set[str]] = set()
    """Clusters under `with` in this process: brought up by it, they end with it."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self._layout = Layout(name)

    def up(
        self,
        size: Size | str = Size.NODE,
        *,
        nodes: int | None = None,
        names: Sequence[str] = (),
        kubernetes: str = "",
        domain: str = "",
    ) -> "Node":
        """Bring the node up and wait until it serves; nothing is done when it is up already.

        `nodes` counts the simulated nodes of a fleet (100 unless given), or the Kubernetes nodes
        of Size.NODE (1 unless given), which are called `names`, and for those that lack one
        NAME-2, NAME-3... Nodes that a running cluster lacks are added, those that were stopped
        are started, others are kept. A cluster of another size, or one that did not come up
        completely, is taken down first.

        `kubernetes` is a minor version, such as 1.35; if it is empty, a new cluster gets that of
        PENSTOCK_KUBERNETES or the default, and one that is there keeps its own. `domain` is the DNS
        domain of its Services, cluster.local for a new cluster unless given. Raises LocalError,
        also when a cluster that is there has another release or domain.
        """
        require_root_linux()
        size = Size(size)
        wanted = node_names(self.name, size, nodes, names)
        release, zone = self._unchanging(kubernetes, domain, size)
        programs = {program.name: compiled(program) for program in programs_of(size, release)}
        root = node_root()
        clear_abandoned()
        with locked(self._layout.lock):
            there = record.load(self._layout)
            first = process.load(self._layout.pid)
            if not (there and first and there.complete and there.size is size):
                self._remove()
                if size is Size.NODE:
                    inotify.check(inotify.FIRST_NODE + inotify.FURTHER_NODE * (len(wanted) - 1))
                bound = self.name in self._bound
                starter = this_process(bound=bound)
                there = record.reserve(self._layout, size, root, starter, wanted[0], release, zone)
                with step(f"starting Kubernetes ({size}) as {self.name}"):
                    first = self._start(there, programs)
            if size is Size.FLEET:
                bringup.fleet(self._layout, there, first, FLEET_NODES if nodes is None else nodes)
            if names and there.node_name != wanted[0]:
                raise LocalError(
                    f"The first node of cluster {self.name} is called {there.node_name}, not "
                    f"{wanted[0]}. To rename it, take the cluster down first."
                )
            for name in wanted[1:]:
                further.add(further.Cluster(self._layout, there, first), name)
        return self

    def down(self) -> None:
        """Stop the node and remove everything of it; nothing is done when there is none."""
        require_root_linux()
        if self._layout.folder.exists():
            with locked(self._layout.lock):
                self._remove()
        with contextlib.suppress(OSError):
            state_dir().rmdir()

    def add(self, name: str) -> None:
        """Add a Kubernetes node to the running cluster; nothing is done when it runs."""
        check_name(name)
        with self._changing() as cluster:
            further.add(cluster, name)

    def stop(self, name: str) -> None:
        """End every process of a further node at once, as a power failure does."""
        with self._changing() as cluster:
            further.stop(cluster, name)

    def start(self, name: str) -> None:
        """Start a stopped node and wait until it is Ready."""
        with self._changing() as cluster:
            further.start(cluster, name)

    def delete(self, name: str) -> None:
        """Remove a further node, with its Kubernetes object; drain it before where that counts."""
        with self._changing() as cluster:
            further.delete(cluster, name)

    def nodes(self) -> list[NodeStatus]:
        """The Kubernetes nodes of the cluster, the first one first."""
        there = record.load(self._layout)
        if there is None:
            return []
        state = self.status().state
        first = {"ready": "running"}.get(state, state)
        running = self.processes() if process.load(self._layout.pid) else {}
        found = [NodeStatus(there.node_name, first, there.addresses.node, running)]
        for layout in self._layout.all_further:
            one = record.load_further(layout)
            alive = process.load(layout.pid) is not None
            state = "dead"
            if one is not None and one.stopped:
                state = "stopped"
            elif one is not None and alive:
                state = "running" if one.complete else "unfinished"
            address = there.addresses.node_of(one.number) if one else ""
            found.append(NodeStatus(layout.further, state, address, further.running(layout)))
        return found

    def status(self) -> Status:
        """Read the observed state."""
        there = record.load(self._layout)
        if there is None:
            return Status(self.name, "dead" if self._layout.folder.exists() else "absent")
        first = process.load(self._layout.pid)
        state = "dead" if first is None else "ready" if there.complete else "unfinished"
        running = self.processes() if first else {}
        return Status(self.name, state, there.size, there.addresses.server, running)

    @property
    def name(self) -> str:
        """The cluster's name; its first node's too, unless that was given another."""
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
        """Standard output of kubectl. Raises LocalError with its error output if it fails."""
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
        """Standard output of a command run inside the first node."""
        return launch.inside(self._first(), command, stdin)

    def inside(self, name: str) -> list[str]:
        """The beginning of a command that runs inside the Kubernetes node of that name."""
        if name == self._record().node_name:
            return launch.enter(self._first())
        first = process.load(Layout(self.name, name).pid)
        if first is None:
            raise LocalError(
                f"Cluster {self.name} has no running node {name}; "
                "penstock local node list shows those it has."
            )
        return launch.enter(first)

    def import_image(self, archive: Path) -> None:
        """Give every node the images of a docker or OCI archive, now or when it comes."""
        given_images.load(self._layout, self._first(), archive)
        given_images.keep(self._layout, archive)
        for layout in self._layout.all_further:
            first = process.load(layout.pid)
            if first is not None:
                given_images.load(layout, first, archive)

    def allow_plain_http(self, registry: str) -> None:
        """Have every node pull from a registry in the cluster without TLS. Raises LocalError."""
        addresses = self._record().addresses
        plain_http.allow(self._first(), registry, addresses)
        for layout in self._layout.all_further:
            first = process.load(layout.pid)
            if first is not None:
                plain_http.allow(first, registry, addresses)

    def images(self) -> dict[str, str]:
        """Digest of each image the node has, by name."""
        return ctr.present(self._first())

    def processes(self) -> dict[str, Process]:
        """The first node's running components by name, with pids of this machine."""
        there = self._record()
        mine = {c.name for c in components(there.size, there.node_name, there.addresses)}
        children = self._first().children()
        return {name: children[name] for name in sorted(mine & children.keys())}

    @property
    def abandoned(self) -> bool:
        """Whether it was to end with its starter, and both have ended."""
        there = record.load(self._layout)
        starter = there.starter if there is not None else None
        if starter is None or not starter.bound or starter.process.alive:
            return False
        return process.load(self._layout.pid) is None

    def __enter__(self) -> "Node":
        self._bound.add(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bound.discard(self.name)
        self.down()

    def _unchanging(self, minor: str, domain: str, size: Size) -> tuple[str, str]:
        """The release of Kubernetes and the DNS domain: those of a running cluster are kept."""
        if domain and not is_object_name(domain):
            raise LocalError(f"{domain} is no DNS domain; write names such as cluster.local.")
        release, there = versions.kubernetes(minor), record.load(self._layout)
        if there is None or not there.complete or there.size is not size:
            return release, domain or CLUSTER_DOMAIN
        for what, wanted, has in (
            ("runs Kubernetes", minor and release, there.kubernetes),
            ("has the domain", domain, there.domain),
        ):
            if wanted and wanted != has:
                raise LocalError(
                    f"Cluster {self.name} {what} {has}, not {wanted}. Take it down first: "
                    f"penstock local down --name {self.name}"
                )
        return there.kubernetes, there.domain

    def _start(self, there: Record, programs: dict[str, Path]) -> Process:
        files.write(self._layout, there, programs)
        if there.size is Size.NODE:
            cgroups.make(there.cgroup)
        root = Path(there.root)
        first = launch.launch(self._layout, lambda one: network.connect(root, one, there.addresses))
        bringup.complete(self._layout, there, first)
        record.save(self._layout, replace(there, complete=True))
        return first

    def _remove(self) -> None:
        """Remove everything outside the folder before the record that lists it.

        Further nodes go first: without the first one they run on without a network.
        """
        for layout in self._layout.all_further:
            further.remove(layout)
        launch.end(self._layout)
        there = record.load(self._layout)
        if there is not None:
            network.disconnect(Path(there.root), there.addresses)
            cgroups.remove(there.cgroup)
        files.clear(self._layout.folder)

    @contextlib.contextmanager
    def _changing(self) -> Generator[further.Cluster]:
        """The running cluster, while nobody else changes it."""
        require_root_linux()
        there, first = self._record(), self._first()
        if there.size is not Size.NODE or not there.complete:
            raise LocalError(
                f"Cluster {self.name} is not a running one of size node; nodes can be changed "
                "only there. Bring it up with penstock local up."
            )
        with locked(self._layout.lock):
            yield further.Cluster(self._layout, there, first)

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


def clear_abandoned() -> None:
    """Remove what is left of clusters that ended with the process that they were started for."""
    for node in all_nodes():
        if node.abandoned:
            with contextlib.suppress(LocalError, OSError):
                node.down()


def node_names(cluster: str, size: Size, count: int | None, names: Sequence[str]) -> list[str]:
    """Names of the Kubernetes nodes to have, the first one first. Raises LocalError."""
    if size is not Size.NODE:
        if names:
            raise LocalError(f"Nodes can be named with size node only, not with {size}.")
        return [cluster]
    wanted = max(1, len(names)) if count is None else count
    if not max(1, len(names)) <= wanted <= MOST_NODES:
        raise LocalError(
            f"--nodes is {wanted}; it must be from {max(1, len(names))} "
            f"(the names given) to {MOST_NODES}."
        )
    given = [*names, *(f"{cluster}-{n + 1}" if n else cluster for n in range(len(names), wanted))]
    for name in given:
        check_name(name)
    if len(set(given)) < len(given):
        raise LocalError(f"Two nodes have the same name in {', '.join(given)}.")
    return given


def all_nodes() -> Sequence[Node]:
    """The nodes of this machine."""
    return [Node(folder.name) for folder in record.nodes()]
