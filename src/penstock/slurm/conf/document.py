"""slurm.conf and its kin as a document: parse, read, change, render.

Parsing never fails, and rendering returns what was parsed, byte for byte; only lines that are
set are written again. `Document.problems` lists the lines whose form Slurm would reject.

Source: slurm.conf(5); Slurm's parser for the details: `#` begins a comment unless escaped by a
backslash, even inside quotes; a backslash at the end of a line continues it; keys ignore case;
of a key given twice the last value counts.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import Struct

RECORDS = frozenset({"downnodes", "frontendname", "nodename", "nodeset", "partitionname"})
"""Keys of slurm.conf that begin a named line: the whole line belongs to that name."""

LISTS = frozenset({"slurmctldhost"})
"""Keys of slurm.conf that may be given several times, each adding a value."""

_PAIR = re.compile(r'\s*([\w.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?=\s|\Z)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*\Z", re.IGNORECASE)
_BLANK = re.compile(r"\s")
_PHYSICAL = re.compile(r"[^\n]*\n|[^\n]+")
_REST = re.compile(r"\s*\Z")
_COMMENT = re.compile(r"^((?:[^#\\]++|\\.|\\\Z)*+)#.*\Z")
"""Possessive, as it can match in one way only: without that each character would cost memory."""
_CACHED_CHARACTERS = 2**20
"""Characters of the texts whose lines are kept; parsed they take up to 40 times as much."""
_PROBLEM_LENGTH = 200
"""Characters of a line that cannot be read which a message quotes."""
_ESCAPE = re.compile(r"\\(.)")


class ConfError(ValueError):
    """A value cannot be written in a Slurm configuration file."""


class Setting(Struct, frozen=True, gc=False):
    """One `Key=Value`, as written, without quotes and escapes."""

    key: str
    value: str

    def render(self) -> str:
        """The text of it. Raises ConfError for a value with a line break or a quote."""
        return f"{self.key}={quoted(self.value)}"


class Line(Struct, frozen=True, gc=False):
    """One logical line: its text with line breaks, and what Slurm reads in it."""

    text: str
    settings: tuple[Setting, ...] = ()
    include: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A named line: `NodeName=cpu-[0-3] CPUs=4` has key NodeName, name cpu-[0-3], one setting."""

    key: str
    name: str
    settings: tuple[Setting, ...] = ()

    def get(self, key: str) -> str | None:
        """The value of one setting; the last one counts."""
        values = [s.value for s in self.settings if s.key.lower() == key.lower()]
        return values[-1] if values else None

    def render(self) -> str:
        """The line, without a line break."""
        return " ".join(s.render() for s in (Setting(self.key, self.name), *self.settings))


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that Slurm would reject. Lines count from 1."""

    line: int
    text: str
    message: str


@dataclass(frozen=True, slots=True)
class Change:
    """One difference of two documents; None where a side does not have it."""

    key: str
    name: str | None
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration file."""

    lines: tuple[Line, ...] = ()
    record_keys: frozenset[str] = RECORDS
    list_keys: frozenset[str] = LISTS

    @classmethod
    def parse(
        cls, text: str, record_keys: frozenset[str] = RECORDS, list_keys: frozenset[str] = LISTS
    ) -> Document:
        """Parse a file's text. `keys` are those whose lines have a name; they differ by file."""
        return cls(_lines(text), record_keys, list_keys)

    def render(self) -> str:
        """The file's text."""
        return "".join(line.text for line in self.lines)

    def problems(self) -> tuple[Problem, ...]:
        """Lines that are neither a comment, settings nor an Include."""
        found: list[Problem] = []
        number = 1
        for line in self.lines:
            if line.problem is not None:
                found.append(Problem(number, line.text.rstrip("\n"), line.problem))
            number += line.text.count("\n")
        return tuple(found)

    def includes(self) -> tuple[str, ...]:
        """Files named by Include lines, in order."""
        return tuple(line.include for line in self.lines if line.include is not None)

    def get(self, key: str) -> str | None:
        """The effective value of a key that has one value: the last one given."""
        values = self.all(key)
        return values[-1] if values else None

    def all(self, key: str) -> tuple[str, ...]:
        """Every value given to a key outside named lines, in order."""
        wanted = key.lower()
        return tuple(
            setting.value
            for line in self.lines
            for setting in line.settings
            if setting.key.lower() == wanted and not self._is_named(line)
        )

    def options(self, key: str) -> tuple[str, ...]:
        """The effective value of a key as a list of options."""
        return split_options(self.get(key) or "")

    def records(self, key: str) -> tuple[Record, ...]:
        """All named lines of one kind, in order; a name may occur more than once."""
        wanted = key.lower()
        return tuple(
            _record(line)
            for line in self.lines
            if self._is_named(line) and line.settings[0].key.lower() == wanted
        )

    def record(self, key: str, name: str) -> Record | None:
        """The last named line of that kind and name."""
        found = [record for record in self.records(key) if record.name == name]
        return found[-1] if found else None

    def set(self, key: str, value: str) -> Document:
        """Give a key one value: in its last place, or at the end. Earlier values go."""
        return self._put(key, Setting(key, value))

    def remove(self, key: str) -> Document:
        """Take every value of a key away."""
        return self._put(key, None)

    def set_record(self, record: Record) -> Document:
        """Put a named line in the place of the one it replaces, or at the end."""
        return self._put_record(record.key, record.name, record.render() + "\n")

    def remove_record(self, key: str, name: str) -> Document:
        """Take a named line away."""
        return self._put_record(key, name, None)

    def append(self, text: str) -> Document:
        """The document with more text after it."""
        gap = "" if not self.lines or self.lines[-1].text.endswith("\n") else "\n"
        return Document.parse(self.render() + gap + text, self.record_keys, self.list_keys)

    def effective(self) -> dict[tuple[str, str | None], str]:
        """What counts: by lower-case key and, for a named line, its name."""
        plain: dict[tuple[str, str | None], list[str]] = {}
        named: dict[tuple[str, str | None], list[str]] = {}
        for line in self.lines:
            if self._is_named(line):
                record = _record(line)
                text = " ".join(f"{s.key.lower()}={s.value}" for s in record.settings)
                named.setdefault((record.key.lower(), record.name), []).append(text)
                continue
            for setting in line.settings:
                key = setting.key.lower()
                if key in self.list_keys:
                    plain.setdefault((key, None), []).append(setting.value)
                else:
                    plain[key, None] = [setting.value]
        return {place: " ".join(values) for place, values in plain.items()} | {
            place: "\n".join(texts) for place, texts in named.items()
        }

    def _is_named(self, line: Line) -> bool:
        return bool(line.settings) and line.settings[0].key.lower() in self.record_keys

    def _put(self, key: str, new: Setting | None) -> Document:
        lines: list[Line] = []
        for line in reversed(self.lines):
            has_key = any(s.key.lower() == key.lower() for s in line.settings)
            if not has_key or self._is_named(line):
                lines.append(line)
                continue
            kept = [s for s in line.settings if s.key.lower() != key.lower()]
            if new is not None:
                kept.append(new)
                new = None
            if kept:
                lines.append(_made(" ".join(s.render() for s in kept) + "\n"))
        document = Document(tuple(reversed(lines)), self.record_keys, self.list_keys)
        return document if new is None else document.append(new.render() + "\n")

    def _put_record(self, key: str, name: str, text: str | None) -> Document:
        lines: list[Line] = []
        for line in reversed(self.lines):
            if not self._is_named(line) or not _begins(line, key, name):
                lines.append(line)
            elif text is not None:
                lines.append(_made(text))
                text = None
        document = Document(tuple(reversed(lines)), self.record_keys, self.list_keys)
        return document if text is None else document.append(text)


