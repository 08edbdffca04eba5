"""`make release` without images: what is in the folder, and that two runs are the same."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import yaml

from penstock import __version__
from penstock.local.charts import CHARTS, helm
from release.__main__ import write
from release.checksums import SUMS

NAMES = sorted(one.parent.name for one in CHARTS.glob("*/Chart.yaml"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("release") / "dist"
    write(found, with_images=False)
    return found


def test_two_runs_have_the_same_checksums(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, with_images=False)
    assert (tmp_path / SUMS).read_text() == (folder / SUMS).read_text()


def test_each_chart_is_there_and_installs_as_its_folder_does(folder: Path) -> None:
    assert sorted(one.name for one in (folder / "charts").iterdir()) == [
        f"{name}-{__version__}.tgz" for name in NAMES
    ]
    for name in ("slurm-operator", "soperator"):
        packed = folder / "charts" / f"{name}-{__version__}.tgz"
        arguments = ("--namespace", "x", "--set", "global.imageRegistry=registry.example")
        assert helm("template", "x", str(packed), *arguments) == helm(
            "template", "x", str(CHARTS / name), *arguments
        )


def test_a_chart_begins_with_its_name_and_version(folder: Path) -> None:
    with tarfile.open(folder / "charts" / f"slurm-{__version__}.tgz") as found:
        first = found.next()
        assert first is not None
        assert first.name == "slurm/Chart.yaml"


def test_manifests_have_the_kinds_before_the_operator(folder: Path) -> None:
    for name in ("install.yaml", "install-soperator.yaml"):
        kinds = [one["kind"] for one in yaml.safe_load_all((folder / name).read_text()) if one]
        first = next(number for number, kind in enumerate(kinds) if kind == "Deployment")
        assert "CustomResourceDefinition" in kinds[:first]
        assert "CustomResourceDefinition" not in kinds[first:]


def test_the_wheel_and_the_sources_have_the_version(folder: Path) -> None:
    assert (folder / f"penstock-{__version__}-py3-none-any.whl").is_file()
    assert (folder / f"penstock-{__version__}.tar.gz").is_file()
