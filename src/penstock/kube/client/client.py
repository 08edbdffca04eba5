"""Typed verbs of the Kubernetes API.

What is read is decoded to the resource's partial struct; what is written is a plain manifest.
Every method raises KubeError: ApiError with the server's reason, or UnreachableError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube.client.clock import Clock, SystemClock
from penstock.kube.client.errors import GoneError
from penstock.kube.client.metrics import Metrics
from penstock.kube.client.nesting import decode
from penstock.kube.client.retry import Call, Rest, Retry
from penstock.kube.client.transport import Request, Stream, Transport

T = TypeVar("T", bound=KubeObject)

FIELD_MANAGER = "penstock"
"""The one name under which Penstock owns fields."""

APPLY = "application/apply-patch+yaml"
PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
PatchKind = Literal["merge", "json", "strategic"]


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects of a resource: one namespace (None for all), labels and fields as kubectl."""

    namespace: str | None = None
    labels: str = ""
    fields: str = ""

    def params(self) -> dict[str, str]:
        """Query parameters."""
        named = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {k: v for k, v in named.items() if v}


ALL = Selector()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A consistent list and the version it was taken at."""

    items: tuple[T, ...]
    resource_version: str


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class Page(Struct):
    """One page of a list; the items are not decoded."""

    metadata: _ListMeta
    items: list[Raw] | None = None


FIRST_PAGE = 2
"""Objects of the first page of a list whose objects may be large."""
LOG_BYTES = 1024 * 1024
"""Of a container's log that are read at once. A line of the kubelet has up to 16 KiB."""


