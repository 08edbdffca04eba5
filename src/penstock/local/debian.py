"""Debian packages without touching the machine's own packages.

The archive is the one the machine's apt sources name. Packages are fetched with their
dependencies by an apt that has its own state folders, and unpacked (not installed: no
maintainer script runs) into a folder of the cache.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from penstock.local.cache import digest, keyed
from penstock.local.errors import LocalError
from penstock.local.progress import step

SUITE = "forky"
"""The suite the node's and the images' packages come from (Slurm 26.05, etcd 3.5)."""
MIRROR_VARIABLE = "PENSTOCK_DEBIAN_MIRROR"


def mirror(etc: Path = Path("/etc/apt")) -> str:
    """The address of the Debian archive that this machine's own apt sources name.

    `PENSTOCK_DEBIAN_MIRROR` goes before. Raises LocalError where neither names one.
    """
    message = os.environ.get(MIRROR_VARIABLE)
    if message:
        return message
    for path in (etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))):
        found = sources(path)
        if found:
            return found[0]
    raise LocalError(
        f"No Debian archive is named in {etc}/sources.list or {etc}/sources.list.d. "
        f"Name one in the variable {MIRROR_VARIABLE}."
    )


def sources(path: Path) -> list[str]:
    """Addresses of the Debian main archive in one file of apt's sources (sources.list(5))."""
    if not path.is_file() or path.suffix not in (".list", ".sources"):
        return []
    text = path.read_text()
    uris = _one_line_style(text) if path.suffix == ".list" else _deb822_style(text)
    return [uri for uri in uris if uri.rstrip("/").endswith("/debian")]


def _one_line_style(text: str) -> list[str]:
    uris: list[str] = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words or words[0] != "deb":
            continue
        rest = words[1:]
        if rest and rest[0].startswith("["):
            end = next((i for i, word in enumerate(rest) if word.endswith("]")), len(rest))
            rest = rest[end + 1 :]
        uris.extend(rest[:1])
    return uris


def _deb822_style(text: str) -> list[str]:
    uris: list[str] = []
    for stanza in text.split("\n\n"):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = {
            name.strip().lower(): value.split()
            for name, colon, value in (line.partition(":") for line in lines)
            if colon
        }
        if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"]) != ["no"]:
            uris.extend(fields.get("uris", []))
    return uris


def source_line(suite: str = SUITE) -> str:
    """The archive as a line of sources.list.

    Trusted: an older machine's keyring need not hold the keys of a later suite.
    """
    return f"deb [trusted=yes] {mirror()} {suite} main"


def unpacked(
    name: str,
    packages: Sequence[str],
    *,
    suite: str = SUITE,
    finish: Callable[[Path], None] | None = None,
    version: str = "1",
) -> Path:
    """A cached folder with `packages` and all they depend on, unpacked as one file tree.

    `finish(root)` may add what maintainer scripts would have done; raise `version` when it
    changes. Raises LocalError when apt cannot fetch.
    """

    def build(root: Path) -> None:
        apt = root / ".apt"
        with step(f"fetching {name} from Debian {suite}"):
            for deb in fetch(packages, apt, suite=suite):
                unpack(deb, root)
            shutil.rmtree(apt)
        if finish is not None:
            finish(root)

    return keyed(name, digest(suite, *sorted(packages), "version", version), build)


def fetch(packages: Sequence[str], folder: Path, *, suite: str = SUITE) -> list[Path]:
    """Download `packages` and their dependencies as .deb files; `folder` is apt's own state."""
    for sub in ("lists/partial", "archives/partial", "empty"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(source_line(suite) + "\n")
    options = {
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": folder / "empty",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": folder / "empty",
        "Dir::State": folder,
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",
        "Dir::Cache": folder,
        "Dir::Cache::Archives": folder / "archives",
        "Dir::Log": folder,
        # The Release file of a testing snapshot may be past its Valid-Until.
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "--yes", "--download-only", "install", *packages])
    return sorted((folder / "archives").glob("*.deb"))


def unpack(deb: Path, root: Path) -> None:
    """Unpack one .deb into `root`, through the symlinks that are there."""
    tar = ["tar", "--extract", "--directory", str(root), "--keep-directory-symlink"]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE
    ) as source:
        _run(tar, stdin=source.stdout)
    if source.returncode != 0:
        raise LocalError(f"dpkg-deb cannot read {deb.name}.")


def _run(command: Sequence[str], stdin: IO[bytes] | None = None) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, stdin=stdin, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise LocalError(f"{command[0]} is needed: this part wants a Debian machine.") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise LocalError(f"{command[0]} {command[-1]} failed: {said}")
