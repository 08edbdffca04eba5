"""The same images built by a container engine of the user's, on Debian's public base image."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock import __version__
from penstock.local import progress
from penstock.local.errors import LocalError
from penstock.local.recipes import (
    IMAGES,
    LOCAL,
    OPERATOR,
    PYTHON,
    ROLES,
    SLURM_RECIPES,
    WHEELS,
    Recipe,
    architecture,
    operator_context,
    reference,
    version_tag,
)

BASE = "docker.io/library/debian:forky-slim"
RECIPES = (*SLURM_RECIPES, PYTHON)
PLATFORMS = tuple(f"linux/{arch}" for arch in WHEELS)
ENGINES = ("docker", "buildah", "podman")


def build(
    engine: str,
    base: str,
    push: str | None,
    kind: str | None,
    platforms: Sequence[str] = (),
    *,
    version: str = __version__,
) -> list[str]:
    """Build every image with `engine`; return the references that pods use.

    `push` is a registry with a path (`ghcr.io/example/penstock`): images are named and pushed
    there, with `version` in their tags. `kind` is the name of a kind cluster that docker's images
    are loaded into. `platforms` are such as `linux/arm64`, of which the engine must be able to run
    programs; without any it is this machine's. Of several each has images of its own, named with
    its architecture, and what is returned names the lists of them. Raises LocalError when the
    engine is unknown, absent or fails.
    """
    if engine not in ENGINES:
        raise LocalError(f"--engine takes {', '.join(ENGINES)}; not {engine!r}.")
    if kind and engine != "docker":
        raise LocalError("--kind loads from docker: use --engine docker.")
    if len(platforms) > 1 and (kind or not push):
        raise LocalError(
            "Images of several platforms are a registry's: use --push, without --kind."
        )
    if wrong := [one for one in platforms if one not in PLATFORMS]:
        raise LocalError(f"--platform takes {', '.join(PLATFORMS)}; not {wrong[0]!r}.")
    for tool in (engine, *(["kind"] if kind else [])):
        if shutil.which(tool) is None:
            raise LocalError(f"{tool} is not installed.")
    if len(platforms) > 1 and push:
        return _lists(engine, base, push, platforms, version)
    used = _build_all(engine, base, push, next(iter(platforms), ""), version)
    if push:
        for name in used:
            _run([engine, "push", name])
    if kind:
        _run(["kind", "load", "docker-image", "--name", kind, *used])
    return used


def installed() -> str | None:
    """The first engine that is installed."""
    return next((one for one in ENGINES if shutil.which(one)), None)


def _lists(engine: str, base: str, push: str, platforms: Sequence[str], version: str) -> list[str]:
    """Push the images of each platform, and a list of them in each image's own name."""
    each = [
        _build_all(engine, base, push, one, f"{version}-{one.rpartition('/')[2]}")
        for one in platforms
    ]
    for name in (name for names in each for name in names):
        _run([engine, "push", name])
    found: list[str] = []
    for role, parts in zip(ROLES, zip(*each, strict=True), strict=True):
        name = reference(role, version_tag(role, version), push)
        found.append(name)
        if engine == "docker":
            _run([engine, "buildx", "imagetools", "create", "--tag", name, *parts])
            continue
        mine = f"{name}-list"
        subprocess.run([engine, "manifest", "rm", mine], capture_output=True, check=False)
        _run([engine, "manifest", "create", mine, *parts])
        _run([engine, "manifest", "push", "--all", mine, f"docker://{name}"])
    return found


def _build_all(engine: str, base: str, push: str | None, platform: str, version: str) -> list[str]:
    """The images of one platform with that version in their tags, those that pods use by name."""
    names = {
        one.role: reference(one.role, version_tag(one.role, version), push or LOCAL)
        for one in (*RECIPES, OPERATOR)
    }
    for recipe in RECIPES:
        _build(engine, recipe, IMAGES, names, base, platform)
    with tempfile.TemporaryDirectory(prefix="penstock-operator-") as folder:
        operator_context(Path(folder), platform.rpartition("/")[2] or architecture())
        _build(engine, OPERATOR, Path(folder), names, base, platform)
    return [names[role] for role in ROLES]


def _build(
    engine: str, recipe: Recipe, context: Path, names: dict[str, str], base: str, platform: str
) -> None:
    below = names[recipe.parent.role] if recipe.parent else base
    command = [engine, "build", *(["--platform", platform] if platform else [])]
    command += ["--build-arg", f"{recipe.argument}={below}"]
    command += ["--tag", names[recipe.role], "--file", str(recipe.containerfile), str(context)]
    with progress.step(f"build {names[recipe.role]}"):
        _run(command)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalError(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