class Client:
    """The verbs. `guard`, when given, is asked before each write; see `Rest.send`."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        concurrency: int = 32,
        retry: Retry | None = None,
        field_manager: str = FIELD_MANAGER,
    ) -> None:
        self.transport = transport
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.metrics = metrics if metrics is not None else Metrics()
        self.field_manager = field_manager
        self.guard: Callable[[], bool] | None = None
        self._rest = Rest(transport, self.clock, self.metrics, concurrency=concurrency, retry=retry)

    async def get(self, resource: Resource[T], namespace: str, name: str) -> T:
        """One object. Raises NotFoundError."""
        return _decode(resource, await self.get_raw(resource, namespace, name))

    async def get_raw(self, resource: Resource[Any], namespace: str, name: str) -> bytes:
        """One object as the server's JSON. Raises NotFoundError."""
        request = Request("GET", resource.path(namespace, name))
        return await self._send("get", resource, request)

    async def log(
        self, namespace: str, pod: str, container: str, lines: int, *, since_s: int | None = None
    ) -> str:
        """The last lines that a container wrote since it started, or in the last seconds.

        Fewer lines when so many have more than LOG_BYTES: the server counts bytes from the first of
        them, and the last ones are the news.

        Raises BadRequestError while it has not started, NotFoundError without the pod.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        while True:
            query = {
                "container": container,
                "tailLines": str(lines),
                "limitBytes": str(LOG_BYTES),
            }
            if since_s is not None:
                query["sinceSeconds"] = str(since_s)
            call = Call("get", "pods/log", Request("GET", path, query), timeout=10.0)
            body = (await self._rest.send(call)).body
            if len(body) < LOG_BYTES or lines <= 1:
                return body[:LOG_BYTES].decode(errors="replace")
            lines = max(1, lines // 8)

    async def list(self, resource: Resource[T], selector: Selector = ALL) -> Listing[T]:
        """All objects of the selector at one version, read past any stale cache."""
        items, version = await list_all(self, resource, selector)
        return Listing(tuple(_decode(resource, item) for item in items), version)

    async def pages(
        self,
        resource: Resource[Any],
        selector: Selector = ALL,
        *,
        limit: int = 500,
        page_bytes: int = 0,
    ) -> AsyncIterator[Page]:
        """The pages of a list. Raises GoneError when reading took longer than the server keeps.

        With `page_bytes` the first page is small, and each next one has as many objects as fit into
        so many bytes if they are as large as those before.
        """
        params = {**selector.params(), "limit": str(FIRST_PAGE if page_bytes else limit)}
        while True:
            request = Request("GET", resource.path(selector.namespace), dict(params))
            body = await self._send("list", resource, request, timeout=60.0)
            page = decode(body, Page)
            yield page
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_
            if page_bytes:
                fitting = page_bytes * len(page.items or ()) // len(body)
                params["limit"] = str(max(1, min(limit, fitting)))

    @asynccontextmanager
    async def watch(
        self, resource: Resource[Any], selector: Selector, params: dict[str, str]
    ) -> AsyncGenerator[Stream]:
        """Open a watch; `Reflector` makes a dependable one of it."""
        query = {**selector.params(), "watch": "1", "allowWatchBookmarks": "true", **params}
        request = Request("GET", resource.path(selector.namespace), query)
        async with self._rest.stream(Call("watch", resource.plural, request)) as stream:
            yield stream

    async def dry_run(self, resource: Resource[Any], live: Json | None, body: Json) -> Json:
        """Return the object after a create (`live` is None) or a merge patch, without writing it.

        Source: Kubernetes API concepts, "Dry-run". Raises KubeError if the server rejects it.
        """
        meta = (live or body)["metadata"]
        params = {"fieldManager": self.field_manager, "dryRun": "All"}
        name = meta["name"] if live is not None else None
        request = Request(
            "POST" if live is None else "PATCH",
            resource.path(meta.get("namespace"), name),
            params,
            msgspec.json.encode(body),
            "application/json" if live is None else PATCHES["merge"],
        )
        verb = "create" if live is None else "patch"
        return decode(await self._send(verb, resource, request), dict[str, Any])

    async def create(self, resource: Resource[T], manifest: Json, *, subresource: str = "") -> T:
        """POST a new object, or a subresource such as `eviction` of the named one.

        A create that was cut is sent again when the manifest has a name, so that
        AlreadyExistsError may mean our own object. Subresources are sent once.
        """
        meta = manifest.get("metadata", {})
        name = meta.get("name") if subresource else None
        request = Request(
            "POST",
            resource.path(meta.get("namespace"), name, subresource),
            {"fieldManager": self.field_manager},
            msgspec.json.encode(manifest),
        )
        repeat = bool(meta.get("name")) and not subresource
        return _decode(resource, await self._send("create", resource, request, repeat=repeat))

    async def apply(
        self, resource: Resource[T], manifest: Json, *, subresource: str = "", force: bool = True
    ) -> T:
        """Server-side apply under our field manager. Raises ConflictError when not forced."""
        body = await self.apply_raw(resource, manifest, subresource=subresource, force=force)
        return _decode(resource, body)

    async def apply_raw(
        self,
        resource: Resource[Any],
        manifest: Json,
        *,
        subresource: str = "",
        force: bool = True,
    ) -> bytes:
        """`apply`, answering the server's JSON."""
        meta = manifest["metadata"]
        request = Request(
            "PATCH",
            resource.path(meta.get("namespace"), meta["name"], subresource),
            {"fieldManager": self.field_manager, "force": "true" if force else "false"},
            msgspec.json.encode(manifest),
            APPLY,
        )
        return await self._send("patch", resource, request)

    async def patch(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        patch: Json | list[Json],
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
    ) -> T:
        """Patch; put uid or resourceVersion into its metadata to make them preconditions."""
        body = await self.patch_raw(
            resource, namespace, name, patch, kind=kind, subresource=subresource
        )
        return _decode(resource, body)

    async def patch_raw(
        self,
        resource: Resource[Any],
        namespace: str,
        name: str,
        patch: Json | list[Json],
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
    ) -> bytes:
        """`patch`, answering the server's JSON."""
        request = Request(
            "PATCH",
            resource.path(namespace, name, subresource),
            {"fieldManager": self.field_manager},
            msgspec.json.encode(patch),
            PATCHES[kind],
        )
        # A JSON patch may append, so it is not the same when done twice.
        return await self._send("patch", resource, request, repeat=kind != "json")

    async def delete(
        self,
        resource: Resource[Any],
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
        repeat: bool = True,
    ) -> None:
        """Delete exactly the object that was looked at.

        Without `repeat` it is sent once: for a delete that is right only at this moment.
        Raises ConflictError when it is another one (uid) or has changed (resource_version), and
        NotFoundError, also when a first attempt was cut after it had succeeded.
        """
        wanted = {"uid": uid, "resourceVersion": resource_version}
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {k: v for k, v in wanted.items() if v},
        }
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        request = Request(
            "DELETE", resource.path(namespace, name), body=msgspec.json.encode(options)
        )
        await self._send("delete", resource, request, repeat=repeat)

    async def _send(
        self,
        verb: str,
        resource: Resource[Any],
        request: Request,
        *,
        repeat: bool = True,
        timeout: float = 30.0,
    ) -> bytes:
        call = Call(verb, resource.plural, request, repeat, timeout)
        return (await self._rest.send(call, self.guard)).body


async def list_all(
    client: Client, resource: Resource[Any], selector: Selector
) -> tuple[list[Raw], str]:
    """All items undecoded and the version of the list, whatever the time it takes.

    A list that outlives its continue token is read once more in one piece, as client-go does.
    """
    try:
        return await _gather(client.pages(resource, selector))
    except GoneError:
        return await _gather(client.pages(resource, selector, limit=0))


async def _gather(pages: AsyncIterator[Page]) -> tuple[list[Raw], str]:
    items: list[Raw] = []
    version = ""
    async for page in pages:
        items += page.items or ()
        version = page.metadata.resource_version
    return items, version


def _decode(resource: Resource[T], body: bytes | Raw) -> T:
    return decode(body, resource.type)