def diff(old: Document, new: Document) -> tuple[Change, ...]:
    """What differs in effect, sorted by key and name; comments, order and spelling do not count.

    A key that takes a list (SlurmctldHost) is compared with its values in order, joined by blanks.
    """
    before, after = old.effective(), new.effective()
    changes = (
        Change(*place, before.get(place), after.get(place))
        for place in sorted(before.keys() | after.keys(), key=lambda p: (p[0], p[1] or ""))
    )
    return tuple(change for change in changes if change.old != change.new)


def split_options(value: str) -> tuple[str, ...]:
    """The options of a comma list, blanks around them dropped."""
    return tuple(option.strip() for option in value.split(",") if option.strip())


def merge_options(given: str | None, required: Iterable[str]) -> str:
    """Unite a user's comma list with the options we need, which win by option name; sorted.

    The letter case of every value is kept: many are file paths. Names ignore case, as in Slurm.
    """
    options = {_option_name(option): option for option in split_options(given or "")}
    options.update({_option_name(option): option for option in required})
    return ",".join(sorted(options.values(), key=lambda o: (o.lower(), o)))


def quoted(value: str) -> str:
    """A value as it is written in a file: quoted if it has blanks, `#` and backslash escaped.

    Raises ConfError when Slurm has no way to write it: a quote, a line break, nothing at all.
    """
    if not is_writable(value):
        raise ConfError(f"{value!r} cannot be a value in a Slurm configuration file")
    escaped = value.replace("\\", "\\\\").replace("#", "\\#")
    return f'"{escaped}"' if _BLANK.search(value) else escaped


