"""Offers a jail the driver that a GPU runtime put into the container: libraries and programs.

The NVIDIA container toolkit mounts the driver's files one by one between those of the image; other
runtimes mount a folder, /usr/local/nvidia. They fit the kernel of one Kubernetes node, while the
jail is shared by all nodes. So the files are mounted in the jail, over files without content:

* libraries in LIBRARIES, a folder that the jail's dynamic linker searches. Its cache is shared too.
  ldconfig writes it, with the libraries that it finds, and may run where there is no driver, as
  packages run it in a login. So all nodes have a placeholder for each library, which ldconfig takes
  for a library of the name, and which no program can load;
* programs in PROGRAMS, which is each container's own. Links lead there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LIBRARIES = "opt/penstock/driver"
"""In the jail's volume, which all nodes share."""
PROGRAMS = "run/penstock/driver"
"""In the jail's /run, which is the container's own."""
SOCKETS = ("/run/nvidia-persistenced", "/run/nvidia-fabricmanager")
"""Folders of the driver's daemons, with the sockets that its libraries connect to."""
VENDOR = "/usr/local/nvidia"
"""The folder of runtimes that mount no single files."""
SEARCH = "etc/ld.so.conf.d/penstock-driver.conf"
CACHE = "etc/ld.so.cache"
LOCK = ".lock"
LOCK_SECONDS = 30.0
PAUSE_SECONDS = 0.1
LIBRARY = re.compile(
    r"lib(?:cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[\w-]+|\w+_nvidia)\.so(?:\.[\d.]+)?"
)
PROGRAM = re.compile(r"nvidia-[\w-]+")
# A line of `ldconfig -v`: the name that programs ask for, and the file that has it.
LINE = re.compile(r"\s+(\S+) -> (\S+)")
ELF = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
ENTRY = struct.Struct("<qQ")
PT_DYNAMIC, DT_NULL, DT_STRTAB, DT_STRSZ, DT_SONAME = 2, 0, 5, 10, 14
ET_DYN, ELF64_LITTLE = 3, b"\x7fELF\x02\x01"


@dataclass(frozen=True)
class Driver:
    """The driver's files in the container: names that programs ask for, and their paths."""

    libraries: Mapping[str, str] = field(default_factory=dict[str, str])
    programs: Mapping[str, str] = field(default_factory=dict[str, str])


def find(points: Iterable[str], vendor: Path = Path(VENDOR)) -> Driver:
    """Find the driver among mount points of the container, and in the runtime's own folder."""
    files = [Path(point) for point in points]
    mounted = {str(path) for path in files if LIBRARY.fullmatch(path.name)}
    own = next((path for path in (vendor / "lib64", vendor / "lib") if path.is_dir()), None)
    libraries = {} if own is None else names([str(own)])
    for name, path in names(sorted({str(Path(one).parent) for one in mounted})).items():
        if path in mounted:
            libraries[name] = path
    # One that the pod mounts from its Kubernetes node is an empty file where the node has none.
    programs = {
        path.name: str(path)
        for path in [*(vendor / "bin").glob("*"), *files]
        if PROGRAM.fullmatch(path.name) and path.parent.name == "bin" and os.access(path, os.X_OK)
    }
    return Driver(libraries, programs)


