"""The webhooks' server on a real socket: what it answers, and certificates exchanged under it."""

from __future__ import annotations

import asyncio
import io
import ssl
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.kube import Metrics
from penstock.kube.webhook.callers import Callers
from penstock.kube.webhook.certificates import AUTHORITY_LIFETIME, LEAF_LIFETIME, Bundle, renewed
from penstock.kube.webhook.limits import LARGEST, Limits
from penstock.kube.webhook.review import AdmissionRequest, Answer, Cause, Handler
from penstock.kube.webhook.server import WebhookServer, load_chain
from unit.kube.test_admission import review

HOST = "127.0.0.1"
NOW = datetime.now(UTC)


def refusing(request: AdmissionRequest) -> Answer:
    return Answer((Cause("spec", f"no {request.name}"),))


def broken(_: AdmissionRequest) -> Answer:
    raise RuntimeError("a defect")


PATIENCE_S = 30.0
"""For what comes at once where nothing else runs."""


def unfinished(path: str = "/refuse", length: int = 1000, body: bytes = b"{") -> bytes:
    """The head of a request and the begin of its body."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + body


async def replies_to(server: WebhookServer, bundle: Bundle, text: bytes) -> bytes:
    """Everything that a connection brings that sends only this, until the server ends it."""
    reader, writer = await asyncio.open_connection(HOST, server.port, ssl=trusting(bundle))
    try:
        writer.write(text)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        writer.close()


async def posted(
    session: aiohttp.ClientSession, server: WebhookServer, tls: ssl.SSLContext, path: str
) -> int:
    """The status of the answer to a review."""
    url = f"https://{HOST}:{server.port}{path}"
    async with session.post(url, data=review(), ssl=tls) as said:
        return said.status


def trusting(bundle: Bundle) -> ssl.SSLContext:
    """A client that trusts these authorities and no others."""
    return ssl.create_default_context(cadata=bundle.authority.decode())


@asynccontextmanager
async def serving(
    bundle: Bundle,
    limits: Limits | None = None,
    callers: Callers | None = None,
    slow: Handler = refusing,
) -> AsyncGenerator[WebhookServer]:
    handlers: dict[str, Handler] = {"/refuse": refusing, "/broken": broken, "/slow": slow}
    server = WebhookServer(handlers, Metrics(), port=0, host=HOST, limits=limits, callers=callers)
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


QUICK = Limits(read_s=0.2, judge_s=0.2)


async def test_a_caller_that_does_not_finish_its_request_is_cut_off():
    """Audit A25: forty unfinished requests of 8 MiB kept their memory for ever."""
    bundle = renewed(None, {HOST}, NOW)
    async with serving(bundle, QUICK) as server:
        for unsaid in (b"", b"POST /refuse HTTP/1.1\r\nHost:"):
            assert await replies_to(server, bundle, unsaid) == b""
        assert b" 503 " in await replies_to(server, bundle, unfinished())


async def test_callers_that_are_slow_do_not_keep_others_out():
    bundle = renewed(None, {HOST}, NOW)
    limits = Limits(requests=1, read_s=0.5)
    async with serving(bundle, limits) as server, aiohttp.ClientSession() as session:
        slow = asyncio.create_task(replies_to(server, bundle, unfinished()))
        await asyncio.sleep(0)
        statuses = [503]
        async with asyncio.timeout(PATIENCE_S):
            while statuses[-1] != 200:
                statuses.append(await posted(session, server, trusting(bundle), "/refuse"))
        assert b" 503 " in await slow


async def test_bodies_in_memory_are_bounded_and_room_comes_back():
    bundle = renewed(None, {HOST}, NOW)
    limits = Limits(largest=4000, bytes=5000, read_s=PATIENCE_S)
    tls = trusting(bundle)
    async with serving(bundle, limits) as server, aiohttp.ClientSession() as session:
        reader, writer = await asyncio.open_connection(HOST, server.port, ssl=tls)
        writer.write(unfinished(length=3500, body=b" " * 3400))
        await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            while b" 503 " not in (
                got := await replies_to(server, bundle, unfinished(length=2000, body=b" " * 2000))
            ):
                assert b" 400 " in got
        writer.write(b" " * 100)
        assert b" 400 " in await reader.readline()
        writer.close()
        assert await posted(session, server, tls, "/refuse") == 200
        assert b" 413 " in await replies_to(
            server, bundle, unfinished(length=4100, body=b" " * 4100)
        )


async def test_connections_beyond_the_limit_are_closed():
    bundle = renewed(None, {HOST}, NOW)
    async with serving(bundle, Limits(connections=1, read_s=PATIENCE_S)) as server:
        tls = trusting(bundle)
        _, writer = await asyncio.open_connection(HOST, server.port, ssl=tls)
        assert await replies_to(server, bundle, b"") == b""
        writer.close()
        await writer.wait_closed()


async def test_a_slow_judgement_delays_nothing_else_and_has_a_deadline():
    bundle, ended = renewed(None, {HOST}, NOW), threading.Event()

    def slow(_: AdmissionRequest) -> Answer:
        ended.wait(PATIENCE_S)
        return Answer()

    limits, tls = Limits(judge_s=0.2), trusting(bundle)
    async with serving(bundle, limits, slow=slow) as server, aiohttp.ClientSession() as session:
        try:
            assert await posted(session, server, tls, "/slow") == 503
            assert await posted(session, server, tls, "/refuse") == 200
        finally:
            ended.set()


def client_certificate(name: str) -> tuple[bytes, bytes]:
    """A certificate of its own authority, as an API server has one, and its key (PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made.public_bytes(serialization.Encoding.PEM), private


async def test_only_callers_with_a_certificate_of_the_authorities_are_answered(tmp_path: Path):
    """Audit A25: any pod that reached the port was answered."""
    bundle = renewed(None, {HOST}, NOW)
    own, other = client_certificate("kube-apiserver"), client_certificate("kube-apiserver")
    file = tmp_path / "ca.crt"
    file.write_bytes(own[0])

    def with_certificate(shown: tuple[bytes, bytes]) -> ssl.SSLContext:
        tls = trusting(bundle)
        load_chain(tls, *shown)
        return tls

    choices: tuple[tuple[tuple[str, ...], int], ...] = (
        ((), 200),
        (("kube-apiserver",), 200),
        (("another",), 403),
    )
    for names, status in choices:
        callers = Callers(str(file), names)
        async with serving(bundle, callers=callers) as server, aiohttp.ClientSession() as session:
            assert await posted(session, server, with_certificate(own), "/refuse") == status
            for stranger in (trusting(bundle), with_certificate(other)):
                async with aiohttp.ClientSession() as strange:
                    with pytest.raises(aiohttp.ClientError):
                        await posted(strange, server, stranger, "/refuse")


@pytest.mark.parametrize("text", [None, "", "no certificate", "\N{GREEK SMALL LETTER ALPHA}"])
async def test_without_authorities_that_can_be_read_nobody_is_served(
    tmp_path: Path, text: str | None
):
    file = tmp_path / "ca.crt"
    if text is not None:
        file.write_text(text)
    bundle = renewed(None, {HOST}, NOW)
    server = WebhookServer({}, Metrics(), port=0, host=HOST, callers=Callers(str(file)))
    with pytest.raises(OSError, match=r"ca\.crt") as raised:
        await server.show(bundle.leaf, bundle.leaf_key)
    assert not isinstance(raised.value, ssl.SSLError)
    assert server.port == 0
    await server.close()
