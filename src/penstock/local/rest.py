"""A plain client for the node's own API server, for the few calls that bringing it up takes."""

import http.client
import json
import ssl
import time
from pathlib import Path
from typing import Any

from penstock.local.errors import LocalError

RETRY = 0.1
RETRIED = (403, 404, 429, 500, 503)
"""Answers of a server whose namespaces, roles and caches are still being made."""


class Rest:
    """HTTPS with a client certificate; one connection, kept open."""

    def __init__(self, host: str, pki: Path) -> None:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._connection = http.client.HTTPSConnection(host, 6443, timeout=10, context=context)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and body of one call; status 0 when the server cannot be reached."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if data else {}
        try:
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return 0, str(error)
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return answer.status, json.loads(text) if is_json else text

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ready(self) -> bool:
        """Whether the API server's /readyz succeeds."""
        return self.ask("GET", "/readyz")[0] == http.HTTPStatus.OK

    def create(self, path: str, obj: dict[str, Any], deadline: float) -> None:
        """Create an object in collection `path`; it may be there already.

        Tried again until `deadline` (time.monotonic()) while the server is starting.
        """
        while True:
            status, body = self.ask("POST", path, obj)
            if status in (http.HTTPStatus.CREATED, http.HTTPStatus.CONFLICT):
                return
            if (status and status not in RETRIED) or time.monotonic() > deadline:
                name = obj["metadata"]["name"]
                raise LocalError(f"The API server rejected {obj['kind']} {name}: {status} {body}")
            time.sleep(RETRY)
