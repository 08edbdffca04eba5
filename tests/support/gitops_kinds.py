"""Definitions of Argo CD's Application, and of Flux' GitRepository and HelmRelease.

They come from the products' own Go modules, from the configured module proxy, and are kept in the
cache. Argo CD's module contains the definition. Of Flux only the modules with the Go types can
be had, so controller-gen makes the definitions from these types, as Flux' own releases do.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.local.cache import digest, keyed
from penstock.local.golang import ENVIRONMENT, Program, compiled, go_mod, toolchain
from penstock.local.programs import kubernetes

_APISERVER = kubernetes("kube-apiserver")
ARGO_CD = "github.com/argoproj/argo-cd/v2@v2.14.2"
APPLICATION = "manifests/crds/application-crd.yaml"
"""Path of the definition in Argo CD's module."""
FLUX = Program(
    name="flux-kinds",
    package="",
    requires={
        # Both are of Flux 2.5.
        "github.com/fluxcd/helm-controller/api": "v1.2.0",
        "github.com/fluxcd/source-controller/api": "v1.5.0",
    },
)
FLUX_PACKAGES = (
    "github.com/fluxcd/helm-controller/api/v2",
    "github.com/fluxcd/source-controller/api/v1",
)
FLUX_FILES = (
    "source.toolkit.fluxcd.io_gitrepositories.yaml",
    "helm.toolkit.fluxcd.io_helmreleases.yaml",
)
"""The definitions that the example needs, of those that controller-gen makes."""
CONTROLLER_GEN = Program(
    name="controller-gen",
    package="sigs.k8s.io/controller-tools/cmd/controller-gen",
    requires={
        **_APISERVER.requires,
        "sigs.k8s.io/controller-tools": "v0.19.0",
        "github.com/fatih/color": "v1.18.0",
        "github.com/gobuffalo/flect": "v1.0.3",
        "golang.org/x/mod": "v0.27.0",
        "golang.org/x/tools": "v0.36.0",
    },
    staging=_APISERVER.staging,
    # The libraries are then those of the API server, which the compiler has in its cache.
    bare=("sigs.k8s.io/controller-tools",),
)
"""Versions are those that controller-tools requires."""


def gitops_kinds(example: str) -> tuple[Path, ...]:
    """Files with the definitions of all kinds in an example, made when the cache lacks them."""
    return {"argo-cd.yaml": _argo_cd, "flux.yaml": _flux}[example]()


def _argo_cd() -> tuple[Path, ...]:
    def build(folder: Path) -> None:
        answer = _go([toolchain(), "mod", "download", "-json", ARGO_CD], folder)
        source = Path(json.loads(answer)["Dir"], APPLICATION)
        (folder / source.name).write_bytes(source.read_bytes())

    return (keyed("test-argo-cd", digest(ARGO_CD, APPLICATION), build) / Path(APPLICATION).name,)


def _flux() -> tuple[Path, ...]:
    def build(folder: Path) -> None:
        (folder / "go.mod").write_text(go_mod(FLUX))
        paths = [f"paths={package}" for package in FLUX_PACKAGES]
        program = str(compiled(CONTROLLER_GEN))
        _go([program, "crd", *paths, f"output:crd:dir={folder}"], folder)

    key = digest(CONTROLLER_GEN.key, FLUX.key, *FLUX_PACKAGES)
    folder = keyed("test-flux", key, build)
    return tuple(folder / name for name in FLUX_FILES)


def _go(command: Sequence[str], folder: Path) -> str:
    """Standard output of Go, or of controller-gen, which runs Go by the search path."""
    path = f"{Path(toolchain()).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command[:3])} failed:\n{done.stdout}{done.stderr}"
    return done.stdout
