"""The objects a cache holds, and the indexes over them. No input or output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from penstock.api.kubernetes.meta import KubeObject

T = TypeVar("T", bound=KubeObject)
Handler = Callable[[T | None, T | None], None]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


def version_of(text: str) -> int:
    """A resourceVersion as the number it is at kube-apiserver; 0 when it is none.

    Comparing them is sound for one resource of one server (KEP-5504).
    """
    return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One object, with its JSON where a cache keeps that."""

    obj: T
    raw: bytes | None = None


class Index(Generic[T]):
    """Objects by a value computed from them, such as the uid of their owner."""

    def __init__(self, values_of: Callable[[T], Iterable[str]]) -> None:
        self._values_of = values_of
        self._found: dict[str, dict[str, T]] = {}

    def get(self, value: str) -> tuple[T, ...]:
        """The objects with that value, in the order they came."""
        return tuple(self._found.get(value, {}).values())

    def count(self, value: str) -> int:
        """How many objects have that value."""
        return len(self._found.get(value, ()))

    def update(self, old: T | None, new: T | None) -> None:
        """Follow one change. An object that keeps a value keeps its place there."""
        values = tuple(self._values_of(new)) if new is not None else ()
        if old is not None:
            for value in self._values_of(old):
                if value in values:
                    continue
                objects = self._found.get(value)
                if objects is not None:
                    objects.pop(old.metadata.key, None)
                    if not objects:
                        del self._found[value]
        if new is not None:
            for value in values:
                self._found.setdefault(value, {})[new.metadata.key] = new


class Store(Generic[T]):
    """Objects by `namespace/name`; calls each handler for each change, in order.

    A handler gets (old, new): (None, new) for an addition, (old, None) for a deletion. An object
    that was deleted and recreated between two events counts as a deletion and an addition.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry[T]] = {}
        self._indexes: list[Index[T]] = []
        self._handlers: list[Handler[T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return (entry.obj for entry in list(self._entries.values()))

    def entry(self, key: str) -> Entry[T] | None:
        """The object of that key with its JSON."""
        return self._entries.get(key)

    def index(self, values_of: Callable[[T], Iterable[str]]) -> Index[T]:
        """Create an index of the present objects that follows each change."""
        index = Index(values_of)
        for obj in self:
            index.update(None, obj)
        self._indexes.append(index)
        return index

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Call `handler` for each present object and each change; returns how to unsubscribe."""
        self._handlers.append(handler)
        for obj in self:
            _notify(handler, None, obj)
        return lambda: self._handlers.remove(handler)

    def put(self, entry: Entry[T]) -> None:
        """Take an object in, unless the store already holds it or a newer state of it."""
        meta = entry.obj.metadata
        old = self._entries.get(meta.key)
        if old is not None:
            had = old.obj.metadata
            if had.uid == meta.uid and _not_newer(meta.resource_version, had.resource_version):
                return
            if had.uid != meta.uid:
                if version_of(meta.resource_version) < version_of(had.resource_version):
                    return
                self._change(meta.key, None)
        self._change(meta.key, entry)

    def complete(self, entry: Entry[T]) -> None:
        """Take in an object of which the store holds a part, unless it holds a newer state of it.

        One that the store does not hold is left out: it may have been deleted since.
        """
        key = entry.obj.metadata.key
        old = self._entries.get(key)
        if old is None:
            return
        if _version(old) == _version(entry):
            self._change(key, entry)
        else:
            self.put(entry)

    def remove(self, obj: T) -> None:
        """Take an object out, unless another one of that name has come since."""
        old = self._entries.get(obj.metadata.key)
        if old is None:
            return
        had, gone = old.obj.metadata, obj.metadata
        if had.uid == gone.uid or version_of(had.resource_version) <= version_of(
            gone.resource_version
        ):
            self._change(had.key, None)

    def replace(
        self, entries: Mapping[str, Entry[T]], *, namespace: str | None, keep: Iterable[str] = ()
    ) -> None:
        """Make the store (or its part in `namespace`) be `entries`; vanished objects are deleted.

        `keep` are keys that exist but could not be decoded: their last state stands.
        """
        kept = frozenset(keep)
        for key, old in list(self._entries.items()):
            if namespace is not None and old.obj.metadata.namespace != namespace:
                continue
            new = entries.get(key)
            if new is None:
                if key not in kept:
                    self._change(key, None)
            elif new.obj.metadata.uid != old.obj.metadata.uid:
                self._change(key, None)
        for key, new in entries.items():
            old = self._entries.get(key)
            # A list is the truth even when its version is lower: etcd may have been restored.
            if old is None or _version(old) != _version(new):
                self._change(key, new)

    def _change(self, key: str, entry: Entry[T] | None) -> None:
        old = self._entries.pop(key, None) if entry is None else self._entries.get(key)
        if entry is not None:
            self._entries[key] = entry
        before, after = (old.obj if old else None), (entry.obj if entry else None)
        for index in self._indexes:
            index.update(before, after)
        for handler in tuple(self._handlers):
            _notify(handler, before, after)


def _notify(handler: Handler[T], old: T | None, new: T | None) -> None:
    try:
        handler(old, new)
    except Exception:
        # A handler's bug must not stop the watch that all others live on.
        log.exception("cache handler failed", handler=repr(handler))


def _not_newer(new: str, old: str) -> bool:
    return new == old or 0 < version_of(new) < version_of(old)


def _version(entry: Entry[T]) -> str:
    return entry.obj.metadata.resource_version
