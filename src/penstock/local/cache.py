"""What was compiled or fetched once, kept in the user's cache folder.

Each entry is a folder named after what it holds and a digest of everything it was made from,
so an entry never changes: other versions or flags give another entry. Entries appear complete
or not at all, whoever is killed while making one.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/penstock`, or `~/.cache/penstock`; made when absent."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "penstock"
    path.mkdir(parents=True, exist_ok=True)
    return path


def digest(*parts: str | bytes) -> str:
    """A short name for what an entry is made from; the order and borders of parts count."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode() + data)
    return total.hexdigest()[:16]


def entry(name: str, key: str) -> Path:
    """Where the entry is, made or not."""
    return cache_dir() / f"{name}-{key}"


def keyed(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of entry `name`-`key`; `build(folder)` fills it when it is absent.

    Two processes that need the same entry build it once: the second waits. An error of `build`
    is raised and leaves nothing.
    """
    path = entry(name, key)
    if path.is_dir():
        return path
    with locked(cache_dir() / f".{path.name}.lock"):
        if path.is_dir():
            return path
        _drop_unfinished(path.name)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".new", dir=cache_dir()))
        try:
            work.chmod(0o755)
            build(work)
            work.rename(path)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return path


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file `path`, waiting for it; it is removed afterwards."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        # The holder before us removed the file: what we hold is then nobody's lock any more.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                break
        os.close(handle)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _drop_unfinished(name: str) -> None:
    """Remove what a builder killed in the middle left; only under the entry's lock."""
    for left in cache_dir().glob(f".{name}.*.new"):
        shutil.rmtree(left, ignore_errors=True)
