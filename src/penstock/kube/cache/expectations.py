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
    """Own writes for one owner, each until the cache shows it or `expiry` seconds have passed.

    Expiry is the last resort for a write whose trace never comes; it is logged.
    """

    def __init__(self, cache: Cache[T], clock: Clock, *, expiry: float = 60.0) -> None:
        self._cache = cache
        self._clock = clock
        self._expiry = expiry
        self._writes: dict[str, _Write] = {}

    def wrote(self, obj: KubeObject) -> None:
        """`obj` is what the API server answered to a create, an apply or a patch."""
        self._note(obj, gone=False)

    def deleted(self, obj: KubeObject) -> None:
        """`obj` was deleted: the cache must show it deleting, gone, or replaced."""
        self._note(obj, gone=True)

    def satisfied(self) -> bool:
        """Whether the cache shows every own write.

        If not, return `Result(requeue_after=1.0)`; events from the watch requeue the key as well.
        """
        for uid, write in list(self._writes.items()):
            if self._seen(write):
                del self._writes[uid]
            elif self._clock.monotonic() >= write.until:
                log.warning("write never seen in the cache", key=write.key)
                del self._writes[uid]
        return not self._writes

    def _note(self, obj: KubeObject, *, gone: bool) -> None:
        meta = obj.metadata
        self._writes[meta.uid] = _Write(
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
