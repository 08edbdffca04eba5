"""Content of objects that may be large and are seldom ours: kept once somebody has read it.

Anybody who may write to a namespace can fill it with ConfigMaps and Secrets of a megabyte each. Of
those that nobody reads only the metadata is in memory, and the content of small ones as long as all
of these together are within bounds: then a new process need not ask for each by itself. Reading
content that is not kept raises NotLoadedError and asks for it. Once it is there, the handlers of
the cache are called as for a change, and the reconcile that needed it begins again.

Source: ConfigMaps and Secrets, "limited to 1 MiB"; annotations, 256 KiB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
import structlog

from penstock.api.kubernetes.meta import KubeObject, ObjectMeta
from penstock.api.kubernetes.resource import Resource
from penstock.kube.cache.store import Entry, Store
from penstock.kube.client.backoff import Backoff
from penstock.kube.client.client import Client
from penstock.kube.client.errors import KubeError, NotFoundError
from penstock.kube.client.nesting import decode

T = TypeVar("T", bound=KubeObject)

LARGEST = 64 << 10
"""Bytes of JSON of an object whose content is kept before anybody reads it."""
SPARE = 16 << 20
"""Bytes of all of these together."""
WORDS = 64
"""Labels, and annotations, that are kept of an object without its content."""
LONGEST = 512
"""Characters of a label or annotation that is kept of such an object."""
PAUSE = Backoff(1.0, 30.0)
"""After an object could not be loaded."""
CONTENT = ("data", "binary_data")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class NotLoadedError(KubeError):
    """The content of an object is not in memory yet; it was asked for."""


class NotLoaded:
    """In place of a field with content: reading it asks for the object.

    It equals nothing but itself, so that a change of the object counts as a change of its content.
    """

    __slots__ = ("_missing",)

    def __init__(self, missing: Callable[[], NotLoadedError]) -> None:
        self._missing = missing

    def _read(self, *_: object) -> NoReturn:
        raise self._missing()

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __or__ = __ror__ = _read
    get = keys = items = values = _read


class OnDemand(Generic[T]):
    """Decides what is kept of each object of a cache, and loads what is missing."""

    def __init__(self, client: Client, resource: Resource[T], store: Store[T]) -> None:
        self._client = client
        self._resource = resource
        self._store = store
        self._fields = [one for one in CONTENT if one in resource.type.__struct_fields__]
        self._read: set[str] = set()
        self._unread: dict[str, int] = {}
        """Bytes of each object whose content is kept though nobody has read it."""
        self._kept = 0
        self._wanted: dict[str, None] = {}
        self._asked = asyncio.Event()
        store.subscribe(self._changed)

    def read(self, key: str) -> None:
        """Keep the content of this object from now on."""
        self._read.add(key)
        self._kept -= self._unread.pop(key, 0)

    def missing(self, key: str) -> NotLoadedError:
        """Ask for an object; the error for who needs it now."""
        self.read(key)
        self._wanted[key] = None
        self._asked.set()
        return NotLoadedError(f"{self._resource.kind} {key} is being loaded")

    def kept(self, entry: Entry[T], size: int) -> Entry[T]:
        """What to keep of an object that has come, with so many bytes of JSON."""
        key = entry.obj.metadata.key
        self._kept -= self._unread.pop(key, 0)
        if key in self._read:
            return entry
        if size <= LARGEST and self._kept + size <= SPARE:
            self._unread[key] = size
            self._kept += size
            return entry
        content = NotLoaded(lambda: self.missing(key))
        fields: dict[str, Any] = dict.fromkeys(self._fields, content)
        metadata = _slim(entry.obj.metadata)
        return Entry(msgspec.structs.replace(entry.obj, metadata=metadata, **fields))

    async def run(self, *, keep_raw: bool) -> None:
        """Load objects until cancelled."""
        failures = 0
        while True:
            await self._asked.wait()
            self._asked.clear()
            failed = ""
            for key in list(self._wanted):
                try:
                    await self._load(key, keep_raw=keep_raw)
                except KubeError as error:
                    failed = str(error)
            failures = failures + 1 if failed else 0
            if failed:
                log.warning("objects not loaded", resource=self._resource.plural, error=failed)
                await self._client.clock.sleep(PAUSE.delay(failures))
                self._asked.set()

    async def _load(self, key: str, *, keep_raw: bool) -> None:
        namespace, _, name = key.rpartition("/")
        try:
            raw = await self._client.get_raw(self._resource, namespace, name)
            obj = decode(raw, self._resource.type)
        except (NotFoundError, msgspec.DecodeError, UnicodeDecodeError) as error:
            # The watch shows that it is gone, or that it does not fit its type.
            log.info("object not loaded", key=key, error=str(error))
            self._wanted.pop(key, None)
            return
        self._wanted.pop(key, None)
        self._store.complete(Entry(obj, raw if keep_raw else None))

    def _changed(self, old: T | None, new: T | None) -> None:
        if new is None and old is not None:
            key = old.metadata.key
            self._kept -= self._unread.pop(key, 0)
            self._read.discard(key)


def _slim(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(
        meta, labels=_short(meta.labels), annotations=_short(meta.annotations)
    )


def _short(words: dict[str, str]) -> dict[str, str]:
    """The first short ones: kubectl writes a whole object into an annotation."""
    short = [one for one in words.items() if len(one[0]) + len(one[1]) <= LONGEST]
    return dict(short[:WORDS])
