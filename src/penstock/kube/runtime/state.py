"""State that outlives one reconcile: it belongs to one object and goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.api.kubernetes.meta import KubeObject
from penstock.kube.cache.cache import Cache

S = TypeVar("S")


class StateByUid(Generic[S]):
    """One state for each object of a cache, by its uid; dropped when the object is gone.

    Another object of the same name begins with a new state.
    """

    def __init__(self, cache: Cache[Any], new: Callable[[], S]) -> None:
        self._cache = cache
        self._new = new
        self._states: dict[str, S] = {}
        cache.subscribe(self._changed)

    def of(self, obj: KubeObject) -> S:
        """The state of an object. That of an object which is gone meanwhile is not kept."""
        uid = obj.metadata.uid
        found = self._states.get(uid)
        if found is None:
            found = self._new()
            live = self._cache.get(obj.metadata.key)
            if live is not None and live.metadata.uid == uid:
                self._states[uid] = found
        return found

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._states.pop(old.metadata.uid, None)
