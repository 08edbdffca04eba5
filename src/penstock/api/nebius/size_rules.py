"""Sizes of texts, lists and mappings: what is larger is reported by its path, and not read.

Each of them becomes a part of pods and of files, so a size bounds the time of each reconcile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, cast

import msgspec

from penstock.api.admission import Problem

LONGEST_TEXT: Final = 2**17
"""Characters of a text. Source: MAX_ARG_STRLEN of the kernel, more than which no program can be
given as an argument or a variable."""
LONGEST_LINES: Final = 2**18
"""Characters of a text that is a file of its own."""
MOST_BYTES: Final = 3 * 2**17
"""Bytes of a spec as JSON. All files of a cluster are in one ConfigMap, which takes 2**20, and each
reconcile reads them several times."""
MOST_ITEMS: Final = 4096
"""Items of a list, or keys of a mapping."""
MOST_LEVELS: Final = 64
"""Levels of lists and mappings in fields that the schema leaves open."""
_FILES: Final = ("spec.customSlurmConfig", "spec.customCgroupConfig")
_LONGEST_KEY: Final = 60
"""Characters of a key that a path shows."""
_MOST_PROBLEMS: Final = 20
_Item = tuple[str, Any, int]


def size_problems(spec: msgspec.Struct) -> Iterator[Problem]:
    """Parts of a spec that are too large. Linear, without recursion."""
    found = list(islice(_too_large(spec), _MOST_PROBLEMS))
    if not found and (count := len(msgspec.json.encode(spec))) > MOST_BYTES:
        found.append(Problem("spec", f"has {count} bytes in all: write at most {MOST_BYTES}"))
    yield from found


def _too_large(spec: msgspec.Struct) -> Iterator[Problem]:
    stack: list[_Item] = [("spec", spec, 0)]
    while stack:
        path, value, level = stack.pop()
        if isinstance(value, str):
            most = LONGEST_LINES if path in _FILES else LONGEST_TEXT
            if len(value) > most:
                yield Problem(path, f"has {len(value)} characters: write at most {most}")
        elif isinstance(value, msgspec.Struct):
            stack += _attributes(path, value, level)
        elif level == MOST_LEVELS:
            yield Problem(path, f"is nested in more than {MOST_LEVELS} levels: write fewer")
        elif len(value) > MOST_ITEMS:
            yield Problem(path, f"has {len(value)} items: write at most {MOST_ITEMS}")
        elif isinstance(value, dict):
            stack += _keys(path, cast("Mapping[str, Any]", value), level + 1)
        else:
            items = enumerate(cast("list[Any]", value))
            stack += [(f"{path}[{i}]", one, level + 1) for i, one in items if _may_be_large(one)]


def _may_be_large(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > LONGEST_TEXT
    return isinstance(value, msgspec.Struct) or (
        isinstance(value, dict | list | tuple) and len(cast("list[Any]", value)) > 0
    )


def _attributes(path: str, value: msgspec.Struct, level: int) -> Iterator[_Item]:
    for attribute, name in _fields(type(value)):
        one = getattr(value, attribute)
        if _may_be_large(one):
            yield f"{path}.{name}", one, level


def _keys(path: str, value: Mapping[str, Any], level: int) -> Iterator[_Item]:
    for key, one in value.items():
        if _may_be_large(one):
            yield f"{path}.{key[:_LONGEST_KEY]}", one, level
        if len(key) > LONGEST_TEXT:
            yield f"{path}.{key[:_LONGEST_KEY]}", key, level


@cache
def _fields(of: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Attributes with their names in a path."""
    return tuple(zip(of.__struct_fields__, of.__struct_encode_fields__, strict=True))
