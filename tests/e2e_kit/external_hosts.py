"""Hosts outside Kubernetes: each with a network, a root directory and processes of its own.

A host is a first process with namespaces of its own, below the node's process namespace but not in
its network: a veth leads to the node, which routes between it and the pods without translating
addresses. Its root is one of our images, for Slurm's programs. The first process ends when its
standard input does. So the kernel ends every process of the host, whatever becomes of the test,
and its mounts, its packet filters and its link go with them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e_kit import delay
from e2e_kit.site import eventually
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.node import Node
from penstock.local.process import Process, load
from penstock.local.recipes import reference

SLURM_UID = 401
"""The user slurm of our images."""
NOBODY = 65534
_NETWORK = "10.{block}.192.0/24"
"""A part of the node's block that neither pods nor Services have."""
_FIRST = """
set -e
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
for folder in run tmp etc/slurm var/log/slurm; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done
exec chroot . /usr/bin/python3 -c "$3" "$2"
"""
_INIT = """
import os, signal, socket, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
socket.sethostname(sys.argv[1])
os.chmod("/tmp", 0o1777)
for name in ("run/slurmctld", "run/slurmdbd", "var/log/slurm", "var/spool/slurmctld", "etc/slurm"):
    os.makedirs("/" + name, exist_ok=True)
    os.chown("/" + name, 401, 401)
os.makedirs("/run/slurm")
os.makedirs("/var/spool/slurmd", exist_ok=True)
print("up", flush=True)
sys.stdin.read()
"""
"""Reaps what Slurm's daemons leave, and waits for the end of whoever started it."""


@dataclass(frozen=True)
class Daemon:
    """A process of a host that goes on."""

    name: str
    process: Process
    starter: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        """What it wrote to its standard output and error."""
        return self.log.read_text(errors="replace")


