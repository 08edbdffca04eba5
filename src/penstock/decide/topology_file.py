"""topology.yaml as data, within bounds: it is a user's text, and everybody waits while it is read.

Source: topology.yaml(5).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, cast

import yaml

from penstock.api.meta import Json

FILE: Final = "topology.yaml"
MOST_CHARACTERS: Final = 64 * 1024
MOST_LEVELS: Final = 20
"""Deeper than any topology; the parser in C overflows its stack at some thousands."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSES = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


@lru_cache(maxsize=32)
def topologies(text: str) -> tuple[Json, ...]:
    """The topologies of the file; none when it is too long, too deep, or no list."""
    if len(text) > MOST_CHARACTERS:
        return ()
    try:
        if not _flat_enough(text):
            return ()
        document: Any = yaml.load(text, Loader=_LOADER)  # noqa: S506 (it is a safe one)
    except (yaml.YAMLError, ValueError):
        return ()
    if not isinstance(document, list):
        return ()
    return tuple(cast("Json", one) for one in cast("list[Any]", document) if isinstance(one, dict))


def _flat_enough(text: str) -> bool:
    levels = 0
    for event in yaml.parse(text, Loader=_LOADER):
        levels += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
        # What an alias stands for may contain it, or be a thousand times as long.
        if levels > MOST_LEVELS or isinstance(event, yaml.AliasEvent):
            return False
    return True
