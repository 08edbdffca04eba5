"""The API server as the daemons of one cluster have it, where a namespace has several clusters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.kube.client.transport import Request, Response
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.apiserver.server import Deleting, Logs
from penstock.simulation.apiserver.store import Store

Shows = Callable[[str], bool]


def named_after(*clusters: str) -> Shows:
    """Whether the name of an object has one of these words, as all of a cluster's objects do."""
    words = re.compile(rf"(^|-)({'|'.join(clusters)})(-|$)")
    return lambda name: words.search(name) is not None


class _Listeners(list[Callable[[Change], None]]):
    """Callbacks that are called with changes of some objects only."""

    def __init__(self, inner: list[Callable[[Change], None]], shows: Shows) -> None:
        super().__init__()
        self._inner, self._shows = inner, shows

    def append(self, one: Callable[[Change], None], /) -> None:
        """Have the callback called."""
        shows = self._shows

        def changed(change: Change) -> None:
            if shows(change.key[1]):
                one(change)

        self._inner.append(changed)


class _StoreView:
    def __init__(self, store: Store, shows: Shows) -> None:
        self.listeners = _Listeners(store.listeners, shows)


class _Hooks(list[Deleting]):
    """Hooks that are called before deletes of some objects only."""

    def __init__(self, inner: list[Deleting], shows: Shows) -> None:
        super().__init__()
        self._inner, self._shows = inner, shows

    def append(self, one: Deleting, /) -> None:
        """Have the hook called."""
        shows = self._shows

        def deleting(user: str, obj: Json, resource: str) -> None:
            if shows(obj["metadata"]["name"]):
                one(user, obj, resource)

        self._inner.append(deleting)


class ServerView(ApiServer):
    """Objects of one cluster by their names. Requests go to the whole server."""

    def __init__(self, server: ApiServer, shows: Shows) -> None:
        self._server, self._shows = server, shows
        self.store = cast("Store", _StoreView(server.store, shows))
        self.deleting = _Hooks(server.deleting, shows)
        self.absent = server.absent
        self.now = server.now
        self.collect_after = server.collect_after

    def __setattr__(self, name: str, value: object) -> None:
        if name == "logs":
            self._add_logs(cast("Logs", value))
        else:
            super().__setattr__(name, value)

    def _add_logs(self, found: Logs) -> None:
        before, shows = self._server.logs, self._shows

        def log(namespace: str, name: str, container: str) -> str | None:
            return (found if shows(name) else before)(namespace, name, container)

        self._server.logs = log

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """An object as it is now."""
        return self._server.find(resource, namespace, name) if self._shows(name) else None

    def objects(self, resource: str, namespace: str = "") -> list[Json]:
        """All objects of a resource, by name."""
        found = self._server.objects(resource, namespace)
        return [one for one in found if self._shows(one["metadata"]["name"])]

    def handle(self, request: Request, user: str) -> Response:
        """Answer one request that is not a watch."""
        return self._server.handle(request, user)