def is_writable(value: str) -> bool:
    """Whether `quoted` has a form for a value."""
    return bool(value) and not {'"', "\n", "\r"} & set(value)


def joined(document: Document, required: Mapping[str, str]) -> list[str]:
    """A line for each key that both have, with the document's value and the required one."""
    return [
        f"{key}={quoted(merge_options(given, split_options(options)))}"
        for key, options in required.items()
        if (given := document.get(key)) is not None
    ]


def _record(line: Line) -> Record:
    first, *rest = line.settings
    return Record(first.key, first.value, tuple(rest))


def _begins(line: Line, key: str, name: str) -> bool:
    first = line.settings[0]
    return (first.key.lower(), first.value) == (key.lower(), name)


def _option_name(option: str) -> str:
    return option.partition("=")[0].strip().lower()


def _made(text: str) -> Line:
    return _line(text, text.rstrip("\n"))


class _Parsed:
    """The lines of texts that were read last, as many as have _CACHED_CHARACTERS in all.

    The same few texts are read over and over: the desired, the active and the candidate file. One
    that is longer by itself is kept as the only one.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[str, tuple[Line, ...]] = OrderedDict()
        self._characters = 0

    def __call__(self, text: str) -> tuple[Line, ...]:
        found = self._lines.get(text)
        if found is not None:
            self._lines.move_to_end(text)
            return found
        found = self._lines[text] = tuple(_line(*part) for part in _logical(text))
        self._characters += len(text)
        while self._characters > _CACHED_CHARACTERS and len(self._lines) > 1:
            self._characters -= len(self._lines.popitem(last=False)[0])
        return found


_lines = _Parsed()


_EMPTY = Line("\n")


def _line(raw: str, content: str) -> Line:
    """Read one logical line; `content` is its text without comment and continuation."""
    text = _ESCAPE.sub(r"\1", content) if "\\" in content else content
    if not text or text.isspace():
        return _EMPTY if raw == "\n" else Line(raw)
    if include := _INCLUDE.match(text):
        return Line(raw, include=include[1])
    settings: list[Setting] = []
    position = 0
    while position < len(text) and not _REST.match(text, position):
        pair = _PAIR.match(text, position)
        if pair is None:
            rest = text[position:].strip()
            shown = rest if len(rest) <= _PROBLEM_LENGTH else f"{rest[:_PROBLEM_LENGTH]}..."
            return Line(raw, problem=f"not of the form Key=Value: {shown}")
        settings.append(Setting(pair[1], pair[2] if pair[2] is not None else pair[3]))
        position = pair.end()
    return Line(raw, tuple(settings))


def _logical(text: str) -> Iterable[tuple[str, str]]:
    """Logical lines: their raw text, and their content without comments and line breaks."""
    raw: list[str] = []
    content: list[str] = []
    for physical in _PHYSICAL.findall(text):
        if not raw and "#" not in physical and "\\" not in physical:
            yield physical, physical.rstrip("\r\n")
            continue
        raw.append(physical)
        part = physical.rstrip("\r\n")
        if "#" in part:
            part = _COMMENT.sub(r"\1", part)
        # Before this part there is an even number of backslashes, so it decides by itself.
        escapes = len(part) - len(part.rstrip("\\"))
        if escapes % 2 and physical.endswith("\n"):
            content.append(part[:-1])
            continue
        content.append(part)
        yield "".join(raw), "".join(content)
        raw.clear()
        content.clear()
    if raw:
        yield "".join(raw), "".join(content)
