"""The webhooks' server on a real socket: what it answers, and certificates exchanged under it."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from cryptography import x509

from penstock.kube import Metrics
from penstock.kube.webhook.certificates import AUTHORITY_LIFETIME, LEAF_LIFETIME, Bundle, renewed
from penstock.kube.webhook.review import AdmissionRequest, Answer, Cause
from penstock.kube.webhook.server import LARGEST, WebhookServer
from unit.kube.test_admission import review

HOST = "127.0.0.1"
NOW = datetime.now(UTC)


def refusing(request: AdmissionRequest) -> Answer:
    return Answer((Cause("spec", f"no {request.name}"),))


def broken(_: AdmissionRequest) -> Answer:
    raise RuntimeError("a defect")


def trusting(bundle: Bundle) -> ssl.SSLContext:
    """A client that trusts these authorities and no others."""
    return ssl.create_default_context(cadata=bundle.authority.decode())


@asynccontextmanager
async def serving(bundle: Bundle) -> AsyncGenerator[WebhookServer]:
    handlers = {"/refuse": refusing, "/broken": broken}
    server = WebhookServer(handlers, Metrics(), port=0, host=HOST)
    try:
        await server.show(bundle.leaf, bundle.leaf_key)
        yield server
    finally:
        await server.close()


async def shown(server: WebhookServer, context: ssl.SSLContext) -> bytes:
    """The certificate that somebody sees who connects now, in DER."""
    _, writer = await asyncio.open_connection(HOST, server.port, ssl=context)
    try:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        return tls.getpeercert(binary_form=True) or b""
    finally:
        writer.close()
        await writer.wait_closed()


def serial(found: bytes | Bundle) -> int:
    if isinstance(found, Bundle):
        return x509.load_pem_x509_certificate(found.leaf).serial_number
    return x509.load_der_x509_certificate(found).serial_number


async def test_a_review_is_answered_over_tls_and_other_bodies_are_rejected():
    bundle = renewed(None, {HOST}, NOW)
    async with serving(bundle) as server, aiohttp.ClientSession() as session:
        url, tls = f"https://{HOST}:{server.port}", trusting(bundle)
        async with session.post(f"{url}/refuse", data=review(), ssl=tls) as said:
            assert (said.status, said.content_type) == (200, "application/json")
            assert (await said.json())["response"]["status"]["message"] == "spec: no compute"
        async with session.post(f"{url}/refuse", data=b"{}", ssl=tls) as said:
            assert said.status == 400
            assert "AdmissionReview" in await said.text()
        async with session.post(f"{url}/absent", data=review(), ssl=tls) as said:
            assert said.status == 404


async def test_a_handler_that_fails_leaves_it_to_the_failure_policy_and_the_next_is_answered():
    bundle = renewed(None, {HOST}, NOW)
    async with serving(bundle) as server, aiohttp.ClientSession() as session:
        url, tls = f"https://{HOST}:{server.port}", trusting(bundle)
        async with session.post(f"{url}/broken", data=review(), ssl=tls) as said:
            assert said.status == 500
        async with session.post(f"{url}/refuse", data=review(), ssl=tls) as said:
            assert said.status == 200


async def test_the_largest_objects_that_can_be_stored_are_read():
    bundle = renewed(None, {HOST}, NOW)
    text = "x" * (3 * 1024 * 1024 // 2)
    big = review(object={"spec": {"extraConf": text}}, oldObject={"spec": {"extraConf": text}})
    assert len(big) < LARGEST
    async with serving(bundle) as server, aiohttp.ClientSession() as session:
        url = f"https://{HOST}:{server.port}/refuse"
        async with session.post(url, data=io.BytesIO(big), ssl=trusting(bundle)) as said:
            assert said.status == 200


async def test_a_renewed_certificate_is_shown_to_whoever_connects_and_open_connections_go_on():
    """Feature row 64: upstream needs a restart for a new certificate."""
    first = renewed(None, {HOST}, NOW - LEAF_LIFETIME * 2 / 3 - timedelta(days=1))
    second = renewed(first, {HOST}, NOW)
    assert second.authority == first.authority
    tls = trusting(first)
    async with serving(first) as server, aiohttp.ClientSession() as session:
        url = f"https://{HOST}:{server.port}/refuse"
        assert serial(await shown(server, tls)) == serial(first)
        async with session.post(url, data=review(), ssl=tls) as said:
            assert said.status == 200
        port = server.port
        await server.show(second.leaf, second.leaf_key)
        assert server.port == port
        assert serial(await shown(server, tls)) == serial(second)
        async with session.post(url, data=review(), ssl=tls) as said:
            assert said.status == 200


async def test_while_authorities_change_a_client_that_knows_either_state_is_served():
    start = NOW - AUTHORITY_LIFETIME * 2 / 3
    old = renewed(None, {HOST}, start)
    for days in range(0, (NOW - start).days, 20):
        old = renewed(old, {HOST}, start + timedelta(days=days))
    both = renewed(old, {HOST}, NOW)
    assert both.authority != old.authority
    async with serving(old) as server:
        for client in (old, both):
            assert serial(await shown(server, trusting(client))) == serial(old)
        await server.show(both.leaf, both.leaf_key)
        for client in (old, both):
            assert serial(await shown(server, trusting(client))) == serial(both)
        with pytest.raises(ssl.SSLCertVerificationError):
            await shown(server, trusting(renewed(None, {HOST}, NOW)))


async def test_what_is_no_certificate_is_rejected_and_the_last_one_stays():
    bundle = renewed(None, {HOST}, NOW)
    other = renewed(None, {HOST}, NOW)
    async with serving(bundle) as server:
        for wrong in ((b"text", bundle.leaf_key), (bundle.leaf, other.leaf_key)):
            with pytest.raises(ssl.SSLError):
                await server.show(*wrong)
        assert serial(await shown(server, trusting(bundle))) == serial(bundle)
