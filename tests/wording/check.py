"""Finds offences in the project's files and compares their number with the budget."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from wording.sources import Piece, read_page, read_python
from wording.terms import instead_of, words_in_name, words_in_prose

FOLDERS = ("src/penstock", "bench", "images", "tests")
PAGES = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SCOPE.md"),
    *("docs/architecture.md", "docs/first-cluster.md", "docs/index.md"),
)
"""Pages beside those in the folders of docs. Rows of tests are the words of compatibility.md."""
LONGEST = 30
"""Words in one sentence of a message."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Offence:
    """A word to avoid, or a sentence that is too long, at a line of a file."""

    path: str
    line: int
    word: str
    text: str

    def __str__(self) -> str:
        """Return the line that the check prints."""
        if self.word == "long sentence":
            return f"{self.path}:{self.line}: more than {LONGEST} words in a sentence: {self.text}"
        return f"{self.path}:{self.line}: {self.word} ({instead_of(self.word)}): {self.text}"


@dataclass(frozen=True)
class Exempt:
    """A word that is right in files below `path`, and why. Without a word: all words."""

    path: str
    reason: str
    word: str | None = None

    def covers(self, offence: Offence) -> bool:
        """Return whether the offence is none."""
        below = offence.path == self.path or offence.path.startswith(f"{self.path}/")
        return below and self.word in (None, offence.word)


@dataclass(frozen=True)
class Rules:
    """The exceptions file: what is right, and how many offences each folder still has."""

    exceptions: tuple[Exempt, ...]
    budget: dict[str, int]


def read_rules(text: str) -> Rules:
    """Read the exceptions file. Raises ValueError for an exception without a reason."""
    content: dict[str, Any] = tomllib.loads(text)
    exceptions = tuple(Exempt(**each) for each in content.get("exception", ()))
    for each in exceptions:
        if not each.reason.strip():
            raise ValueError(f"exception for {each.path}: reason is empty")
    return Rules(exceptions, dict(content.get("budget", {})))


def find_in_python(path: str, source: str) -> tuple[Offence, ...]:
    """Return the offences of a Python file. Literals of tests quote the product's messages."""
    pieces = read_python(source, PurePosixPath(path).stem, messages=not path.startswith("tests/"))
    return tuple(_offences(path, pieces))


def find_in_page(path: str, text: str) -> tuple[Offence, ...]:
    """Return the offences of a Markdown page."""
    return tuple(_offences(path, read_page(text)))


def find_all(root: Path) -> tuple[Offence, ...]:
    """Return the offences of the project whose root folder is given."""
    found: list[Offence] = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            found += find_in_python(file.relative_to(root).as_posix(), file.read_text())
    for page in (*PAGES, *_docs(root)):
        found += find_in_page(page, (root / page).read_text())
    return tuple(found)


def _docs(root: Path) -> Iterator[str]:
    """Yield the pages in the folders of docs. The reference has the words of schemas and code."""
    for file in sorted((root / "docs").glob("*/**/*.md")):
        page = file.relative_to(root).as_posix()
        if not page.startswith("docs/reference/"):
            yield page


def folder_of(path: str) -> str:
    """Return the folder whose budget counts a file; a page has a budget of its own."""
    parts = PurePosixPath(path).parts
    if not path.endswith(".py"):
        return path
    depth = 3 if parts[0] == "src" else 2 if parts[0] == "tests" else 1
    return "/".join(parts[: min(depth, len(parts) - 1)])


def count_by_folder(offences: Iterable[Offence], rules: Rules) -> dict[str, int]:
    """Return the number of offences that no exception covers, for each folder that has any."""
    left = (o for o in offences if not any(e.covers(o) for e in rules.exceptions))
    return dict(sorted(Counter(folder_of(each.path) for each in left).items()))


def compare(offences: tuple[Offence, ...], rules: Rules) -> Iterator[str]:
    """Yield a line for each folder over or under its budget and each exception without use."""
    counts = count_by_folder(offences, rules)
    for folder in sorted({*counts, *rules.budget}):
        count, allowed = counts.get(folder, 0), rules.budget.get(folder, 0)
        if count > allowed:
            yield f"{folder}: {count} offences, budget {allowed}: reword the new ones"
        elif count < allowed:
            yield f"{folder}: {count} offences, budget {allowed}: lower the budget to {count}"
    for each in rules.exceptions:
        if not any(each.covers(offence) for offence in offences):
            word = each.word or "all words"
            yield f"exception for {word} in {each.path}: remove it, nothing needs it"


def lower_budget(text: str, counts: dict[str, int]) -> str:
    """Return the exceptions file with each budget lowered to its count; none is raised."""
    lines: list[str] = []
    for line in text.splitlines():
        entry = re.fullmatch(r'"([^"]+)" = (\d+)', line)
        count = counts.get(entry.group(1), 0) if entry else 0
        if entry and count < int(entry.group(2)):
            if count:
                lines.append(f'"{entry.group(1)}" = {count}')
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _offences(path: str, pieces: Iterable[Piece]) -> Iterator[Offence]:
    for piece in pieces:
        if piece.kind == "name":
            for word in words_in_name(piece.text):
                yield Offence(path, piece.line, word, piece.text)
            continue
        for word, start in words_in_prose(piece.text):
            line = piece.line + piece.text.count("\n", 0, start)
            yield Offence(path, line, word, _excerpt(piece.text, start))
        if piece.kind == "message":
            for sentence in _SENTENCE.split(piece.text):
                if len(sentence.split()) > LONGEST:
                    yield Offence(path, piece.line, "long sentence", sentence[:60])


def _excerpt(text: str, start: int) -> str:
    return " ".join(text[max(0, start - 30) : start + 40].split())
