"""The first process of a node: makes its namespaces, mounts its files, keeps its processes.

All of a node lives in namespaces of its own, so that two nodes never meet and nothing of one
outlives it: when this process ends, however it ends, the kernel kills every process of its
process namespace, and mounts and network go with them.

Run as `python -m penstock.local.init FOLDER` with a Plan in FOLDER/init.json. Once the pid is
written to FOLDER/init.pid it waits for a line on standard input, and gives up when there is
none: whoever starts a node and dies leaves no process that nobody knows.

After the change of root nothing can be imported any more; what is needed is imported above it.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from penstock.local import linux, process
from penstock.local.plan import Component, Plan

RETRY_FIRST, RETRY_LAST = 0.5, 8.0
"""Seconds before a component that ended is started again: doubled while it keeps ending."""
SETTLED = 10.0
"""A component that ran this many seconds is started again without delay growing."""
TICK = 0.05
OWNER_TICK = 1.0
"""Seconds between two looks at whether the owner has ended."""
CONNECT_TIMEOUT = 1.0
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/sbin:/usr/bin",
    "HOME": "/root",
    # Few objects and many short lives: what is not collected so often costs some 100 MB, and the
    # CPU is what tests and small machines are short of.
    "GOGC": "300",
}
"""Of each component."""


class Supervisor:
    """Starts components once what they need answers, and again whenever they end."""

    def __init__(self, components: Iterable[Component], owner: int | None = None) -> None:
        """`owner` is a pidfd: all ends soon after its process has ended."""
        self._owner = owner
        self._components = {c.name: c for c in components}
        self._waiting = dict.fromkeys(self._components, 0.0)
        self._running: dict[int, tuple[str, float]] = {}
        self._delay = dict.fromkeys(self._components, RETRY_FIRST)

    def run(self) -> None:
        """Run until SIGTERM, or until the owner has ended."""
        signals = {signal.SIGCHLD, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        while True:
            calm = OWNER_TICK if self._owner is not None else 3600.0
            got = signal.sigtimedwait(signals, TICK if self._waiting else calm)
            if got is not None and got.si_signo == signal.SIGTERM:
                return
            if self._owner is not None and select.select([self._owner], [], [], 0)[0]:
                _log("the process that this node was started for has ended")
                return
            self._reap()
            self._start()

    def _start(self) -> None:
        now = time.monotonic()
        for name, due in list(self._waiting.items()):
            if due <= now and all(map(_answers, self._components[name].needs)):
                del self._waiting[name]
                self._running[self._spawn(name)] = (name, now)

    def _spawn(self, name: str) -> int:
        argv = self._components[name].command
        log = f"/var/log/penstock/{name}.log"
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        _log(f"{name} starts")
        return os.posix_spawn(
            argv[0],
            argv,
            ENVIRONMENT,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # Others than components are orphans of containers.
            if pid in self._running:
                name, started = self._running.pop(pid)
                now = time.monotonic()
                if now - started > SETTLED:
                    self._delay[name] = RETRY_FIRST
                self._waiting[name] = now + self._delay[name]
                _log(f"{name} ended ({os.waitstatus_to_exitcode(status)})")
                self._delay[name] = min(2 * self._delay[name], RETRY_LAST)


def _answers(place: str) -> bool:
    """Whether `host:port` or the socket `/path` takes connections, or the file `/path` is there."""
    if Path(place).is_file():
        return True
    unix = place.startswith("/")
    with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as probe:
        probe.settimeout(CONNECT_TIMEOUT)
        host, _, port = place.rpartition(":")
        return probe.connect_ex(place if unix else (host, int(port))) == 0


def _mount(folder: Path, plan: Plan) -> None:
    """Make FOLDER/root the node's root, as only this mount namespace sees it."""
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    root = str(folder / "root")
    upper, work = folder / "upper", folder / "work"
    if plan.overlay:
        layers = f"lowerdir={plan.lower},upperdir={upper},workdir={work}"
        linux.mount("overlay", root, "overlay", data=layers)
    else:
        linux.mount(str(upper), root, flags=linux.MS_BIND)
    linux.mount("proc", f"{root}/proc", "proc")
    linux.mount("sysfs", f"{root}/sys", "sysfs")
    linux.mount("tmpfs", f"{root}/run", "tmpfs", data="mode=755")
    both = linux.MS_BIND | linux.MS_REC
    linux.mount("/dev", f"{root}/dev", flags=both)
    if plan.cgroups:
        linux.mount("/sys/fs/cgroup", f"{root}/sys/fs/cgroup", flags=both)
    linux.mount(str(folder / "var"), f"{root}/var", flags=linux.MS_BIND)
    linux.mount(str(folder / "logs"), f"{root}/var/log/penstock", flags=linux.MS_BIND)
    for source, inside in plan.binds:
        Path(root + inside).mkdir(parents=True, exist_ok=True)
        linux.mount(source, root + inside, flags=linux.MS_BIND)
    _hide_sysctls(folder / "sysctl", Path(root))
    _allow_user_namespaces(folder, root)
    linux.enter_root(root)
    # Pods may ask for mounts that come and go while they run.
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_SHARED)


def _hide_sysctls(folder: Path, root: Path) -> None:
    """Show the kubelet the settings it wants: it would set them for the whole machine."""
    for source in folder.iterdir():
        target = root / "proc/sys" / source.name.replace(".", "/")
        if target.exists():
            linux.mount(str(source), str(target), flags=linux.MS_BIND)


def _allow_user_namespaces(folder: Path, root: str) -> None:
    """Let pods have a user namespace of their own (`hostUsers: false`).

    The kernel permits a new /proc there only beside one that nothing covers, as sysctls cover the
    node's. Volumes are id-mapped, and overlay cannot be: workers of a SlurmCluster mount /boot.
    Sources: mount_too_revealing() of the kernel, mount_setattr(2).
    """
    proc, boot = Path(root, "run/proc"), folder / "boot"
    proc.mkdir()
    linux.mount("proc", str(proc), "proc")
    boot.mkdir(exist_ok=True)
    Path(root, "boot").mkdir(exist_ok=True)
    linux.mount(str(boot), f"{root}/boot", flags=linux.MS_BIND)


def _pidfd(owner: tuple[int, int]) -> int:
    """A file that is readable once the owner has ended; exits when it has ended already."""
    try:
        found = os.pidfd_open(owner[0])
    except ProcessLookupError:
        sys.exit("the process that this node was started for has ended")
    if process.Process.of(owner[0]) != process.Process(*owner):
        sys.exit("the process that this node was started for has ended")
    return found


def _log(text: str) -> None:
    print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text, flush=True)


def main() -> None:
    """Run the node of the folder named on the command line."""
    folder = Path(sys.argv[1])
    plan = msgspec.json.decode((folder / "init.json").read_bytes(), type=Plan)
    # From inside the node no process of the machine can be seen, only what was opened before.
    owner = _pidfd(plan.owner) if plan.owner is not None else None
    linux.unshare(
        linux.CLONE_NEWPID
        | linux.CLONE_NEWNS
        | linux.CLONE_NEWNET
        | linux.CLONE_NEWUTS
        | linux.CLONE_NEWIPC
    )
    child = os.fork()
    if child:
        mine = process.Process.of(child)
        if mine is None:
            sys.exit("the node's first process ended at once")
        process.save(folder / "init.pid", mine)
        os._exit(0)
    if not sys.stdin.readline().strip():
        sys.exit("nobody waits for this node any more")
    socket.sethostname(plan.name)
    _mount(folder, plan)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    Supervisor(plan.components, owner).run()


if __name__ == "__main__":
    main()
