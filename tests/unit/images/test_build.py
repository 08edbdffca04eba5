"""Which image is built from what, without building any."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from penstock import __version__
from penstock.local import engines, images, oci, recipes
from penstock.local.errors import LocalError
from penstock.local.recipes import IMAGES, SLURM_RECIPES, Recipe


def recipe(role: str) -> Recipe:
    return next(recipe for recipe in SLURM_RECIPES if recipe.role == role)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The images folder, where files may be changed."""
    shutil.copytree(IMAGES, tmp_path / "images")
    monkeypatch.setattr(recipes, "IMAGES", tmp_path / "images")
    return tmp_path / "images"


@pytest.mark.parametrize(
    ("changed", "built"),
    [
        ("entrypoints/slurmd.py", {"slurmd"}),
        ("entrypoints/ssh.py", {"ssh", "login", "slurmd"}),
        ("slurmctld/Containerfile", {"slurmctld"}),
        ("install", {r.role for r in SLURM_RECIPES}),
        ("entrypoints/supervise.py", {r.role for r in SLURM_RECIPES}),
        ("operator/Containerfile", set[str]()),
    ],
)
def test_a_change_builds_the_images_that_have_it(copy: Path, changed: str, built: set[str]):
    before = {r.role: r.key("base") for r in SLURM_RECIPES}
    with (copy / changed).open("a") as file:
        file.write("\n# changed\n")
    after = {r.role: r.key("base") for r in SLURM_RECIPES}
    assert {role for role, key in after.items() if key != before[role]} == built


def test_no_containerfile_of_the_jail_names_a_registry():
    for one in (*recipes.JAIL_RECIPES, recipes.POPULATE_JAIL):
        assert "docker.io" not in one.containerfile.read_text()


def test_an_image_changes_with_those_that_it_copies_from(copy: Path):
    made = Recipe("munge", also=(("SLURMD", recipe("slurmd")),))
    before = made.key("base")
    with (copy / "entrypoints/slurmd.py").open("a") as file:
        file.write("# changed\n")
    assert made.key("base") != before


def test_another_base_builds_everything():
    assert recipe("login").key("one") != recipe("login").key("two")


def test_every_containerfile_reads_files_that_exist():
    for one in (*SLURM_RECIPES, *recipes.JAIL_RECIPES, recipes.POPULATE_JAIL, recipes.PYTHON):
        sources = one.sources()
        installs = "apt" in one.containerfile.read_text().lower()
        assert (IMAGES / "install" in sources) == installs
        assert all(path.is_file() for path in sources)


