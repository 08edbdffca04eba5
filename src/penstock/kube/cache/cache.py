"""Informer cache: objects of the API server in memory, kept up to date by watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.cache.on_demand import OnDemand
from penstock.kube.cache.reflector import Pace, Reflector
from penstock.kube.cache.store import Entry, Handler, Index, Store
from penstock.kube.client.client import Client, Selector
from penstock.kube.client.clock import Clock

T = TypeVar("T", bound=KubeObject)


class Cache(Generic[T]):
    """One resource, in all or in named namespaces, narrowed by label and field selectors.

    `raw` keeps each object's whole JSON beside the partial struct: for kinds of few objects.
    `on_demand` keeps the content of objects once it was read, see `penstock.kube.cache.on_demand`.
    Reading is synchronous and takes no call; `run` does the watching and never returns.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespaces: Iterable[str] = (),
        labels: str = "",
        fields: str = "",
        raw: bool = False,
        on_demand: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self.resource = resource
        self.keep_raw = raw
        self._client = client
        self._pace = pace
        self._store = Store[T]()
        self._on_demand = OnDemand(client, resource, self._store) if on_demand else None
        self._synced = asyncio.Event()
        self._reflectors: list[tuple[_Part[T], Reflector[T]]] = []
        scopes: tuple[str | None, ...] = tuple(sorted(set(namespaces))) or (None,)
        if not resource.namespaced:
            scopes = (None,)
        self._parts = {
            scope: _Part(self._store, client.clock, Selector(scope, labels, fields), self._listed)
            for scope in scopes
        }

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def get(self, key: str) -> T | None:
        """The object `namespace/name` (or `name`), if it is there."""
        entry = self._store.entry(key)
        if entry is None:
            return None
        if self._on_demand is not None:
            self._on_demand.read(key)
        return entry.obj

    def raw(self, key: str) -> Json | None:
        """The whole object as JSON, decoded at each call. Needs `raw=True`.

        Raises NotLoadedError.
        """
        entry = self._store.entry(key)
        if entry is None:
            return None
        if entry.raw is None:
            if self._on_demand is not None and self.keep_raw:
                raise self._on_demand.missing(key)
            raise ValueError(f"the cache of {self.resource.plural} does not keep JSON")
        decoded: Any = msgspec.json.decode(entry.raw)
        # The items of a list come without these two; a manifest to compare with has them.
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **decoded}

    def index(self, values_of: Callable[[T], Iterable[str]]) -> Index[T]:
        """Index of the objects by the values that `values_of` returns; it follows each change."""
        return self._store.index(values_of)

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Call `handler(old, new)` for each present object and for each change, synchronously.

        Returns how to unsubscribe.
        """
        return self._store.subscribe(handler)

    @property
    def synced(self) -> bool:
        """Whether every namespace was listed once; stays true through interruptions."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait for `synced`."""
        await self._synced.wait()

    @property
    def absent(self) -> str:
        """Why an optional resource is not served, as far as is known; empty when it is."""
        return next((part.missing for part in self._parts.values() if part.missing), "")

    def version(self, namespace: str = "") -> int:
        """The resourceVersion up to which everything of that namespace has been seen."""
        part = self._parts.get(None) or self._parts.get(namespace)
        return part.version if part else 0

    def silence(self) -> float:
        """Seconds since the quietest watch showed a sign of life; rises while one is cut off."""
        return self._client.clock.monotonic() - min(p.alive_at for p in self._parts.values())

    def idle(self) -> float:
        """Seconds since the least active watch had an event or an attempt; 0 before `run`.

        It stays small while the server is away: a watch that works goes on trying.
        """
        now = self._client.clock.monotonic()
        return max(
            (now - max(part.alive_at, one.tried_at) for part, one in self._reflectors), default=0.0
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        metrics, plural = self._client.metrics, self.resource.plural
        metrics.watch_lag.labels(plural).set_function(self.silence)
        metrics.cached.labels(plural).set_function(lambda: len(self))
        async with asyncio.TaskGroup() as group:
            if self._on_demand is not None:
                group.create_task(self._on_demand.run(keep_raw=self.keep_raw))
            for part in self._parts.values():
                reflector = Reflector(
                    self._client,
                    self.resource,
                    part.selector,
                    part,
                    keep_raw=self.keep_raw,
                    kept=self._on_demand.kept if self._on_demand is not None else None,
                    pace=self._pace,
                )
                self._reflectors.append((part, reflector))
                group.create_task(reflector.run())

    def _listed(self) -> None:
        if all(part.version or part.missing for part in self._parts.values()):
            self._synced.set()


class _Part(Generic[T]):
    """The sink of one namespace's watch."""

    def __init__(
        self, store: Store[T], clock: Clock, selector: Selector, listed: Callable[[], None]
    ) -> None:
        self.selector = selector
        self.version = 0
        self.missing = ""
        self.alive_at = clock.monotonic()
        self._store = store
        self._clock = clock
        self._listed = listed

    def replace(self, entries: Mapping[str, Entry[T]], keep: frozenset[str]) -> None:
        self._store.replace(entries, namespace=self.selector.namespace, keep=keep)

    def put(self, entry: Entry[T]) -> None:
        self._store.put(entry)

    def remove(self, obj: T) -> None:
        self._store.remove(obj)

    def absent(self, why: str) -> None:
        self._store.replace({}, namespace=self.selector.namespace, keep=frozenset())
        self.version, self.missing = 0, why or "it is not served"
        self.alive_at = self._clock.monotonic()
        self._listed()

    def reached(self, version: int) -> None:
        self.version, self.missing = version, ""
        self.alive_at = self._clock.monotonic()
        self._listed()
