"""What the images are made from: a Containerfile each, what it copies, and the image below it."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock import __version__
from penstock.local.cache import cache_dir, digest, keyed
from penstock.local.debian import SUITE
from penstock.local.errors import LocalError

ROOT = Path(__file__).parents[3]
"""The checkout: images are built from its folders, which are no part of the Python package."""
IMAGES = ROOT / "images"


@dataclass(frozen=True)
class Release:
    """A major release of Slurm, which is the images' tag, and the Debian suite that has it."""

    tag: str
    suite: str


LATEST = Release("26.05", SUITE)
OLDEST = Release("24.11", "trixie")
RELEASES = (LATEST, OLDEST)
"""The recipes are the same for each: what they install is what the base image's suite has."""
TAG = LATEST.tag
LOCAL = "localhost/penstock"
"""Prefix of images that are loaded into nodes: `localhost` is a registry to no one but the node."""
OPERATOR_PARTS = (
    "base",
    "catalog",
    "slurm",
    "api",
    "model",
    "translate",
    "render",
    "decide",
    "kube",
    "controllers",
)
OPERATOR_PYTHON = "3.14"
"""Python of Debian forky, which the operator's wheels must fit."""
WHEELS = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
"""By architecture of images what uv calls the machine that wheels are for."""
_COPY = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)
_BIND = re.compile(r"--mount=type=bind,source=([^,\s]+)")


