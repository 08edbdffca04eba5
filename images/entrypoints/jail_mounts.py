"""Completes the jail: mounts below /mnt/jail which make of a shared folder the root of a container.

The volume is written by root of the jail, who may put a symbolic link anywhere. So no path is
resolved twice: each target is opened name by name without following links, and the mount is made
on the descriptor. Each folder above a read-only one is a mount point as well: the kernel renames no
mount point, so nobody can put another folder in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jail_driver
from jail_driver import Driver
from supervise import say

JAIL = "/mnt/jail"
UPPER = "/mnt/jail.upper"
"""Volumes of the pod are mounted below it, and moved to the same path below the jail."""
TREE = "/opt/penstock/slurm"
"""Clients of Slurm and munge with libraries of their own."""
KERNEL = ("proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger")
"""Their permission bits allow uid 0 to write, whatever capabilities it lacks."""
FILES = ("etc/hosts", "etc/hostname", "etc/resolv.conf")
TMP = "/tmp"  # noqa: S108 - the container's own, shared with its sessions and steps
SSSD = "/var/lib/sss/pipes"
CONTAINERS = {"/run/pyxis": 0o755, "/run/enroot": 0o1777}
"""Folders of the node for Pyxis (runtime_path) and enroot (ENROOT_RUNTIME_PATH), with their modes.
They are the container's: images in them may be large, and the jail's /run is memory."""
# Its new system calls do not follow /proc/self/fd/N.
ENVIRONMENT = {**os.environ, "LIBMOUNT_FORCE_MOUNT2": "always"}
FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY


NO_LINK = "; it must be a folder or file, and no symbolic link"


class MountError(Exception):
    """A mount of the jail that cannot be made, in words for the container's log."""


@dataclass(frozen=True)
class Mount:
    """One mount: `target` is a path in the jail, `source` a path of the container.

    Without `source` the target is bound on itself. `kind` is a file system to make in its place.
    """

    target: str
    source: str = ""
    kind: str = ""
    options: str = ""
    read_only: bool = False
    move: bool = False
    optional: bool = False
    """Whether it is left out where the source (or the target on itself) is absent."""


def mount_points(mountinfo: str) -> list[str]:
    """Return the mount points of /proc/self/mountinfo, in its order."""
    return [
        line.split()[4].encode().decode("unicode_escape")
        for line in mountinfo.splitlines()
        if len(line.split()) > 4
    ]


def sub_mounts(points: Iterable[str]) -> list[str]:
    """Return paths in the jail of the pod's volumes below /mnt/jail.upper.

    A volume on the upper folder itself is the jail's own (`mountPath: /`), and changes nothing. One
    within another is moved with it.
    """
    found: list[str] = []
    for point in sorted({one for one in points if one.startswith(f"{UPPER}/")}):
        path = point.removeprefix(f"{UPPER}/")
        if not any(path.startswith(f"{other}/") for other in found):
            found.append(path)
    return found


def parents(path: str) -> list[str]:
    """Return the folders above a path, the highest one first."""
    names = path.split("/")[:-1]
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def plan(
    moved: Sequence[str],
    plugins: Sequence[str],
    auth: str,
    spool: str,
    driver: Driver | None = None,
) -> list[Mount]:
    """Return the mounts in their order.

    `moved` are the pod's volumes, `plugins` the folders of Slurm's plug-ins, `auth` that of the
    socket by which clients sign messages, `spool` slurmd's folder (empty in a login), `driver` that
    of the container's GPUs.
    """
    driver = driver or Driver()
    own = [*plugins, TREE, *([spool] if spool else [])]
    owned = [path.strip("/") for path in own]
    protected: list[str] = []
    for path in ("etc/slurm", *owned):
        protected += [folder for folder in parents(path) if folder not in protected]
    inside = auth.replace("/var/run/", "/run/", 1)
    return [
        *(Mount(path) for path in protected),
        *(Mount(path, f"{UPPER}/{path}", move=True) for path in moved),
        Mount("proc", kind="proc", options="nosuid,nodev,noexec"),
        *(Mount(path, read_only=True, optional=True) for path in KERNEL),
        Mount("sys", "/sys"),
        Mount("dev", "/dev"),
        Mount("run", kind="tmpfs", options="mode=755,nosuid,nodev"),
        Mount(inside.strip("/"), auth),
        *(Mount(path.strip("/"), path) for path in CONTAINERS),
        Mount("tmp", TMP),
        *(Mount(path, f"/{path}", optional=True) for path in FILES),
        Mount(SSSD.strip("/"), SSSD, optional=True),
        *([Mount(spool.strip("/"), spool)] if spool else []),
        *(Mount(path.strip("/"), path, read_only=True) for path in (*plugins, TREE)),
        *_driver_mounts(driver),
    ]


def _driver_mounts(driver: Driver) -> list[Mount]:
    """The driver's files over their placeholders, and its daemons' folders."""
    if not driver.libraries and not driver.programs:
        return []
    folders = ((jail_driver.LIBRARIES, driver.libraries), (jail_driver.PROGRAMS, driver.programs))
    files = [
        Mount(f"{folder}/{name}", source, read_only=True)
        for folder, found in folders
        for name, source in found.items()
    ]
    sockets = [Mount(path.strip("/"), path, optional=True) for path in jail_driver.SOCKETS]
    return [Mount(jail_driver.LIBRARIES), *files, *sockets]


