"""State that outlives one reconcile: it belongs to one object and goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from penstock.api.kubernetes.meta import KubeObject, ObjectMeta
from penstock.kube.cache.cache import Cache

S = TypeVar("S")
T = TypeVar("T", bound=KubeObject)


class Identified(Protocol):
    """An object of the API server, or data that was made of one."""

    @property
    def metadata(self) -> ObjectMeta:
        """With the uid of the object."""
        ...


class StateByUid(Generic[S]):
    """One state for each object of a cache, by its uid; dropped when the object is gone.

    Another object of the same name begins with a new state.
    """

    def __init__(self, cache: Cache[Any], new: Callable[[], S]) -> None:
        self._cache = cache
        self._new = new
        self._states: dict[str, S] = {}
        cache.subscribe(self._changed)

    def of(self, obj: Identified) -> S:
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
        if (ended := gone(old, new)) is not None:
            self._states.pop(ended.metadata.uid, None)


def gone(old: T | None, new: T | None) -> T | None:
    """The object that a change in a cache took away, if it did.

    A watch that was interrupted may show a deletion and the creation of another object under the
    same name as one change.
    """
    if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
        return old
    return None
