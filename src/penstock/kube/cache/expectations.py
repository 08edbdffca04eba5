"""What a cache must have seen before its view can be acted upon.

A controller that creates a pod and looks at its cache again may not find the pod yet, and would
create another one. So it notes each of its own writes, and looks only when the cache has
caught up with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from penstock.api.kubernetes.meta import KubeObject
from penstock.kube.cache.cache import Cache
from penstock.kube.cache.store import version_of
from penstock.kube.client.clock import Clock

T = TypeVar("T", bound=KubeObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Write:
    key: str
    namespace: str
    uid: str
    version: int
    gone: bool
    until: float


class Expectations(Generic[T]):
    """Own writes by owner key, each until the cache shows it or `expiry` seconds have passed.

    Expiry is the last resort for a write whose trace never comes; it is logged.
    """

    def __init__(self, cache: Cache[T], clock: Clock, *, expiry: float = 60.0) -> None:
        self._cache = cache
        self._clock = clock
        self._expiry = expiry
        self._writes: dict[str, dict[str, _Write]] = {}

    def wrote(self, owner: str, obj: KubeObject) -> None:
        """`obj` is what the API server answered to a create, an apply or a patch."""
        self._note(owner, obj, gone=False)

    def deleted(self, owner: str, obj: KubeObject) -> None:
        """`obj` was deleted: the cache must show it deleting, gone, or replaced."""
        self._note(owner, obj, gone=True)

    def satisfied(self, owner: str) -> bool:
        """Whether the cache shows every own write of that owner.

        If not, return `Result(requeue_after=1.0)`; events from the watch requeue the key as well.
        """
        writes = self._writes.get(owner)
        if not writes:
            return True
        for uid, write in list(writes.items()):
            if self._seen(write):
                del writes[uid]
            elif self._clock.monotonic() >= write.until:
                log.warning("write never seen in the cache", owner=owner, key=write.key)
                del writes[uid]
        if writes:
            return False
        del self._writes[owner]
        return True

    def forget(self, owner: str) -> None:
        """The owner is gone."""
        self._writes.pop(owner, None)

    def _note(self, owner: str, obj: KubeObject, *, gone: bool) -> None:
        meta = obj.metadata
        self._writes.setdefault(owner, {})[meta.uid] = _Write(
            key=meta.key,
            namespace=meta.namespace,
            uid=meta.uid,
            version=version_of(meta.resource_version),
            gone=gone,
            until=self._clock.monotonic() + self._expiry,
        )

    def _seen(self, write: _Write) -> bool:
        obj = self._cache.get(write.key)
        if obj is not None and obj.metadata.uid == write.uid:
            if write.gone:
                return obj.metadata.deleting
            return version_of(obj.metadata.resource_version) >= write.version
        # It is not there: not yet, or not any more. A cache that is past the write knows.
        return write.gone or self._cache.version(write.namespace) >= write.version
