"""The generated files of the chart `penstock-monitoring`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dashboards import alerts, grafana
from dashboards.all import DASHBOARDS

FOLDER: Final = Path(__file__).parents[2] / "charts/penstock-monitoring/files"


def files() -> dict[str, str]:
    """Text of each file by its path in the folder."""
    boards = {f"dashboards/{one.name}.json": grafana.text(one) for one in DASHBOARDS}
    return {**boards, "rules.yaml": alerts.text()}


def write(folder: Path = FOLDER) -> None:
    """Write the files, and remove those that are none any more."""
    wanted = files()
    for name in _present(folder):
        if name not in wanted:
            (folder / name).unlink()
    for name, text in wanted.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def stale(folder: Path = FOLDER) -> Iterator[str]:
    """Names of files that differ from the code, are absent, or are none."""
    wanted = files()
    there = {name: (folder / name).read_text(encoding="utf-8") for name in _present(folder)}
    yield from sorted(
        name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name)
    )


def _present(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
