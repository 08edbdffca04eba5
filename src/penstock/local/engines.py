"""The same images built by a container engine of the user's, on Debian's public base image."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.local import progress
from penstock.local.errors import LocalError
from penstock.local.recipes import (
    IMAGES,
    OPERATOR,
    PYTHON,
    ROLES,
    SLURM_RECIPES,
    Recipe,
    operator_context,
    reference,
)

BASE = "docker.io/library/debian:forky-slim"
RECIPES = (*SLURM_RECIPES, PYTHON)
ENGINES = ("docker", "buildah", "podman")


def build(engine: str, base: str, push: str | None, kind: str | None) -> list[str]:
    """Build every image with `engine`; return the references that pods use.

    `push` is a registry with a path (`ghcr.io/example/penstock`): images are named and pushed
    there. `kind` is the name of a kind cluster that docker's images are loaded into. Raises
    LocalError when the engine is unknown, absent or fails.
    """
    if engine not in ENGINES:
        raise LocalError(f"--engine takes {', '.join(ENGINES)}; not {engine!r}.")
    if kind and engine != "docker":
        raise LocalError("--kind loads from docker: use --engine docker.")
    for tool in (engine, *(["kind"] if kind else [])):
        if shutil.which(tool) is None:
            raise LocalError(f"{tool} is not installed.")
    names = {recipe.role: _name(recipe.role, push) for recipe in (*RECIPES, OPERATOR)}
    for recipe in RECIPES:
        _build(engine, recipe, IMAGES, names, base)
    with tempfile.TemporaryDirectory(prefix="penstock-operator-") as folder:
        operator_context(Path(folder))
        _build(engine, OPERATOR, Path(folder), names, base)
    used = [names[role] for role in ROLES]
    if push:
        for name in used:
            _run([engine, "push", name])
    if kind:
        _run(["kind", "load", "docker-image", "--name", kind, *used])
    return used


def _name(role: str, registry: str | None) -> str:
    return reference(role, registry=registry) if registry else reference(role)


def _build(engine: str, recipe: Recipe, context: Path, names: dict[str, str], base: str) -> None:
    below = names[recipe.parent.role] if recipe.parent else base
    command = [engine, "build", "--build-arg", f"{recipe.argument}={below}"]
    command += ["--tag", names[recipe.role], "--file", str(recipe.containerfile), str(context)]
    with progress.step(f"build {names[recipe.role]}"):
        _run(command)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalError(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
