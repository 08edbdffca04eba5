"""Requests to the Kubernetes API server with the ServiceAccount of the pod.

slurmctld starts its programs with no environment but SLURM_CONF, so that the address has a default.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "kubernetes.default.svc", 443
SECONDS = 10.0
"""How long one request may take."""
_READ = 65536


class UnavailableError(Exception):
    """The API server gave no answer, or one that another attempt may change."""


@dataclass(frozen=True)
class Reply:
    """The status code and the decoded body of an answer."""

    status: int
    body: dict[str, Any]

    @property
    def words(self) -> str:
        """The message of the API server."""
        return str(self.body.get("message") or f"status {self.status}")


def address() -> tuple[str, int]:
    """Return host and port: those of the pod's environment, or the Service's name."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if not host:
        return HOST, PORT
    return host, int(os.environ.get("KUBERNETES_SERVICE_PORT") or PORT)


def connect(host: str, port: int, folder: Path) -> socket.socket:
    """Return a TLS connection to a server that the ServiceAccount's authority vouches for."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    plain = socket.create_connection((host, port), timeout=SECONDS)
    return context.wrap_socket(plain, server_hostname=host)


@dataclass(frozen=True)
class KubeApi:
    """The API server as seen from a pod. `folder` has the ServiceAccount's token."""

    folder: Path = ACCOUNT
    address: tuple[str, int] = field(default_factory=address)
    connect: Callable[[str, int, Path], socket.socket] = connect

    def namespace(self) -> str:
        """Return the namespace of the pod; empty without a ServiceAccount."""
        try:
            return (self.folder / "namespace").read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """Send a request. Raises UnavailableError where another attempt may succeed."""
        try:
            answer = self._exchange(self._request(method, path, body))
        except OSError as error:
            raise UnavailableError(f"{self.address[0]}: {error}") from error
        head, _, content = answer.partition(b"\r\n\r\n")
        words = head.split(maxsplit=2)
        if len(words) < 2 or not words[1].isdigit():
            raise UnavailableError(f"{self.address[0]}: the connection was closed")
        status = int(words[1])
        try:
            reply = Reply(status, json.loads(content) if content.strip() else {})
        except ValueError:
            reply = Reply(status, {"message": content[:200].decode(errors="replace")})
            if status < 300:
                raise UnavailableError(f"{self.address[0]}: the answer is cut") from None
        # A new token or new rights may be on their way.
        if status in (401, 403, 408, 429) or status >= 500:
            raise UnavailableError(reply.words)
        return reply

    def _request(self, method: str, path: str, body: Any) -> bytes:
        token = (self.folder / "token").read_text(encoding="utf-8").strip()
        content = b"" if body is None else json.dumps(body).encode()
        # By version 1.0 the answer ends with the connection.
        lines = [
            f"{method} {path} HTTP/1.0",
            f"Host: {self.address[0]}",
            f"Authorization: Bearer {token}",
            "Accept: application/json",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + content

    def _exchange(self, request: bytes) -> bytes:
        parts: list[bytes] = []
        with self.connect(*self.address, self.folder) as line:
            line.sendall(request)
            while part := line.recv(_READ):
                parts.append(part)
        return b"".join(parts)