def names(folders: Sequence[str]) -> dict[str, str]:
    """Return the driver's libraries in folders by the names under which programs load them."""
    if not folders:
        return {}
    listed = subprocess.run(
        ["ldconfig", "-N", "-X", "-n", "-v", *folders],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = {}
    folder = ""
    for line in listed.stdout.splitlines():
        if line.startswith("/"):
            folder = line.partition(":")[0]
        elif (match := LINE.match(line)) and LIBRARY.fullmatch(match[1]):
            found.setdefault(match[1], str(Path(folder, match[2]).resolve()))
    return found


def placeholder(name: str, library: bytes) -> bytes:
    """Return a library of a name for the machine of `library`, without anything to load.

    ldconfig puts it into its cache. The dynamic linker rejects it (`no loadable segments`), and the
    program goes on as without a driver.
    """
    text = b"\0" + name.encode() + b"\0"
    where = ELF.size + SEGMENT.size
    entries = [(DT_STRTAB, where + 4 * ENTRY.size), (DT_STRSZ, len(text)), (DT_SONAME, 1)]
    dynamic = b"".join(ENTRY.pack(*one) for one in [*entries, (DT_NULL, 0)])
    identity, _, machine, version, *_, flags, _, _, _, _, _, _ = ELF.unpack(library[: ELF.size])
    sizes = (ELF.size, SEGMENT.size, 1, 0, 0, 0)
    header = ELF.pack(identity, ET_DYN, machine, version, 0, ELF.size, 0, flags, *sizes)
    length = len(dynamic)
    segment = SEGMENT.pack(PT_DYNAMIC, 4, where, where, where, length, length, 8)
    return header + segment + dynamic + text


class Volume:
    """The jail's volume, which is changed by its own root and by other containers meanwhile.

    `folder` opens a folder of it without following links, and makes it where it is absent.
    """

    def __init__(
        self, root: str, folder: Callable[[str], contextlib.AbstractContextManager[int]]
    ) -> None:
        self._root = root
        self._folder = folder

    def offer(self, libraries: Mapping[str, str]) -> bool:
        """Have the jail's dynamic linker find the libraries, in LIBRARIES.

        Return whether it does: a jail may have an ld.so.conf that includes no other file.
        """
        search, _, file = SEARCH.rpartition("/")
        with self._folder(LIBRARIES) as own, self._folder(search) as beside, _locked(own):
            changed = [
                _place(own, name, placeholder(name, _header(path)))
                for name, path in libraries.items()
            ]
            changed.append(_place(beside, file, f"/{LIBRARIES}\n".encode()))
            if any(changed) or not self._has_cached(libraries):
                self._write_cache()
        return self._has_cached(libraries)

    def _has_cached(self, libraries: Iterable[str]) -> bool:
        folder, _, file = CACHE.rpartition("/")
        with self._folder(folder) as fd:
            cache = _content(fd, file)
        return all(f"/{LIBRARIES}/{name}\0".encode() in cache for name in libraries)

    def _write_cache(self) -> None:
        """Run the container's own ldconfig: the jail's may be any program. Links stay."""
        folder, _, file = CACHE.rpartition("/")
        new = f".{file}.{socket.gethostname()}"
        done = subprocess.run(
            ["ldconfig", "-X", "-r", self._root, "-C", f"/{folder}/{new}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise OSError(f"ldconfig of the jail failed: {done.stderr.strip()}")
        with self._folder(folder) as fd:
            os.replace(new, file, src_dir_fd=fd, dst_dir_fd=fd)


def _header(path: str) -> bytes:
    with Path(path).open("rb") as file:
        found = file.read(ELF.size)
    if len(found) < ELF.size or not found.startswith(ELF64_LITTLE):
        raise OSError(f"{path} is no library of 64 bits")
    return found


def _content(folder: int, name: str) -> bytes:
    """Return what a file has, or nothing where it is absent or no file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read() if regular else b""
    except OSError:
        return b""


def _place(folder: int, name: str, content: bytes) -> bool:
    """Put a file into place by rename, unless it is there; return whether it was not."""
    if _content(folder, name) == content:
        return False
    new = f".{name}.{socket.gethostname()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=folder)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    with os.fdopen(os.open(new, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
    os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


@contextlib.contextmanager
def _locked(folder: int) -> Generator[None]:
    """One container at a time, as long as the volume has locks and nobody keeps it.

    Without it the cache may lack what another container adds meanwhile.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(LOCK, flags, 0o600, dir_fd=folder)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < until:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(PAUSE_SECONDS)
            except OSError:
                break
            else:
                break
        yield
    finally:
        os.close(fd)