def test_an_archive_names_each_image_as_requested(tmp_path: Path):
    layout = tmp_path / "layout"
    (layout / "blobs").mkdir(parents=True)
    (layout / "blobs/x").write_text("layer")
    entry = {"digest": "sha256:1", "annotations": {oci.REF: "a:1-x"}}
    (layout / "index.json").write_text(json.dumps({"manifests": [entry]}))
    path = tmp_path / "images.tar"
    oci.archive(layout, path, {"a:1-x": ("a:1", "a:1-x")})
    assert oci.names(path) == ["a:1", "a:1-x"]
    with tarfile.open(path) as tar:
        assert "blobs/x" in tar.getnames()


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that write down how they were called, and no operator context to make."""
    log = tmp_path / "log"
    for name in ("docker", "kind", "podman"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    def context(folder: Path, arch: str) -> None:
        with log.open("a") as lines:
            lines.write(f"wheels {arch}\n")

    monkeypatch.setattr(engines, "operator_context", context)
    return log


def test_an_engine_builds_on_the_public_base_and_pushes(docker: Path):
    names = engines.build("docker", "debian:forky-slim", "ghcr.io/example/p", None)
    lines = docker.read_text().splitlines()
    assert lines[0].startswith(
        "docker build --build-arg BASE=debian:forky-slim --tag ghcr.io/example/p/slurm:26.05"
    )
    assert any(
        "SSH=ghcr.io/example/p/ssh:26.05-0.1.0 --tag ghcr.io/example/p/login" in x for x in lines
    )
    assert [x for x in lines if " push " in x] == [f"docker push {name}" for name in names]
    assert f"ghcr.io/example/p/operator:{__version__}" in names


def test_images_of_two_platforms_are_pushed_one_by_one_and_as_lists(docker: Path):
    """Feature row 68: each is built on the image below it of its own architecture."""
    platforms = ["linux/amd64", "linux/arm64"]
    names = engines.build("docker", engines.BASE, "ghcr.io/example/p", None, platforms)
    lines = docker.read_text().splitlines()
    for arch in ("amd64", "arm64"):
        built = [line for line in lines if f"build --platform linux/{arch} " in line]
        assert len(built) == len(recipes.SLURM_RECIPES) + 2
        of_it = f"{__version__}-{arch}"
        assert all("--tag ghcr.io/example/p/" in x and f"{of_it} --file" in x for x in built)
        assert any(f"SSH=ghcr.io/example/p/ssh:26.05-{of_it} " in line for line in built)
        assert f"wheels {arch}" in lines
        for name in names:
            assert f"docker push {name}-{arch}" in lines
    assert names == images.names("ghcr.io/example/p")
    lists = [f"imagetools create --tag {one} {one}-amd64 {one}-arm64" for one in names]
    assert lines[-len(names) :] == [f"docker buildx {one}" for one in lists]


def test_podman_makes_the_lists_itself(docker: Path):
    platforms = ["linux/amd64", "linux/arm64"]
    name, *_ = engines.build("podman", engines.BASE, "ghcr.io/example/p", None, platforms)
    lines = docker.read_text().splitlines()
    assert f"podman manifest create {name}-list {name}-amd64 {name}-arm64" in lines
    assert f"podman manifest push --all {name}-list docker://{name}" in lines


def test_one_other_platform_needs_no_list(docker: Path):
    names = engines.build("docker", engines.BASE, None, None, ["linux/arm64"])
    lines = docker.read_text().splitlines()
    assert "wheels arm64" in lines
    assert "build --platform linux/arm64 " in lines[0]
    assert names[0] == f"localhost/penstock/slurmctld:26.05-{__version__}"
    assert not [line for line in lines if "imagetools" in line]


def test_platforms_that_cannot_be_are_rejected(docker: Path):
    for platforms, push, words in (
        (["linux/riscv64"], None, "takes linux/amd64, linux/arm64; not 'linux/riscv64'"),
        (["linux/amd64", "linux/arm64"], None, "use --push"),
    ):
        with pytest.raises(LocalError, match=words):
            engines.build("docker", engines.BASE, push, None, platforms)
    assert not docker.exists()


def test_nothing_that_images_are_made_of_is_for_one_architecture():
    """Feature row 68: of the operator's libraries there are wheels for each."""
    named = re.compile(r"amd64|x86[-_]64|arm64|aarch64")
    sources = [path for path in recipes.IMAGES.rglob("*") if path.is_file()]
    sources += (recipes.ROOT / "src/penstock").rglob("*.py")
    lines = [
        (path.name, line)
        for path in sources
        for line in path.read_bytes().decode(errors="ignore").splitlines()
        if named.search(line)
    ]
    # What is told about platforms, and the one table that has them both. A default of the API of
    # SlurmClusters is a path for one architecture.
    lines = [(name, line) for name, line in lines if "libnccl-profiler" not in line]
    told = [name for name, line in lines if "linux/" in line]
    assert sorted({name for name, line in lines if "linux/" not in line}) == ["recipes.py"]
    assert set(told) <= {"engines.py", "images.py"}
    assert recipes.WHEELS.keys() == {"amd64", "arm64"}
    assert recipes.architecture("aarch64") == "arm64"
    assert recipes.architecture("x86_64") == "amd64"


def test_images_are_loaded_into_kind(docker: Path):
    names = engines.build("docker", engines.BASE, None, "dev")
    last = docker.read_text().splitlines()[-1]
    assert last == f"kind load docker-image --name dev {' '.join(names)}"


def test_an_unknown_or_absent_engine_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LocalError, match="takes docker, buildah, podman; not 'nerdctl'"):
        engines.build("nerdctl", engines.BASE, None, None)
    with pytest.raises(LocalError, match="podman is not installed"):
        engines.build("podman", engines.BASE, None, None)


def test_the_operators_image_has_all_that_the_operator_imports() -> None:
    code = (
        "import sys, penstock.controllers.operator\n"
        "print(*{n.split('.')[1] for n in sys.modules if n.startswith('penstock.')})"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert set(said.split()) <= set(recipes.OPERATOR_PARTS)
