"""Metrics by TLS: only for a token whose user may read them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, TCPConnector
from prometheus_client import CollectorRegistry, Counter

from penstock.controllers.jailed_config.secure_metrics import serve_securely
from penstock.kube import Client, Request, Response


class Reviews:
    """An API server that knows one token of each kind."""

    def __init__(self) -> None:
        self.fails = False

    async def send(self, request: Request) -> Response:
        if self.fails:
            return Response(403, b'{"kind": "Status", "code": 403, "message": "no"}')
        spec = msgspec.json.decode(request.body)["spec"]
        if request.path.endswith("/tokenreviews"):
            user = {"username": spec["token"]}
            status: object = {"authenticated": spec["token"] in ("reader", "other"), "user": user}
        else:
            assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            status = {"allowed": spec["user"] == "reader"}
        return Response(201, msgspec.json.encode({"status": status}))

    def stream(self, request: Request) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Basic reader", 401),
        ("Bearer ", 401),
        ("Bearer stranger", 401),
        ("Bearer other", 403),
        ("Bearer reader", 200),
        ("bearer reader", 200),
    ],
)
async def test_metrics_need_a_token_that_may_get_them(header: str | None, status: int) -> None:
    registry, reviews = CollectorRegistry(), Reviews()
    Counter("files", "Files.", registry=registry).inc()
    headers = {"Authorization": header} if header is not None else {}
    async with (
        serve_securely(Client(reviews), registry, "127.0.0.1", 0) as port,
        ClientSession(connector=TCPConnector(ssl=False), headers=headers) as session,
    ):
        async with session.get(f"https://127.0.0.1:{port}/metrics") as answer:
            assert answer.status == status
            assert ("files_total 1.0" in await answer.text()) == (status == 200)
        reviews.fails = True
        async with session.get(f"https://127.0.0.1:{port}/metrics") as answer:
            assert answer.status in (401, 503)