class Jail:
    """The jail's folder, and the mounts that are made below it."""

    def __init__(
        self, path: str = JAIL, run: Callable[[Sequence[str], Sequence[int]], None] | None = None
    ) -> None:
        self.path = path
        self._run = run or _mount

    def complete(self, mounts: Iterable[Mount]) -> None:
        """Make the mounts, and last Slurm's configuration, read-only. Raises MountError.

        A volume of the pod on the jail's etc does not hide it: it is opened before.
        """
        with self._opened("etc/slurm", folder=True) as configuration:
            for one in mounts:
                self.mount(one)
            with self._opened("etc/slurm", folder=True) as target:
                self._bind(configuration, target)
            self._make_read_only("etc/slurm")

    def link(self, folder: str, names: Iterable[str], source: str) -> None:
        """Link programs into a folder of the jail where it has none of the name."""
        with self._opened(folder, folder=True) as fd:
            for name in names:
                with contextlib.suppress(FileExistsError):
                    os.symlink(f"{source}/{name}", name, dir_fd=fd)

    def folder(self, path: str) -> contextlib.AbstractContextManager[int]:
        """Open a folder of the jail, which is made when it is absent. Raises MountError."""
        return self._opened(path, folder=True)

    def mount(self, one: Mount) -> None:
        """Make one mount. Raises MountError."""
        if one.optional and not Path(one.source or f"{self.path}/{one.target}").exists():
            return
        if one.kind:
            with self._opened(one.target, folder=True) as target:
                self._run(["-t", one.kind, "-o", one.options, one.kind, _name(target)], [target])
        elif one.source:
            self._make_from(one)
        else:
            with self._opened(one.target, folder=None if one.optional else True) as target:
                self._bind(target, target)
        if one.read_only:
            self._make_read_only(one.target)

    def _make_from(self, one: Mount) -> None:
        """A folder or file of the container on a target of the same kind."""
        source = os.open(one.source, os.O_PATH | os.O_CLOEXEC)
        try:
            folder = stat.S_ISDIR(os.fstat(source).st_mode)
            with self._opened(one.target, folder=folder) as target:
                if one.move:
                    self._run(["--move", one.source, _name(target)], [target])
                else:
                    self._bind(source, target)
        finally:
            os.close(source)

    def _bind(self, source: int, target: int) -> None:
        self._run(["--rbind", _name(source), _name(target)], [source, target])

    def _make_read_only(self, path: str) -> None:
        """The target is opened again: a descriptor of before leads below the mount."""
        options = "remount,bind,ro"
        if path.startswith("proc/"):
            options += ",nosuid,nodev,noexec"
        with self._opened(path, folder=None) as target:
            self._run(["-o", options, _name(target)], [target])

    @contextlib.contextmanager
    def _opened(self, path: str, *, folder: bool | None) -> Generator[int]:
        """A path of the jail as a descriptor: a folder, a file, or with None either of them.

        A folder or file that is named is made when it is absent. Raises MountError.
        """
        fd = os.open(self.path, FOLDER)
        try:
            names = path.split("/")
            for count, name in enumerate(names, 1):
                above, fd = fd, -1
                try:
                    fd = _step(above, name, folder if count == len(names) else True)
                except OSError as error:
                    found = f"{self.path}/{'/'.join(names[:count])}"
                    raise MountError(f"{found}: {error.strerror}{NO_LINK}") from error
                finally:
                    os.close(above)
            yield fd
        finally:
            if fd >= 0:
                os.close(fd)


def _step(parent: int, name: str, folder: bool | None) -> int:
    """Open one name below a descriptor; made when it is absent, unless `folder` is None."""
    flags = FOLDER if folder else FOLDER & ~os.O_DIRECTORY
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(name, flags, dir_fd=parent)
        if folder or not stat.S_ISLNK(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        if folder is None:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        # As resolv.conf often is: a file in its place is mounted upon in each container.
        os.unlink(name, dir_fd=parent)
    with contextlib.suppress(FileExistsError):  # another pod may have made it
        if folder:
            os.mkdir(name, 0o755, dir_fd=parent)
        elif folder is False:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=parent))
    return os.open(name, flags, dir_fd=parent)


def _name(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _mount(words: Sequence[str], descriptors: Sequence[int]) -> None:
    done = subprocess.run(
        ["mount", "--no-canonicalize", *words],
        env=ENVIRONMENT,
        pass_fds=descriptors,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MountError(f"mount {' '.join(words)} failed: {done.stderr.strip()}")


def plugin_folders() -> list[str]:
    """Return the compiled-in folder of Slurm's plug-ins, and the name that PluginDir may have."""
    found = sorted(str(path.parent) for path in Path("/usr/lib").glob("*/*/auth_munge.so"))
    return [*found[:1], "/usr/lib/slurm"]


def complete_here(auth: str, spool: str = "") -> None:
    """Complete the jail of this container, with links to the clients. Raises MountError."""
    Path(TMP).chmod(0o1777)
    for path, mode in CONTAINERS.items():
        Path(path).mkdir(exist_ok=True)
        Path(path).chmod(mode)
    points = mount_points(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    driver = jail_driver.find(points)
    jail = Jail()
    offer(jail, driver)
    jail.complete(plan(sub_mounts(points), plugin_folders(), auth, spool, driver))
    jail.link(
        "usr/local/bin", sorted(path.name for path in Path(TREE, "bin").iterdir()), f"{TREE}/bin"
    )
    jail.link("usr/local/bin", sorted(driver.programs), f"/{jail_driver.PROGRAMS}")


def offer(jail: Jail, driver: Driver) -> None:
    """Have programs of the jail find the driver's libraries. Raises MountError."""
    if not driver.libraries:
        return
    try:
        found = jail_driver.Volume(jail.path, jail.folder).offer(driver.libraries)
    except OSError as error:
        raise MountError(f"the GPU driver cannot be offered: {error}") from error
    if not found:
        folder = f"/{jail_driver.LIBRARIES}"
        say(f"/etc/ld.so.conf of the jail lacks {folder}: jobs need LD_LIBRARY_PATH={folder}")
