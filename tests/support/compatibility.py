"""What slurm-operator does and what Penstock does, row by row, joined with the tests that show it.

Rows are in `tests/compatibility/rows`, a file for each group. A test names the rows that it shows
in its docstring or in its name: `D37`, `S030`, `S001 to S003`, `feature rows 14 and 15`. What the
docstring of a module or class names, its tests show together.

Each scenario (`S`) has layers, in `layers.toml`: a test of each of them names it. Scenarios without
a row are in `elsewhere.toml`, by the capability that builds them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

TESTS = Path(__file__).parents[1]
ROWS = TESTS / "compatibility" / "rows"
ELSEWHERE = TESTS / "compatibility" / "elsewhere.toml"
LAYERS = TESTS / "compatibility" / "layers.toml"
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "unit": ("unit", "charts"),
    "model": ("model",),
    "api": ("api",),
    "fleet": ("e2e",),
    "e2e": ("e2e",),
}
"""By layer, the folders of tests that belong to it."""
CAPABILITIES = frozenset(
    {
        "SlurmCluster on one node",
        "switching from soperator",
        "SlurmCluster's checks, topology and backup",
        "documentation and examples",
        "hardening and releases",
        "no release yet",
    }
)
"""The values of `built_by` in `elsewhere.toml`."""
STATES: tuple[State, ...] = ("done", "partly", "open")
FIELDS = frozenset({"id", "what", "upstream", "ours", "state", "tried", "missing"})

State = Literal["done", "partly", "open"]
Parsed = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_ID = r"[SD]\d{1,3}"
_IDS = re.compile(rf"\b({_ID})(?: to ({_ID}))?\b")
_NUMBERS = re.compile(r"\b[Ff]eatures?(?: rows?)? ((?:\d+(?:, | and | to )?)+)")
_NUMBER = re.compile(r"(\d+)(?: to (\d+))?")
_IN_NAME = re.compile(r"(?<![a-z0-9])(s\d{3}|d\d{1,2}|feature_\d+)(?![a-z0-9])")


@dataclass(frozen=True)
class Row:
    """One thing that a user of slurm-operator does or meets, and how it stands."""

    id: str
    what: str
    upstream: str
    ours: str
    state: State
    tried: str = ""
    missing: str = ""


@dataclass(frozen=True)
class Group:
    """Rows of one subject, as a file has them."""

    title: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Elsewhere:
    """Scenarios without a row on the page: titles by id, and the capability that builds them."""

    built_by: str
    about: str
    rows: Mapping[str, str]


@dataclass(frozen=True, order=True)
class Place:
    """A test, or a whole file of them when `test` is empty; `path` is below the folder of tests."""

    path: str
    test: str = ""

    @property
    def words(self) -> str:
        """The behaviour that it shows, from its name."""
        found = self.test or Path(self.path).stem
        return found.rpartition(".")[2].removeprefix("test_").replace("_", " ")


def load(folder: Path = ROWS) -> tuple[Group, ...]:
    """All groups, in the order of their files' names. Raises ValueError for what is no row."""
    return tuple(_group(path) for path in sorted(folder.glob("*.toml")))


def _group(path: Path) -> Group:
    found = tomllib.loads(path.read_text())
    return Group(found["title"], found["about"], tuple(_row(path, row) for row in found["row"]))


def _row(path: Path, given: Mapping[str, Any]) -> Row:
    where = f"{path.name}: {given.get('id', 'a row without an id')}"
    if unknown := given.keys() - FIELDS:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))} means nothing")
    row = Row(**given)
    wrong = next((name for name in ("what", "upstream", "ours") if not getattr(row, name)), None)
    if wrong:
        raise ValueError(f"{where}: {wrong} is empty")
    if row.state not in STATES:
        raise ValueError(f"{where}: state is one of {', '.join(STATES)}")
    if (row.state != "done") is not bool(row.missing):
        raise ValueError(f"{where}: a row that is not done, and no other, says what is missing")
    if (row.state != "done") is not bool(row.tried):
        raise ValueError(f"{where}: a row that is not done, and no other, says what was tried")
    return row


def elsewhere(path: Path = ELSEWHERE) -> tuple[Elsewhere, ...]:
    """Scenarios that the page does not list yet. Raises ValueError for an unknown capability."""
    found = tomllib.loads(path.read_text())
    return tuple(_elsewhere(path, part) for part in found["part"])


def _elsewhere(path: Path, part: Mapping[str, Any]) -> Elsewhere:
    rows: dict[str, str] = part["rows"]
    built_by = part.get("built_by")
    if built_by not in CAPABILITIES:
        known = ", ".join(sorted(CAPABILITIES))
        raise ValueError(
            f"{path.name}: built_by of {_list(rows)} is {built_by!r}, not one of {known}"
        )
    if untitled := [one for one, title in rows.items() if not title.strip()]:
        raise ValueError(f"{path.name}: {_list(untitled)} has no title")
    return Elsewhere(built_by, part["about"], rows)


def layers(path: Path = LAYERS) -> dict[str, tuple[str, ...]]:
    """The layers that must show each scenario. Raises ValueError for an unknown layer."""
    found: dict[str, list[str]] = tomllib.loads(path.read_text())
    for one, names in found.items():
        if not names or not FOLDERS.keys() >= set(names):
            raise ValueError(f"{path.name}: {one}: layers are some of {', '.join(FOLDERS)}")
    return {one: tuple(names) for one, names in found.items()}


