"""One version, in `penstock.__version__`: what is shipped and what an example names agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest
from typer.testing import CliRunner

from penstock import __version__
from penstock.cli.main import app
from penstock.kube.client.metrics import Metrics

ROOT = Path(__file__).parents[2]
CHARTS = sorted((ROOT / "charts").glob("*/Chart.yaml"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
INSTALLED = sorted((ROOT / "deploy").glob("*.yaml"))
OURS = re.compile(r"localhost/penstock/[a-z-]+:([\w.-]+)")
"""A tag of an image of ours: the release of Slurm, if it has one, and the version."""


def test_it_is_a_semantic_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)


def test_the_wheel_takes_it_from_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/penstock/__init__.py"


@pytest.mark.parametrize("chart", CHARTS, ids=lambda one: one.parent.name)
def test_each_chart_has_it(chart: Path) -> None:
    found = yaml.safe_load(chart.read_text())
    assert found["version"] == __version__
    for one in found.get("dependencies", ()):
        assert one["version"] == __version__


@pytest.mark.parametrize(
    "file", [*EXAMPLES, *INSTALLED], ids=lambda one: str(one.relative_to(ROOT))
)
def test_each_image_of_ours_that_is_named_has_it(file: Path) -> None:
    for tag in OURS.findall(file.read_text()):
        assert tag.rpartition("-")[2] == __version__


def test_the_changelog_has_it() -> None:
    assert __version__ in (ROOT / "CHANGELOG.md").read_text()


def test_the_command_line_prints_it() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"penstock {__version__}\n")


def test_a_metric_has_it() -> None:
    told = generate_latest(Metrics().registry).decode()
    (line,) = (one for one in told.splitlines() if one.startswith("penstock_build_info{"))
    assert f'version="{__version__}"' in line
    assert line.endswith(" 1.0")