class Host:
    """One host by its name and address; made by `ExternalHosts`."""

    def __init__(self, node: Node, role: str, name: str, number: int, folder: Path) -> None:
        block = ipaddress.ip_address(node.address).packed[1]
        network = ipaddress.ip_network(_NETWORK.format(block=block))
        self.name = name
        self.gateway, self.address = str(network[4 * number + 1]), str(network[4 * number + 2])
        self.daemons: list[Daemon] = []
        self._node = node
        self._folder = folder
        self._link = f"out{number}"
        self._root = f"/run/outside-{name}"
        self._starter: subprocess.Popen[bytes] | None = None
        self._pid: Process | None = None
        self._inner = 0
        self._image = reference(role)

    def up(self) -> None:
        """Mount its root, start its first process, connect its network."""
        self._node.run("mkdir", "-p", self._root)
        self._node.run(*self._ctr(), "mount", "--rw", self._image, self._root)
        node = first(self._node)
        enter = _enter(node)
        spaces = ["unshare", "--fork", "--pid", "--mount", "--net", "--uts", "--ipc"]
        command = ["/bin/sh", "-c", _FIRST, "sh", self._root, self.name, _INIT]
        errors = self._folder / f"{self.name}-init.log"
        with errors.open("wb") as log:
            self._starter = subprocess.Popen(
                [*enter, *spaces, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        said = self._starter.stdout
        if said is None or said.readline().strip() != b"up":
            raise LocalError(f"The host {self.name} cannot start: {errors.read_text()}")
        # nsenter and unshare both wait for the process that they made.
        self._pid = _below(self._starter.pid, 2)
        if self._pid is None:
            raise LocalError(f"The host {self.name} ended at once")
        self._inner = inner(self._pid, node)
        self._connect()

    def down(self) -> None:
        """End its first process, and with it all of the host; its root goes."""
        if self._pid is not None:
            self._pid.signal(signal.SIGKILL)
        if self._starter is not None:
            for stream in (self._starter.stdin, self._starter.stdout):
                if stream is not None:
                    stream.close()
            self._starter.wait(20)
        for one in self.daemons:
            one.starter.wait(20)
        with contextlib.suppress(LocalError):
            self._node.run(*self._ctr(), "unmount", "--rm", self._root)

    def write(self, path: str, content: bytes, *, owner: int = 0, mode: int = 0o600) -> None:
        """Put a file into its root."""
        script = 'cat >"$1" && chown "$2" "$1" && chmod "$3" "$1"'
        command = ["sh", "-c", script, "sh", path, f"{owner}:{owner}", f"{mode:o}"]
        self._done(command, content)

    def hosts(self, names: Mapping[str, str]) -> None:
        """Have it know these names, each with its address, and its own."""
        lines = [
            f"{address} {name}" for name, address in {**names, self.name: self.address}.items()
        ]
        text = "127.0.0.1 localhost\n" + "".join(f"{line}\n" for line in lines)
        self.write("/etc/hosts", text.encode(), mode=0o644)

    def keys(self, owner: int, **files: bytes) -> None:
        """Put keys to /etc/slurm; `_` in their names stands for a dot."""
        for name, content in files.items():
            self.write(f"/etc/slurm/{name.replace('_', '.')}", content, owner=owner)

    def run(self, *command: str, stdin: str | None = None) -> str:
        """What a command printed there, as root. Raises LocalError when it fails."""
        return self._done(command, stdin.encode() if stdin is not None else None).decode()

    def start(self, *command: str, user: int = 0, env: Mapping[str, str] | None = None) -> Daemon:
        """A process that goes on until it is stopped, or the host is."""
        name = command[0].rpartition("/")[2]
        output = self._folder / f"{self.name}-{name}-{len(self.daemons)}.log"
        # slurmd takes none of another user, and sackd has to write there.
        self.run("chown", f"{user}:{user}", "/run/slurm")
        ids = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")
        settings = ("env", *(f"{key}={value}" for key, value in (env or {}).items()))
        with output.open("wb") as log:
            starter = subprocess.Popen(
                [*self._enter(), *settings, *ids, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            process = eventually(
                f"{name} runs", lambda: _started(starter.pid, name), 30, every=0.05
            )
        except AssertionError as error:
            raise LocalError(f"{error}: {output.read_text(errors='replace')}") from error
        found = Daemon(name, process, starter, output)
        self.daemons.append(found)
        return found

    def stop(self, name: str) -> None:
        """End a program, also one that replaced itself, as Slurm's daemons do at a reconfigure."""
        for process in self.running(name):
            process.signal(signal.SIGTERM)
        try:
            eventually(f"{name} has ended", lambda: not self.running(name), 20)
        except AssertionError:
            for process in self.running(name):
                process.signal(signal.SIGKILL)
                process.wait(20)

    def running(self, name: str) -> list[Process]:
        """The processes of the host that run a program."""
        if self._pid is None:
            return []
        mine = Path(f"/proc/{self._pid.pid}/ns/pid").readlink()
        found: list[Process] = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "ns/pid").readlink() == mine and _program(folder) == name:
                    found += filter(None, [Process.of(int(folder.name))])
        return found

    def log(self, path: str) -> str:
        """The end of a file of its root; empty when there is none."""
        with contextlib.suppress(LocalError):
            return self.run("tail", "-n", "40", path)
        return ""

    @contextlib.contextmanager
    def filtered(self, *rule: str) -> Generator[None]:
        """While it lasts a packet filter of the host has this rule first (`iptables -I`)."""
        self._net("iptables", "-w", "-I", *rule)
        try:
            yield
        finally:
            self._net("iptables", "-w", "-D", *rule)

    @contextlib.contextmanager
    def delayed(self, milliseconds: int) -> Generator[None]:
        """While it lasts every packet to and from the host takes so much longer."""
        pids = [str(one.pid) for one in (first(self._node), self._pid) if one is not None]
        command = [sys.executable, delay.__file__, str(milliseconds), *pids]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as link:
            if link.stdout is None or link.stdin is None or link.stdout.readline() != b"up\n":
                raise LocalError(f"the link of {self.name} cannot be delayed")
            self._net("ip", "link", "set", delay.DEVICE, "up")
            self._node.run("ip", "link", "set", delay.DEVICE, "up")
            self._node.run("ip", "route", "add", f"{self.address}/32", "dev", delay.DEVICE)
            for half in ("0.0.0.0/1", "128.0.0.0/1"):
                self._net("ip", "route", "add", half, "dev", delay.DEVICE, "src", self.address)
            try:
                yield
            finally:
                link.stdin.close()

    def _connect(self) -> None:
        """The veth, an address on each side, and the way to everything by the node."""
        peer = ("peer", "name", "eth0", "netns", str(self._inner))
        self._node.run("ip", "link", "add", self._link, "type", "veth", *peer)
        self._node.run("ip", "address", "add", f"{self.gateway}/30", "dev", self._link)
        self._node.run("ip", "link", "set", self._link, "up")
        for words in (
            "link set lo up",
            f"address add {self.address}/30 dev eth0",
            "link set eth0 up",
            f"route add default via {self.gateway}",
        ):
            self._net("ip", *words.split())

    def _net(self, *command: str) -> None:
        """One of the node's programs, in the host's network."""
        self._node.run("nsenter", "--target", str(self._inner), "--net", "--", *command)

    def _ctr(self) -> tuple[str, ...]:
        config = self._node.run("cat", "/etc/containerd/config.toml")
        line = next(one for one in config.splitlines() if one.startswith("snapshotter"))
        kind = line.partition('"')[2].rstrip('"')
        given = ("env", f"CONTAINERD_SNAPSHOTTER={kind}", "/usr/bin/ctr")
        return (*given, "--namespace", "k8s.io", "images")

    def _enter(self) -> list[str]:
        if self._pid is None or not self._pid.alive:
            raise LocalError(f"The host {self.name} does not run.")
        return _enter(self._pid)

    def _done(self, command: Sequence[str], stdin: bytes | None) -> bytes:
        done = subprocess.run(
            [*self._enter(), *command], input=stdin or b"", capture_output=True, check=False
        )
        if done.returncode != 0:
            said = (done.stderr + done.stdout).decode(errors="replace").strip()
            raise LocalError(f"{' '.join(command)} failed on {self.name}: {said}")
        return done.stdout


class ExternalHosts:
    """The hosts of a test module."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.hosts: list[Host] = []
        self._node = node
        self._folder = folder
        self._numbers = itertools.count()

    def host(self, role: str, name: str) -> Host:
        """A host that has what the image of this role has."""
        made = Host(self._node, role, name, next(self._numbers), self._folder)
        self.hosts.append(made)
        made.up()
        return made

    def down(self) -> None:
        """Remove all of them, also one that came up only in part."""
        for one in self.hosts:
            one.down()


@contextlib.contextmanager
def external_hosts(node: Node, folder: Path) -> Generator[ExternalHosts]:
    """Hosts outside of the cluster; logs go to `folder`. They are gone at the end."""
    made = ExternalHosts(node, folder)
    try:
        yield made
    finally:
        made.down()


def _enter(process: Process) -> list[str]:
    """What leads a command into the namespaces and the root of a process."""
    spaces = ("--mount", "--uts", "--ipc", "--net", "--pid")
    return ["nsenter", "--target", str(process.pid), *spaces, "--root", "--wd", "--"]


def first(node: Node) -> Process:
    """The node's first process. Raises LocalError when it does not run."""
    found = load(Layout(node.name).pid)
    if found is None:
        raise LocalError(f"The node {node.name} does not run.")
    return found


def _below(pid: int, levels: int) -> Process | None:
    """The only child of the only child, so many levels below a process, once it is there."""
    found = Process.of(pid)
    for _ in range(levels):
        children = list(found.children().values()) if found is not None else []
        found = children[0] if len(children) == 1 else None
    return found


def _started(pid: int, name: str) -> Process | None:
    """The process below nsenter that runs this program, once it does."""
    found = _below(pid, 1)
    if found is None:
        return None
    return found if _program(Path(f"/proc/{found.pid}")) == name else None


def _program(folder: Path) -> str:
    """What a process runs, by its folder in /proc."""
    return (folder / "cmdline").read_bytes().split(b"\0")[0].decode().rpartition("/")[2]


def inner(process: Process, node: Process) -> int:
    """The number of a process in the node's process namespace."""
    numbers = _numbers(process)
    return numbers[len(_numbers(node)) - 1]


def _numbers(process: Process) -> list[int]:
    """Its numbers from our process namespace inwards (proc(5), NSpid)."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return [int(word) for word in line.split()[1:]]
    raise LookupError(f"process {process.pid} has no NSpid")
