"""The garbage collector: what has owners goes when the last of them has gone.

An object that is deleted with the finalizer `orphan` is taken off its dependents first.

Source: Kubernetes documentation, "Garbage Collection".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver.store import Change, Key, Store

Target = tuple[str, Key, str]
"""Resource, key and uid."""


class GarbageCollector:
    """Watches the store; `collect(target)` is called for each object whose owners are all gone.

    It is called at once; whoever made it may take its time, as the real one does.
    """

    def __init__(self, store: Store, collect: Callable[[Target], None]) -> None:
        self._collect = collect
        self._alive: set[str] = set()
        self._owners: dict[Target, frozenset[str]] = {}
        self._owned: defaultdict[str, set[Target]] = defaultdict(set)
        store.listeners.append(self._changed)

    def have_elsewhere(self, uids: Iterable[str]) -> None:
        """Owners that exist, though the store has none of their kind."""
        self._alive.update(uids)

    def orphaned(self, target: Target) -> bool:
        """Whether that object has owners and all are gone."""
        owners = self._owners.get(target)
        return bool(owners) and not owners & self._alive

    def owned(self, uid: str) -> list[Target]:
        """The objects of which that one is an owner."""
        return sorted(self._owned.get(uid, ()))

    def _changed(self, change: Change) -> None:
        meta: Json = change.last.obj["metadata"]
        uid = cast("str", meta["uid"])
        target = (change.resource, change.key, uid)
        for owner in self._owners.pop(target, ()):
            self._owned[owner].discard(target)
        if change.new is None:
            self._alive.discard(uid)
            for one in sorted(self._owned.pop(uid, ())):
                if self.orphaned(one):
                    self._collect(one)
            return
        self._alive.add(uid)
        owners = frozenset(one["uid"] for one in meta.get("ownerReferences") or ())
        if owners:
            self._owners[target] = owners
            for owner in owners:
                self._owned[owner].add(target)
            if self.orphaned(target):
                self._collect(target)
