"""The manifests that a command is given, by files, folders and standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from penstock.api.kubernetes.meta import Json

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class ManifestError(Exception):
    """What was given is not manifests; the message names the file and what to do."""


def read(names: Iterable[str]) -> list[Json]:
    """All objects of these files, in order; of a folder those of its YAML and JSON files.

    Raises ManifestError, also where there is no object at all.
    """
    given = tuple(names)
    if given.count(STDIN) > 1:
        raise ManifestError("standard input can be read once: give -f - once")
    found = [obj for name in given for file in _files(name) for obj in _objects(file)]
    if not found:
        raise ManifestError(f"no object in {', '.join(map(_named, given))}: give manifests with -f")
    return found


def _files(name: str) -> list[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    found = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES and one.is_file())
    if not found:
        raise ManifestError(f"no YAML or JSON file in folder {name}")
    return [str(one) for one in found]


def _objects(name: str) -> Iterator[Json]:
    for number, document in enumerate(_documents(name), 1):
        if document is None:
            continue
        where = f"{_named(name)}, document {number}"
        if not isinstance(document, dict):
            kind = type(document).__name__
            raise ManifestError(f"{where}: this is a {kind}, not an object with kind and metadata")
        obj = cast("Json", document)
        items = obj.get("items")
        if isinstance(items, list) and str(obj.get("kind", "")).endswith("List"):
            every = cast("list[Any]", items)
            yield from (_checked(one, f"{where}, item {n}") for n, one in enumerate(every, 1))
        else:
            yield _checked(obj, where)


def _checked(obj: Any, where: str) -> Json:
    """What can be asked for by its kind and name."""
    fields = cast("Json", obj) if isinstance(obj, dict) else {}
    for field in ("apiVersion", "kind"):
        if not isinstance(fields.get(field), str) or not fields[field]:
            raise ManifestError(f"{where}: {field} is missing")
    meta = fields.get("metadata")
    name = cast("Json", meta).get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        raise ManifestError(f"{where}: metadata.name of this {fields['kind']} is missing")
    return fields


def _documents(name: str) -> list[Any]:
    try:
        text = sys.stdin.read() if name == STDIN else Path(name).read_text(encoding="utf-8")
        return list(yaml.safe_load_all(text))
    except OSError as error:
        raise ManifestError(f"cannot read {_named(name)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{_named(name)} is no text in UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The parser reports the place in several lines.
        words = " ".join(str(error).split())
        raise ManifestError(f"{_named(name)} is no YAML: {words}") from error


def _named(name: str) -> str:
    return "standard input" if name == STDIN else name
