"""What our own writes have made of objects, until the watch shows it."""

from __future__ import annotations

from typing import Generic, TypeVar

from penstock.api.kubernetes.meta import KubeObject
from penstock.kube.cache.store import version_of

T = TypeVar("T", bound=KubeObject)


class OwnWrites(Generic[T]):
    """The answers to our last writes, by `namespace/name`.

    The watch may not have delivered the last write yet; a decision from the older state would
    start over. Only objects that the cache had before are taken from answers: an object that was
    deleted again must not reappear.
    """

    def __init__(self) -> None:
        self._answers: dict[str, T] = {}
        self._versions: dict[str, int] = {}

    def wrote(self, obj: T) -> None:
        """Remember the object as the API server has answered."""
        self._answers[obj.metadata.key] = obj

    def note(self, key: str, version: int) -> None:
        """Remember the resourceVersion of our last write of an object, new ones included."""
        self._versions[key] = version

    def is_own(self, obj: T) -> bool:
        """Whether our last write has made an object what it is, or something newer."""
        version = version_of(obj.metadata.resource_version)
        return version <= self._versions.get(obj.metadata.key, 0)

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._versions.pop(key, None)

    def latest(self, key: str, seen: T | None) -> T | None:
        """The object as it was seen, or as our own write has left it since."""
        own = self._answers.get(key)
        if own is None:
            return seen
        if seen is not None and seen.metadata.uid == own.metadata.uid:
            had, made = (version_of(one.metadata.resource_version) for one in (seen, own))
            if had < made:
                return own
        del self._answers[key]
        return seen
