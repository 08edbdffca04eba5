"""Declarations of controllers: the watched kinds, and the keys that a change leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.cache.cache import Cache
from penstock.kube.runtime.controller import Controller, Result

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True, eq=False)
class IndexBy(Generic[T]):
    """Objects of a resource by values computed from each, such as the uid of the owner."""

    resource: Resource[T]
    values: Callable[[T], Iterable[str]]


class Lookup(Protocol):
    """The caches, read only. Reading is synchronous and sends nothing."""

    def get(self, resource: Resource[T], key: str) -> T | None:
        """The object `namespace/name` (or `name`), if it exists."""
        ...

    def all(self, resource: Resource[T]) -> Iterable[T]:
        """Every object of a resource."""
        ...

    def by(self, index: IndexBy[T], value: str) -> tuple[T, ...]:
        """The objects that have this value in an index."""
        ...

    def is_own_write(self, obj: KubeObject) -> bool:
        """Whether a write of this process made the object what it is, or something newer."""
        ...


@dataclass(frozen=True, slots=True)
class Watch(Generic[T]):
    """One watched resource.

    `keys(obj, lookup)` returns the keys (`namespace/name`) of the objects to reconcile. A change
    leads to the keys of the old state and of the new one, unless `changed(old, new)` is False.
    """

    resource: Resource[T]
    keys: Callable[[T, Lookup], Iterable[str]]
    changed: Callable[[T | None, T | None], bool] | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """A source of keys beside the API server, by its name in `Signals`."""

    name: str
    keys: Callable[[str, Lookup], Iterable[str]]


Emitted = Callable[[str, float], None]


class Signals:
    """Named signals with the key of an object: answers of Slurm, or work of other controllers."""

    def __init__(self) -> None:
        self._handlers: dict[str, list[Emitted]] = {}

    def on(self, name: str, handler: Emitted) -> None:
        """Call `handler(key, after_s)` for each emission, in the order of registration."""
        self._handlers.setdefault(name, []).append(handler)

    def emit(self, name: str, key: str, after_s: float = 0.0) -> None:
        """Requeue what depends on `key`, at once or after some seconds."""
        for handler in self._handlers.get(name, ()):
            handler(key, after_s)


class Declaration(Protocol):
    """A reconciler as start-up sees it."""

    @property
    def name(self) -> str:
        """The name of its work queue, in logs and metrics."""
        ...

    @property
    def watches(self) -> tuple[Watch[Any], ...]:
        """The resources that it watches."""
        ...

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The signals that it follows."""
        ...

    async def run(self, key: str, /) -> Result:
        """Reconcile the object with this key. Raises KubeError."""
        ...


def subscribe(
    controller: Controller,
    declaration: Declaration,
    lookup: Lookup,
    cache_of: Callable[[Resource[Any]], Cache[Any]],
    signals: Signals,
) -> None:
    """Connect the queue of a controller to all that its reconciler declares."""
    for watch in declaration.watches:
        keys_of = partial(_keys, watch, lookup)
        controller.watches(cache_of(watch.resource), keys_of, when=watch.changed)
    for signal in declaration.signals:
        signals.on(signal.name, partial(_enqueue, controller, signal, lookup))


def _keys(watch: Watch[Any], lookup: Lookup, obj: KubeObject) -> Iterable[str]:
    return watch.keys(obj, lookup)


def _enqueue(
    controller: Controller, signal: Signal, lookup: Lookup, key: str, after_s: float
) -> None:
    for one in signal.keys(key, lookup):
        if after_s:
            controller.queue.add_after(one, after_s)
        else:
            controller.queue.add(one)
