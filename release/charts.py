"""The charts, packaged as Helm does, with the same bytes each time."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

from penstock.local.charts import CHARTS, helm
from release.tarball import write_tgz

_FIRST = "/Chart.yaml"


def package(folder: Path, epoch: int) -> None:
    """One archive for each chart, with the charts that it depends on. Raises LocalError.

    Helm gives the members the time of the packaging, so they are packed again.
    """
    for chart in sorted(one.parent for one in CHARTS.glob("*/Chart.yaml")):
        with tempfile.TemporaryDirectory() as name:
            # Links to charts that one depends on become folders of it.
            copy = Path(name) / "charts"
            shutil.copytree(CHARTS, copy)
            helm("package", str(copy / chart.name), "--destination", name)
            (made,) = Path(name).glob("*.tgz")
            write_tgz(folder / made.name, _members(made), epoch)


def _members(path: Path) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    with tarfile.open(path) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                found.append((member.name, content.read()))
    # Chart.yaml comes first, as readers of a stream expect it.
    return sorted(
        found, key=lambda one: (one[0].count("/") > 1 or not one[0].endswith(_FIRST), one[0])
    )
