"""A small API server in memory: versions, watches, conflicts, and faults on demand.

It is a Transport, so a Client can use it directly; `served` puts it behind real HTTP.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from aiohttp import web

from penstock.api.kubernetes.meta import Json
from penstock.kube.client.errors import UnreachableError
from penstock.kube.client.transport import Request, Response


@dataclass
class Fault:
    """What happens to the next request that fits. `lost` does it and cuts the answer."""

    status: int = 0
    reason: str = ""
    retry_after: float | None = None
    cut: bool = False
    lost: bool = False
    hang: bool = False
    times: int = 1
    when: Callable[[Request], bool] = lambda _: True


@dataclass
class _Watch:
    path: str
    labels: dict[str, set[str]]
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])
    stalled: bool = False
    cut: bool = False

    def send(self, type_: str, obj: Json) -> None:
        if not self.stalled:
            self.lines.put_nowait(msgspec.json.encode({"type": type_, "object": obj}))

    def end(self, *, cut: bool = False) -> None:
        self.cut = cut
        self.lines.put_nowait(None)


class FakeApi:
    """Objects by their path; one counter of versions for all."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 100
        self.history: deque[tuple[int, str, str, Json]] = deque()
        self.oldest = 0
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.watches: list[_Watch] = []
        self.streaming_lists = True
        self.initial_events_before_cut: int | None = None
        self.cut_initial_events_cleanly = False
        self.duplicate_events = False
        self.changed = asyncio.Event()

    # What a test does to the server

    def put(self, path: str, **parts: Any) -> Json:
        """Create or replace the object at `/api/v1/namespaces/a/configmaps/x`."""
        old = self.objects.get(path)
        collection, _, name = path.rpartition("/")
        self.version += 1
        segments = path.split("/")
        namespace = segments[segments.index("namespaces") + 1] if "namespaces" in segments else ""
        given = parts.pop("metadata", {})
        meta: Json = {
            "uid": old["metadata"]["uid"] if old else str(uuid.uuid4()),
            **given,
            "name": name,
            "namespace": namespace,
            "resourceVersion": str(self.version),
        }
        obj: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **parts}
        self.objects[path] = obj
        self._emit("MODIFIED" if old else "ADDED", collection, obj)
        return obj

    def remove(self, path: str) -> None:
        """Delete at once."""
        obj = self.objects.pop(path)
        self.version += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.version)}
        self._emit("DELETED", path.rpartition("/")[0], {**obj, "metadata": meta})

    def fail(self, *faults: Fault) -> None:
        """Have the next requests that fit fail, in this order."""
        self.faults += faults

    def cut_watches(self) -> None:
        """Break all connections of watches."""
        for watch in self.watches:
            watch.end(cut=True)

    def end_watches(self) -> None:
        """End all watches in order, as the server does when their time is over."""
        for watch in self.watches:
            watch.end()

    def stall_watches(self) -> None:
        """Black-hole all watches: connected, and nothing comes any more."""
        for watch in self.watches:
            watch.stalled = True

    def expire_watches(self) -> None:
        """Say 410 inside each watch, as when the server's window has moved on."""
        for watch in self.watches:
            watch.send("ERROR", _status(410, "Expired", "too old resource version"))
            watch.end()

    def compact(self) -> None:
        """Forget the history: to go on from an older version is answered with 410."""
        self.oldest = self.version
        self.history.clear()

    def bookmark(self) -> None:
        """Send a bookmark to each watch."""
        for watch in self.watches:
            watch.send("BOOKMARK", self._bookmark())

    # Transport

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        fault = self._fault(request)
        if fault is not None:
            if fault.hang:
                await asyncio.Event().wait()
            if fault.cut:
                raise UnreachableError("refused")
            if fault.lost:
                self._answer(request)
                raise UnreachableError("cut before the answer")
            body = _body(fault.status, fault.reason, "made to fail")
            return Response(fault.status, body, fault.retry_after)
        return self._answer(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[_FakeStream]:
        self.requests.append(request)
        fault = self._fault(request)
        if fault is not None:
            if fault.hang:
                await asyncio.Event().wait()
            if fault.cut:
                raise UnreachableError("refused")
            body = _body(fault.status, fault.reason, "made to fail")
            yield _FakeStream(Response(fault.status, body, fault.retry_after), None)
            return
        refused = self._refused_watch(request)
        if refused is not None:
            yield _FakeStream(refused, None)
            return
        watch = self._open(request)
        try:
            yield _FakeStream(Response(200), watch)
        finally:
            self.watches.remove(watch)

    async def close(self) -> None:
        pass

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.when(request):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def _refused_watch(self, request: Request) -> Response | None:
        if "sendInitialEvents" in request.params and not self.streaming_lists:
            words = "sendInitialEvents is forbidden for watch unless WatchList is enabled"
            return Response(422, _body(422, "Invalid", words))
        version = request.params.get("resourceVersion")
        if version and int(version) < self.oldest:
            return Response(410, _body(410, "Expired", "too old resource version"))
        return None

    def _open(self, request: Request) -> _Watch:
        watch = _Watch(request.path, _labels(request.params.get("labelSelector", "")))
        self.watches.append(watch)
        version = request.params.get("resourceVersion")
        if version:
            for number, type_, collection, obj in self.history:
                if number > int(version):
                    self._deliver(watch, type_, collection, obj)
            return watch
        for sent, obj in enumerate(self._listed(request)):
            if sent == self.initial_events_before_cut:
                self.initial_events_before_cut = None
                watch.end(cut=not self.cut_initial_events_cleanly)
                return watch
            watch.send("ADDED", obj)
        mark = self._bookmark()
        mark["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        watch.send("BOOKMARK", mark)
        return watch

    def _bookmark(self) -> Json:
        # A real bookmark does not fit the type of its resource: containers are null.
        meta = {"resourceVersion": str(self.version), "creationTimestamp": None}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "spec": None}

    def _emit(self, type_: str, collection: str, obj: Json) -> None:
        self.history.append((self.version, type_, collection, obj))
        for watch in self.watches:
            self._deliver(watch, type_, collection, obj)
            if self.duplicate_events:
                self._deliver(watch, type_, collection, obj)
        self.changed.set()

    def _deliver(self, watch: _Watch, type_: str, collection: str, obj: Json) -> None:
        if _within(watch.path, collection) and _has(obj, watch.labels):
            watch.send(type_, obj)

    def _listed(self, request: Request) -> list[Json]:
        wanted = _labels(request.params.get("labelSelector", ""))
        return [
            obj
            for path, obj in self.objects.items()
            if _within(request.path, path.rpartition("/")[0]) and _has(obj, wanted)
        ]

    def _answer(self, request: Request) -> Response:
        handler = {
            "GET": self._get,
            "POST": self._post,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }[request.method]
        return handler(request)

    def _get(self, request: Request) -> Response:
        if request.path in self.objects:
            return _ok(self.objects[request.path])
        segments = request.path.strip("/").split("/")
        if len(segments) % 2 == (1 if segments[0] == "api" else 0):
            start = int(request.params.get("continue", "0"))
            if start and start < self.oldest:
                return Response(410, _body(410, "Expired", "continue token too old"))
            found = self._listed(request)
            limit = int(request.params.get("limit", "0"))
            skip = int(request.params.get("continue", "0") or 0) % 1_000_000
            page = found[skip : skip + limit] if limit else found
            meta: Json = {"resourceVersion": str(self.version)}
            if limit and skip + limit < len(found):
                meta["continue"] = str(skip + limit)
            return _ok({"kind": "List", "metadata": meta, "items": page})
        return Response(404, _body(404, "NotFound", f"{request.path} not found"))

    def _post(self, request: Request) -> Response:
        manifest: Json = msgspec.json.decode(request.body)
        path = f"{request.path}/{manifest['metadata']['name']}"
        if path in self.objects:
            return Response(409, _body(409, "AlreadyExists", f"{path} already exists"))
        return _ok(self.put(path, **_parts(manifest)), 201)

    def _patch(self, request: Request) -> Response:
        patch: Json = msgspec.json.decode(request.body)
        old = self.objects.get(request.path)
        applying = "apply-patch" in request.content_type
        if old is None and not applying:
            return Response(404, _body(404, "NotFound", f"{request.path} not found"))
        if old is not None:
            for key in ("uid", "resourceVersion"):
                asked = patch.get("metadata", {}).get(key)
                if asked and asked != old["metadata"][key]:
                    return Response(409, _body(409, "Conflict", f"{key} is another"))
        merged = _merge(old or {}, patch)
        if old is not None and merged == old:
            return _ok(old)
        return _ok(self.put(request.path, **_parts(merged)), 200 if old else 201)

    def _delete(self, request: Request) -> Response:
        old = self.objects.get(request.path)
        if old is None:
            return Response(404, _body(404, "NotFound", f"{request.path} not found"))
        options: Json = msgspec.json.decode(request.body)
        for key, asked in options.get("preconditions", {}).items():
            if asked != old["metadata"][key]:
                return Response(409, _body(409, "Conflict", f"precondition {key} failed"))
        self.remove(request.path)
        return _ok(_status(200, "", ""))


class _FakeStream:
    def __init__(self, response: Response, watch: _Watch | None) -> None:
        self.response = response
        self._watch = watch

    async def lines(self) -> AsyncIterator[bytes]:
        watch = self._watch
        while watch is not None:
            line = await watch.lines.get()
            if line is None:
                if watch.cut:
                    raise UnreachableError("watch cut")
                return
            yield line


@asynccontextmanager
async def served(api: FakeApi) -> AsyncGenerator[str]:
    """Put the fake behind HTTP; yields its URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = Request(
            request.method,
            request.path,
            dict(request.query),
            await request.read(),
            request.content_type,
        )
        try:
            if "watch" not in request.query:
                answer = await api.send(asked)
                headers = {"Retry-After": f"{answer.retry_after:g}"} if answer.retry_after else {}
                return web.Response(status=answer.status, body=answer.body, headers=headers)
            async with api.stream(asked) as stream:
                response = web.StreamResponse(status=stream.response.status)
                await response.prepare(request)
                await response.write(stream.response.body)
                async for line in stream.lines():
                    await response.write(line + b"\n")
                return response
        except UnreachableError:
            assert request.transport is not None
            request.transport.close()
            raise

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _ok(obj: Json, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(obj))


def _status(code: int, reason: str, message: str) -> Json:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


def _body(code: int, reason: str, message: str) -> bytes:
    return msgspec.json.encode(_status(code, reason, message))


def _parts(manifest: Json) -> Json:
    return {k: v for k, v in manifest.items() if k != "metadata"} | {
        "metadata": {k: v for k, v in manifest.get("metadata", {}).items() if k != "uid" or v}
    }


def _merge(old: Json, patch: Json) -> Json:
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], cast("Json", value))
        else:
            merged[key] = value
    return merged


def _labels(selector: str) -> dict[str, set[str]]:
    """Of `key=value` by commas, or of one `key in (value,...)`."""
    if " in (" in selector:
        key, _, values = selector.rstrip(")").partition(" in (")
        return {key: set(values.split(","))}
    pairs = (part.split("=", 1) for part in selector.split(",") if part)
    return {key: {value} for key, value in pairs}


def _has(obj: Json, labels: dict[str, set[str]]) -> bool:
    had = obj["metadata"].get("labels", {})
    return all(had.get(k) in v for k, v in labels.items())


def _within(path: str, collection: str) -> bool:
    """Whether a collection belongs to a request for all namespaces, or for this one."""
    if path == collection:
        return True
    return "namespaces/" not in path and path.rpartition("/")[2] == collection.rpartition("/")[2]