def missing_layers(
    rows: Iterable[Row],
    tests: Mapping[str, Sequence[Place]],
    wanted: Mapping[str, Sequence[str]],
) -> list[str]:
    """A line for each row that works at least in part and that no test of a layer names."""
    found: list[str] = []
    for row in rows:
        if row.state == "open":
            continue
        folders = {place.path.partition("/")[0] for place in tests.get(row.id, ())}
        found += [
            f"{row.id} ({row.what}): no test under {_folders(layer)} names it"
            for layer in wanted.get(row.id, ())
            if not folders.intersection(FOLDERS[layer])
        ]
    return found


def _folders(layer: str) -> str:
    return " or ".join(f"tests/{folder}" for folder in FOLDERS[layer])


def named_elsewhere(left: Iterable[Elsewhere], tests: Mapping[str, Sequence[Place]]) -> list[str]:
    """A line for each scenario without a row that a test names."""
    return [
        f"{one} ({title}): {tests[one][0].path} names it, so it leaves elsewhere.toml for a row"
        for part in left
        for one, title in part.rows.items()
        if one in tests
    ]


def ids(text: str) -> list[str]:
    """The ids that a text names, each once, in their order."""
    found: list[str] = []
    for match in _IDS.finditer(text):
        found += _between(match[1][0], match[1][1:], match[2][1:] if match[2] else "")
    for match in _NUMBERS.finditer(text):
        for number in _NUMBER.finditer(match[1]):
            found += _between("feature ", number[1], number[2] or "")
    return list(dict.fromkeys(found))


def _between(prefix: str, first: str, last: str) -> Iterator[str]:
    for number in range(int(first), int(last or first) + 1):
        yield f"{prefix}{number:0{len(first)}}"


def of_name(name: str) -> list[str]:
    """The ids in the name of a test."""
    found = (match[1] for match in _IN_NAME.finditer(name.lower()))
    return [one.replace("_", " ") if one[0] == "f" else one.upper() for one in found]


def named(tests: Path = TESTS) -> dict[str, list[Place]]:
    """Which tests name each id. A file stands for an id that none of its tests names."""
    found: dict[str, list[Place]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        for place, one in _of_file(path, path.relative_to(tests).as_posix()):
            found.setdefault(one, []).append(place)
    return found


def _of_file(path: Path, shown: str) -> Iterator[tuple[Place, str]]:
    module = ast.parse(path.read_text())
    found = [(Place(shown, name), one) for name, each in _tests(module) for one in each]
    yield from found
    told = {one for _, one in found}
    whole: list[Parsed] = [module, *(n for n in module.body if isinstance(n, ast.ClassDef))]
    for one in dict.fromkeys(one for part in whole for one in ids(ast.get_docstring(part) or "")):
        if one not in told:
            yield Place(shown), one


def _tests(inside: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, list[str]]]:
    for node in inside.body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node, f"{before}{node.name}.")
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_"):
            text = ast.get_docstring(node) or ""
            yield f"{before}{node.name}", [*of_name(node.name), *ids(text)]


def page(
    groups: Sequence[Group], tests: Mapping[str, Sequence[Place]], left: Sequence[Elsewhere]
) -> str:
    """docs/compatibility.md below its introduction."""
    rows = [row for group in groups for row in group.rows]
    parts = [_counts(groups), _wanting(rows)]
    parts += [_section(group, tests) for group in groups]
    parts.append(_left(left))
    return "\n".join(parts)


def _counts(groups: Iterable[Group]) -> str:
    lines = ["| Group | Rows | Done | Partly | Open |", "| --- | --- | --- | --- | --- |"]
    total = Counter[str]()
    for group in groups:
        count = Counter[str](row.state for row in group.rows)
        total += count
        link = f"[{group.title}](#{_anchor(group.title)})"
        lines.append(_cells(link, len(group.rows), *(count[state] for state in STATES)))
    lines.append(_cells("All", total.total(), *(total[state] for state in STATES)))
    return "\n".join(lines) + "\n"


def _wanting(rows: Iterable[Row]) -> str:
    lines = ["## What is missing", "| Row | State | Missing | Tried |", "| --- | --- | --- | --- |"]
    lines += [
        _cells(row.id, row.state, row.missing, row.tried) for row in rows if row.state != "done"
    ]
    return "\n".join(lines) + "\n"


def _section(group: Group, tests: Mapping[str, Sequence[Place]]) -> str:
    lines = [f"## {group.title}", group.about, ""]
    lines += ["| Row | What | slurm-operator | Penstock | State | Seen in |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for row in group.rows:
        places = sorted(set(tests.get(row.id, ())))
        seen = ", ".join(f"[{place.words}](../tests/{place.path})" for place in places)
        lines.append(_cells(row.id, row.what, row.upstream, row.ours, row.state, seen))
    return "\n".join(lines) + "\n"


def _cells(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in cells)} |"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _left(left: Sequence[Elsewhere]) -> str:
    lines = [
        "## Not built yet",
        "Scenarios that no test shows, by the capability that builds them.",
        "",
    ]
    lines += ["| Row | What | Comes with |", "| --- | --- | --- |"]
    lines += [_cells(one, title, e.built_by) for e in left for one, title in e.rows.items()]
    return "\n".join([*lines, "", *(f"- {e.built_by}: {e.about}" for e in left)]) + "\n"


def _list(found: Iterable[str]) -> str:
    return ", ".join(found) or "nothing"
