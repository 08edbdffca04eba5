"""Results of a pair, file by file, as they are kept in `tests/versions/results`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from versions.pairs import Pair

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """Of one file of tests: when and at which commit it ran, and how many tests ended how."""

    date: str
    commit: str
    passed: int
    skipped: int
    failed: int = 0

    @property
    def good(self) -> bool:
        """Whether it need not run again."""
        return self.failed == 0


def path(pair: Pair) -> Path:
    """Where the results of a pair are."""
    return FOLDER / f"kubernetes-{pair.kubernetes}-slurm-{pair.slurm}.toml"


def load(pair: Pair) -> dict[str, Result]:
    """Results by file; none where the pair never ran."""
    try:
        text = path(pair).read_text()
    except FileNotFoundError:
        return {}
    return {name: Result(**found) for name, found in tomllib.loads(text).items()}


def save(pair: Pair, results: Mapping[str, Result]) -> None:
    """Write the results, complete or not at all."""
    FOLDER.mkdir(exist_ok=True)
    lines = ["# Written by `make versions`."]
    for name, result in sorted(results.items()):
        said = ", ".join(f"{key} = {json.dumps(value)}" for key, value in asdict(result).items())
        lines.append(f'"{name}" = {{ {said} }}')
    new = path(pair).with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    new.rename(path(pair))


def left(wanted: Iterable[str], results: Mapping[str, Result]) -> list[str]:
    """Files that have not passed yet."""
    return [one for one in wanted if one not in results or not results[one].good]
