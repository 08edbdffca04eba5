"""The API server as an administrator sees it, with waiting for the events of its watches."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import yaml

from e2e_kit.patience import patience

Json = dict[str, Any]
T = TypeVar("T")

GROUPS = {
    "configmaps": "/api/v1",
    "events": "/apis/events.k8s.io/v1",
    "namespaces": "/api/v1",
    "pods": "/api/v1",
    "secrets": "/api/v1",
    "services": "/api/v1",
    "deployments": "/apis/apps/v1",
    "controllerrevisions": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "partitions": "/apis/penstock.dev/v1alpha1",
}
KINDS = "/apis/slinky.slurm.net/v1beta1"


class Api:
    """HTTPS with a client certificate from a kubeconfig; each call has its own connection."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]))
            pair.flush()
            self._context.load_cert_chain(pair.name)
        server: str = cluster["server"]
        parts = urlsplit(server)
        self._host, self._port = parts.hostname or "", parts.port or 443

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """One object; None when it is not there."""
        with self._ask(_path(resource, namespace, name), 30) as answer:
            return None if answer.status == http.HTTPStatus.NOT_FOUND else _object(answer)

    def list(self, resource: str, namespace: str, selector: str = "") -> list[Json]:
        """The objects of a namespace."""
        return list(self._list(resource, namespace, selector)["items"])

    def until(
        self,
        resource: str,
        namespace: str,
        holds: Callable[[dict[str, Json]], T | None],
        *,
        what: str,
        timeout: float = 60.0,
        selector: str = "",
    ) -> T:
        """Wait for `holds`, given the objects by name, and return what it returned.

        It is asked at once and after each change. Raises AssertionError with the last state.
        """
        timeout = patience(timeout)
        deadline = time.monotonic() + timeout
        found: dict[str, Json] = {}
        with contextlib.closing(self._states(resource, namespace, selector, deadline)) as states:
            for found in states:
                if (result := holds(found)) is not None and result is not False:
                    return result
        told = {name: _short(one) for name, one in found.items()}
        raise AssertionError(f"not within {timeout} s: {what}; {resource} are {told}")

    def _states(
        self, resource: str, namespace: str, selector: str, deadline: float
    ) -> Generator[dict[str, Json]]:
        while time.monotonic() < deadline:
            listed = self._list(resource, namespace, selector)
            found = {one["metadata"]["name"]: one for one in listed["items"]}
            yield found
            version = listed["metadata"]["resourceVersion"]
            events = self._watch(resource, namespace, selector, version, deadline)
            with contextlib.closing(events):
                for event in events:
                    if event["type"] == "ERROR":
                        break
                    one = event["object"]
                    if event["type"] == "DELETED":
                        found.pop(one["metadata"]["name"], None)
                    else:
                        found[one["metadata"]["name"]] = one
                    yield found
        yield {
            one["metadata"]["name"]: one
            for one in self._list(resource, namespace, selector)["items"]
        }

    def _list(self, resource: str, namespace: str, selector: str) -> Json:
        query = {"labelSelector": selector} if selector else {}
        with self._ask(f"{_path(resource, namespace)}?{urlencode(query)}", 30) as answer:
            return _object(answer)

    def _watch(
        self, resource: str, namespace: str, selector: str, version: str, deadline: float
    ) -> Generator[Json]:
        query = {"watch": "1", "resourceVersion": version, "labelSelector": selector}
        left = deadline - time.monotonic()
        if left <= 0:
            return
        with (
            contextlib.suppress(TimeoutError),
            self._ask(f"{_path(resource, namespace)}?{urlencode(query)}", left) as answer,
        ):
            # Each line renews the socket's time limit.
            while time.monotonic() < deadline and (line := answer.readline()):
                yield json.loads(line)

    @contextlib.contextmanager
    def _ask(self, path: str, timeout: float) -> Generator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout, context=self._context
        )
        try:
            connection.request("GET", path)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()


def _path(resource: str, namespace: str, name: str = "") -> str:
    group = GROUPS.get(resource, KINDS)
    space = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{space}/{resource}" + (f"/{name}" if name else "")


def _object(answer: http.client.HTTPResponse) -> Json:
    body = json.loads(answer.read())
    assert answer.status == http.HTTPStatus.OK, body
    return body


def _short(one: Json) -> Json:
    status = dict(one.get("status") or {})
    for long in ("containerStatuses", "initContainerStatuses", "podIPs", "hostIPs"):
        status.pop(long, None)
    return status


def condition(obj: Json, kind: str) -> Json:
    """A condition by its type; empty when there is none."""
    status: Json = obj.get("status") or {}
    found: list[Json] = status.get("conditions") or []
    none: Json = {}
    return next((one for one in found if one["type"] == kind), none)


def ready(obj: Json) -> bool:
    """Whether Ready is true for the present generation."""
    one = condition(obj, "Ready")
    current = obj["metadata"].get("generation")
    return one.get("status") == "True" and one.get("observedGeneration", current) == current


def restarts(pod: Json) -> int:
    """How often containers of a pod were restarted, side containers included."""
    status: Json = pod.get("status") or {}
    every: list[Json] = [
        *status.get("containerStatuses", []),
        *status.get("initContainerStatuses", []),
    ]
    return sum(one["restartCount"] for one in every)
