"""Objects, one counter of versions for all, and what changed since when."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.selectors import Matches

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One state of one object; `raw` is its JSON. The object is never changed, only replaced."""

    obj: Json
    raw: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object. `old` or `new` is None when it was made or is gone.

    `last` is the object as a DELETED event shows it.
    """

    version: int
    resource: str
    key: Key
    old: Stored | None
    new: Stored | None
    last: Stored

    def event(self, namespace: str, matches: Matches | None) -> bytes | None:
        """The line of a watch on that namespace (empty for all) and selector."""
        if namespace and self.key[0] != namespace:
            return None
        was = self.old is not None and (matches is None or matches(self.old.obj))
        is_ = self.new is not None and (matches is None or matches(self.new.obj))
        if is_:
            return line(b"MODIFIED" if was else b"ADDED", self.last.raw)
        return line(b"DELETED", self.last.raw) if was else None


def line(type_: bytes, raw: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"' + type_ + b'","object":' + raw + b"}"


class Store:
    """Objects by resource (`group/plural`) and key."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = 0
        """To go on from a version before this one is Gone."""
        self.listeners: list[Callable[[Change], None]] = []
        self._objects: defaultdict[str, dict[Key, Stored]] = defaultdict(dict)
        self._history: defaultdict[str, deque[Change]] = defaultdict(deque)

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of which there ever were objects."""
        return tuple(self._objects)

    def get(self, resource: str, key: Key) -> Stored | None:
        """The object of that key."""
        return self._objects[resource].get(key)

    def all(self, resource: str, namespace: str = "") -> list[Stored]:
        """The objects of a resource by namespace and name."""
        found = self._objects[resource]
        return [found[key] for key in sorted(found) if not namespace or key[0] == namespace]

    def put(self, resource: str, key: Key, obj: Json) -> Stored:
        """Make or replace an object; it gets the next version."""
        old = self.get(resource, key)
        new = self._stored(obj)
        self._objects[resource][key] = new
        self._notify(Change(self.version, resource, key, old, new, new))
        return new

    def remove(self, resource: str, key: Key) -> Stored:
        """Take an object out; returns its last state."""
        old = self._objects[resource].pop(key)
        last = self._stored(old.obj)
        self._notify(Change(self.version, resource, key, old, None, last))
        return last

    def since(self, resource: str, version: int) -> Iterable[Change]:
        """The changes of a resource after a version."""
        return [one for one in self._history[resource] if one.version > version]

    def compact(self) -> None:
        """Forget the history."""
        self.oldest = self.version
        self._history.clear()

    def _stored(self, obj: Json) -> Stored:
        self.version += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.version)}
        obj = {**obj, "metadata": meta}
        return Stored(obj, msgspec.json.encode(obj), self.version)

    def _notify(self, change: Change) -> None:
        self._history[change.resource].append(change)
        for listener in tuple(self.listeners):
            listener(change)