@dataclass(frozen=True)
class Recipe:
    """One image. `argument` is the build argument that names the image below, `parent`.

    `also` are further build arguments and the images that they name, from which files are copied;
    those are built on the same lowest image.
    """

    role: str
    argument: str = "BASE"
    parent: "Recipe | None" = None
    also: "tuple[tuple[str, Recipe], ...]" = ()

    @property
    def containerfile(self) -> Path:
        """Where it is written how to build this image."""
        return IMAGES / self.role / "Containerfile"

    def sources(self, context: Path | None = None) -> list[Path]:
        """Files that the Containerfile reads from the build context (the images folder)."""
        context = context or IMAGES
        text = self.containerfile.read_text()
        words = [word for line in _COPY.findall(text) for word in line.split()]
        found: list[Path] = []
        for path in (context / word for word in (*words, *_BIND.findall(text))):
            found += [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
        return sorted(found)

    def key(self, base: str, context: Path | None = None) -> str:
        """A digest of all that decides what is in the image; `base` is the lowest image's."""
        below = self.parent.key(base) if self.parent else base
        parts: list[str | bytes] = [below, self.containerfile.read_bytes()]
        parts += [other.key(base) for _, other in self.also]
        for path in self.sources(context):
            parts += [str(path.relative_to(context or IMAGES)), path.read_bytes()]
        return digest(*parts)


def mounted(context: Path = IMAGES) -> list[bytes]:
    """The files that RUN steps of any image mount, which are no part of what they copy."""
    texts = (path.read_text() for path in context.glob("*/Containerfile"))
    names = {name for text in texts for name in _BIND.findall(text)}
    return [(context / name).read_bytes() for name in sorted(names)]


SLURM = Recipe("slurm")
SSH = Recipe("ssh", "SLURM", SLURM)
_SLURMCTLD = Recipe("slurmctld", "SLURM", SLURM)
_SLURMD = Recipe("slurmd", "SSH", SSH)
SLURM_RECIPES = (
    SLURM,
    SSH,
    _SLURMCTLD,
    Recipe("slurmrestd", "SLURM", SLURM),
    Recipe("slurmdbd", "SLURM", SLURM),
    Recipe("login", "SSH", SSH),
    _SLURMD,
)
"""Each after the one it is built on."""
PYTHON = Recipe("python")
OPERATOR = Recipe("operator", "PYTHON", PYTHON)
MUNGE = Recipe("munge")
POPULATE_JAIL = Recipe("populate-jail")
JAIL = Recipe("jail", "SLURMD", _SLURMD)
JAIL_RECIPES = (
    MUNGE,
    JAIL,
    Recipe("jail-slurmd", "JAIL", JAIL),
    Recipe("jail-login", "JAIL", JAIL),
    Recipe("jail-slurmctld", "SLURMCTLD", _SLURMCTLD, (("JAIL", JAIL),)),
)
"""Images of a SlurmCluster, each after those that it is built from."""
NFS_SERVER = Recipe("nfs-server")
"""A server for a jail without a class of ReadWriteMany."""
BACKUP = Recipe("backup")
"""restic, which the Jobs of Backups and Restores run."""
JAIL_SUITE = OLDEST.suite
"""The Debian suite of the jail's own root, whichever the daemons come from."""
JAIL_ROLES = ("munge", "populate-jail", "jail-slurmctld", "jail-slurmd", "jail-login")
"""Images that pods of a SlurmCluster run, beside the operator's."""
ROLES = ("slurmctld", "slurmd", "slurmrestd", "slurmdbd", "login", "slurm", "operator")
"""Images that pods run; `slurm` is the sidecars'."""


def reference(role: str, tag: str = TAG, registry: str = LOCAL) -> str:
    """The name that a pod gives an image."""
    return f"{registry}/{role}:{tag}"


def version_tag(role: str, version: str = __version__, release: str = TAG) -> str:
    """The tag of an image of one version of Penstock: `0.1.0`, of Slurm's images `26.05-0.1.0`.

    The operator reads Slurm's release from the beginning of a tag.
    """
    return version if role in (OPERATOR.role, PYTHON.role) else f"{release}-{version}"


def architecture(machine: str = "") -> str:
    """The architecture of images for a machine (os.uname().machine); this one when it is empty."""
    name = machine or os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(name, name)


def operator_context(folder: Path, arch: str) -> None:
    """Fill the build context of the operator's image: its wheels, its source and its programs.

    Raises LocalError when the wheels cannot be fetched, or when there are none.
    """
    if not IMAGES.is_dir():
        raise LocalError(f"Images are built from a checkout of the project; {IMAGES} is none.")
    shutil.copytree(_wheels(arch), folder / "site")
    programs = folder / "bin"
    programs.mkdir()
    for program in ("slurm_operator", "sconfigcontroller", "soperator-exporter", "rebooter"):
        shutil.copy2(IMAGES / OPERATOR.role / program, programs)
    source, target = ROOT / "src/penstock", folder / "src/penstock"
    target.mkdir(parents=True)
    for path in source.glob("*.py"):
        shutil.copy2(path, target)
    for part in OPERATOR_PARTS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source / part, target / part, ignore=ignore)


def _wheels(arch: str) -> Path:
    """The libraries of requirements/operator.txt for the image's Python, by uv, cached."""
    locked = ROOT / "requirements/operator.txt"
    if arch not in WHEELS:
        raise LocalError(f"There are no wheels for {arch}: images are for {', '.join(WHEELS)}.")
    platform = WHEELS[arch]

    def build(folder: Path) -> None:
        command = [_uv(), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        command += ["--only-binary", ":all:", "--python-version", OPERATOR_PYTHON]
        command += ["--python-platform", platform, "--target", str(folder), "-r", str(locked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LocalError(f"The operator's wheels cannot be fetched: {done.stderr.strip()}")
        for extra in ("bin", ".lock"):
            shutil.rmtree(folder / extra, ignore_errors=True)

    return keyed("operator-wheels", digest(locked.read_bytes(), OPERATOR_PYTHON, platform), build)


def _uv() -> str:
    """The uv of scripts/bootstrap, or one on the path."""
    for path in sorted(cache_dir().glob("uv-*/bin/uv"), reverse=True):
        return str(path)
    found = shutil.which("uv")
    if found is None:
        raise LocalError("uv is missing: run scripts/bootstrap.")
    return found
