"""topology.yaml as data, within bounds: it is a user's text, and everybody waits while it is read.

It is read as a stream of events, in which an alias is only a name: a text of a kilobyte may stand
for a document that fits into no memory. Source: topology.yaml(5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final, cast

import yaml

from penstock.api.kubernetes.meta import Json
from penstock.base.yaml_text import LOADER

FILE: Final = "topology.yaml"
MOST_CHARACTERS: Final = 64 * 1024
"""Of a file that is read. Two hundred switches of 25 nodes have 15,000."""
MOST_LEVELS: Final = 20
"""Deeper than any topology; the parser in C overflows its stack at some thousands."""
_UNITS: Final = ("switch", "block", "ring")
_OPENS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSES = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


@dataclass(frozen=True, slots=True)
class TopologyFile:
    """The topologies of a file, each scalar as the text that stands there.

    None are known of a file that is too long, too deep, no YAML, or no list.
    """

    topologies: tuple[Json, ...] = ()
    aliased: bool = False
    """Whether it has aliases: in the place of each is None."""

    def units(self) -> Mapping[str, frozenset[str]]:
        """By topology the names of switches, blocks and rings anywhere below it."""
        found: dict[str, frozenset[str]] = {}
        for one in self.topologies:
            name = one.get("topology")
            if isinstance(name, str) and name:
                found[name] = found.get(name, frozenset()).union(_units(one))
        return found


class _TooDeepError(ValueError):
    """The file is nested in more levels than MOST_LEVELS."""


@lru_cache(maxsize=32)
def read(text: str) -> TopologyFile:
    """The file, as far as it can be judged."""
    if len(text) > MOST_CHARACTERS:
        return TopologyFile()
    aliases: list[str] = []
    try:
        documents = _documents(text, aliases)
    except (yaml.YAMLError, ValueError):
        return TopologyFile()
    if len(documents) != 1 or not isinstance(documents[0], list):
        return TopologyFile()
    listed = tuple(
        cast("Json", one) for one in cast("list[Any]", documents[0]) if isinstance(one, dict)
    )
    return TopologyFile(listed, bool(aliases))


def _documents(text: str, aliases: list[str]) -> list[Any]:
    events = _events(text)
    return [_value(next(events), events, aliases) for one in events if _begins(one)]


def _begins(event: object) -> bool:
    return isinstance(event, yaml.DocumentStartEvent)


def _events(text: str) -> Iterator[Any]:
    """The events of a text, in which collections are nested no deeper than MOST_LEVELS."""
    levels = 0
    for event in yaml.parse(text, Loader=LOADER):
        levels += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
        if levels > MOST_LEVELS:
            raise _TooDeepError
        yield event


def _value(event: Any, events: Iterator[Any], aliases: list[str]) -> Any:
    """What an event begins; `aliases` gets the names of those in it."""
    if isinstance(event, yaml.AliasEvent):
        aliases.append(str(event.anchor))
        return None
    if not isinstance(event, _OPENS):
        return event.value
    parts: list[Any] = []
    for one in events:
        if isinstance(one, _CLOSES):
            break
        parts.append(_value(one, events, aliases))
    if isinstance(event, yaml.SequenceStartEvent):
        return parts
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {key: value for key, value in pairs if isinstance(key, str)}


def _units(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from chain.from_iterable(map(_units, cast("list[Any]", value)))
    elif isinstance(value, dict):
        for key, one in cast("Json", value).items():
            if key in _UNITS and isinstance(one, str) and one:
                yield one
            yield from _units(one)
