"""Metrics by TLS, for clients that the API server lets read them.

A request needs a bearer token whose user may `get` the path /metrics, as with controller-runtime.
The certificate is signed by an authority of this process, so clients cannot verify it.
Source: Kubernetes API reference, TokenReview v1 and SubjectAccessReview v1.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Client, KubeError
from penstock.kube.webhook.certificates import Bundle, renewed
from penstock.kube.webhook.server import load_chain

PATH = "/metrics"
RENEW_S = 86400.0
HOSTS = ("localhost", "sconfigcontroller")


class User(KubeStruct, frozen=True):
    """Whom a token belongs to."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()


class TokenStatus(KubeStruct, frozen=True):
    """Whether a token is valid."""

    authenticated: bool = False
    user: User = User()


class TokenReview(KubeObject, frozen=True):
    """A question about a token, and its answer."""

    status: TokenStatus = TokenStatus()


class AccessStatus(KubeStruct, frozen=True):
    """Whether access is allowed."""

    allowed: bool = False


class AccessReview(KubeObject, frozen=True):
    """A question about the rights of a user, and its answer."""

    status: AccessStatus = AccessStatus()


TOKEN_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", TokenReview, namespaced=False
)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "SubjectAccessReview",
    "subjectaccessreviews",
    AccessReview,
    namespaced=False,
)


class MetricsAccess:
    """Asks the API server who may read. `client` must have no guard: a standby answers too."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def status(self, authorization: str) -> int:
        """HTTP status for a request with this header: 200, 401, 403, or 503 without an answer."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401
        try:
            user = await self._user(token.strip())
            if user is None:
                return 401
            return 200 if await self._may_read(user) else 403
        except KubeError:
            return 503

    async def _user(self, token: str) -> User | None:
        review = await self._client.create(
            TOKEN_REVIEWS,
            {
                "apiVersion": TOKEN_REVIEWS.api_version,
                "kind": TOKEN_REVIEWS.kind,
                "spec": {"token": token},
            },
        )
        return review.status.user if review.status.authenticated else None

    async def _may_read(self, user: User) -> bool:
        review = await self._client.create(
            ACCESS_REVIEWS,
            {
                "apiVersion": ACCESS_REVIEWS.api_version,
                "kind": ACCESS_REVIEWS.kind,
                "spec": {
                    "user": user.username,
                    "uid": user.uid,
                    "groups": list(user.groups),
                    "nonResourceAttributes": {"path": PATH, "verb": "get"},
                },
            },
        )
        return review.status.allowed


@asynccontextmanager
async def serve_securely(
    client: Client, registry: CollectorRegistry, host: str | None, port: int
) -> AsyncGenerator[int]:
    """Serve while the block runs; yields the port. Raises OSError when it is taken."""
    access = MetricsAccess(client)

    async def answer(request: web.Request) -> web.Response:
        status = await access.status(request.headers.get("Authorization", ""))
        if status != 200:
            return web.Response(status=status, text=f"metrics need a token that may get {PATH}\n")
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    bundle = _show(context, None)
    app = web.Application()
    app.router.add_get(PATH, answer)
    runner = web.AppRunner(app, access_log=None)
    renewing = asyncio.create_task(_renew(context, bundle))
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        await runner.cleanup()


async def _renew(context: ssl.SSLContext, bundle: Bundle) -> None:
    while True:
        await asyncio.sleep(RENEW_S)
        bundle = _show(context, bundle)


def _show(context: ssl.SSLContext, bundle: Bundle | None) -> Bundle:
    found = renewed(bundle, HOSTS, datetime.now(UTC))
    load_chain(context, found.leaf, found.leaf_key)
    return found
