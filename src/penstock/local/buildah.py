"""Images without a registry and without a container engine: Debian's buildah, skopeo, mmdebstrap.

The lowest image is a Debian root made by mmdebstrap from the archive that the machine's own apt
sources name. Layers are kept between builds in one store of the cache, so that a change of the
operator's source makes one small layer.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.local import progress
from penstock.local.cache import cache_dir, digest, keyed, locked
from penstock.local.debian import SUITE, mirror, source_line
from penstock.local.errors import LocalError
from penstock.local.process import Process
from penstock.local.recipes import mounted

TOOLS = ("buildah", "skopeo", "mmdebstrap")
_TOOL_NAMES = tuple(tool.encode() for tool in TOOLS)
END_TIMEOUT = 10.0
"""Seconds that a killed process of a build gets to end."""
NO_DOCUMENTATION = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")


def base(suite: str) -> str:
    """The name of the lowest image: a Debian root of a suite."""
    return f"localhost/penstock-base:{suite}"


def base_key(suite: str) -> str:
    """What a root of this recipe holds; a change of the recipe makes another one."""
    return digest("mmdebstrap", "apt", suite, *NO_DOCUMENTATION)


BASE, BASE_KEY = base(SUITE), base_key(SUITE)


def ensure_tools() -> None:
    """Install what is missing, by the machine's apt-get. Raises LocalError when it cannot."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise LocalError(f"Building images needs root and {', '.join(missing)} on Debian.")
    run(["apt-get", "-qq", "update"])
    options = ["-o", "DPkg::Lock::Timeout=300", "--no-install-recommends"]
    run(["apt-get", "-qq", "-y", *options, "install", *missing])


def usable() -> bool:
    """Whether images can be built here: the tools are there, or apt-get can install them."""
    if os.geteuid() != 0:
        return False
    return shutil.which("apt-get") is not None or all(map(shutil.which, TOOLS))


def base_root(suite: str) -> Path:
    """The tar of a minimal Debian root, cached."""

    def build(folder: Path) -> None:
        with progress.step(f"make a Debian {suite} root"):
            debootstrap(folder)

    def debootstrap(folder: Path) -> None:
        command = ["mmdebstrap", "--quiet", "--variant=apt", "--format=tar"]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"']
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in NO_DOCUMENTATION]
        # The mirror's name is for this build only and does not stay in the image.
        command += ['--customize-hook=rm -f "$1/etc/apt/sources.list" "$1/etc/resolv.conf"']
        command += [suite, str(folder / "root.tar"), source_line(suite)]
        run(command)

    return keyed("image-base", base_key(suite), build) / "root.tar"


@dataclass(frozen=True)
class Store:
    """buildah with a storage of its own."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the tools: caches of apt's lists live under TMPDIR between builds."""
        return {**_proxies(), **os.environ, "TMPDIR": str(self.folder / "tmp")}

    def buildah(self, *arguments: str) -> None:
        """Run buildah on this store. Raises LocalError with its last words."""
        options = ["--root", str(self.folder / "root"), "--runroot", str(self.folder / "run")]
        command = ["buildah", *options, "--storage-driver", "overlay", *arguments]
        run(command, environment=self.environment)

    def has(self, name: str) -> bool:
        """Return whether the store has this image."""
        with suppress(LocalError):
            self.buildah("inspect", "--type", "image", "--format", "{{.FromImageID}}", name)
            return True
        return False

    def import_base(self, suite: str) -> None:
        """Have the Debian root of a suite as an image."""
        if self.has(base(suite)):
            return
        context = self.folder / "base"
        context.mkdir(exist_ok=True)
        (context / "root.tar").unlink(missing_ok=True)
        (context / "root.tar").hardlink_to(base_root(suite))
        (context / "Containerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["/bin/sh"]\n')
        self.buildah("bud", "--isolation", "chroot", "--quiet", "--tag", base(suite), str(context))
        shutil.rmtree(context)

    def build(
        self, containerfile: Path, context: Path, tag: str, arguments: Mapping[str, str]
    ) -> None:
        """Build one image from its Containerfile, on images of this store only."""
        given = {"APT_MIRROR": mirror(), **arguments}
        options = [f"--build-arg={name}={value}" for name, value in given.items()]
        options += ["--isolation", "chroot", "--layers", "--pull-never", "--quiet"]
        self.buildah("bud", *options, "--tag", tag, "-f", str(containerfile), str(context))

    def copy_to(self, name: str, layout: Path) -> None:
        """Add an image to an OCI image layout, layers uncompressed and shared."""
        store = f"[overlay@{self.folder / 'root'}+{self.folder / 'run'}]"
        command = ["skopeo", "copy", "--quiet", "--dest-oci-accept-uncompressed-layers"]
        command += [f"containers-storage:{store}{name}", f"oci:{layout}:{name}"]
        run(command, environment=self.environment)

    def release(self) -> None:
        """Undo the mounts that buildah leaves behind."""
        inside = f"{self.folder}/"
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in reversed([path for path in mounts if path.startswith(inside)]):
            subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)

    def remove(self) -> None:
        """Remove the store with all its layers."""
        self.release()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def store(suite: str = SUITE) -> Generator[Store]:
    """The cache's store, with the tools and the lowest image there, for this process alone.

    Its layers are good while the scripts that RUN steps mount are the same: buildah does not look
    into these. Stores of other scripts are removed.
    """
    name = f"image-store-{digest(BASE_KEY, *mounted())}"
    with locked(cache_dir() / ".image-store.lock"):
        ensure_tools()
        for path in cache_dir().glob("image-store-*"):
            if path.name != name:
                Store(path).remove()
        current = Store(cache_dir() / name)
        (current.folder / "tmp").mkdir(parents=True, exist_ok=True)
        try:
            current.import_base(suite)
            yield current
        finally:
            current.release()


def release_abandoned() -> None:
    """Undo mounts, and end processes, of builds whose command was killed; none is going on then.

    While somebody builds, nothing is done.
    """
    lock = cache_dir() / ".image-store.lock"
    with lock.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for folder in cache_dir().glob("image-store-*"):
            for one in _processes_in(folder):
                if one.signal(signal.SIGKILL):
                    one.wait(END_TIMEOUT)
            Store(folder).release()
        lock.unlink(missing_ok=True)


def _processes_in(folder: Path) -> list[Process]:
    """Buildah and skopeo on the store in `folder`, and what they run below it."""
    mark = str(folder).encode()
    found: list[Process] = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (one / "cmdline").read_bytes().split(b"\0")
            named = words[0].rpartition(b"/")[2] in _TOOL_NAMES and any(mark in w for w in words)
            inside = str((one / "root").readlink()).startswith(f"{folder}/")
            process = Process.of(int(one.name))
            if (named or inside) and process is not None:
                found.append(process)
    return found


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command. Raises LocalError with the end of its output."""
    variables = {**(environment or os.environ), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise LocalError(f"{' '.join(command[:1])} failed ({command[-1]}): {said}")


def _proxies() -> dict[str, str]:
    """The proxies of the machine's apt, as variables that programs in a build understand."""
    found: dict[str, str] = {}
    for scheme in ("http", "https"):
        query = ["apt-config", "shell", "value", f"Acquire::{scheme}::Proxy"]
        done = subprocess.run(query, capture_output=True, text=True, check=False)
        value = done.stdout.strip().removeprefix("value=").strip("'")
        if value and value != "DIRECT":
            found[f"{scheme}_proxy"] = value
    return found
