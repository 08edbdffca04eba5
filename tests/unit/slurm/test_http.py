from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.slurm.rest import Slurmrestd, UnreachableError
from penstock.slurm.rest.http import (
    Answer,
    HttpFormatError,
    SizeLimit,
    bounded,
    exchange,
    largest_reply,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def raw(reply: bytes, requests: list[bytes] | None = None) -> AsyncGenerator[str]:
    """A server that sends these very bytes to each request, then closes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if requests is not None:
            requests.append(head)
        writer.write(reply)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def reply(status: str, body: bytes, content_type: str = "application/json") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nContent-Type: {content_type}\r\n\r\n"
    )
    return head.encode() + body


async def test_a_second_reply_after_the_first_is_left_alone():
    # What slurmrestd 26.05.5 sends for every request that fails.
    error = b'{"errors": [{"error_number": 2018, "error": "Invalid node name specified"}]}'
    twice = reply("422 UNPROCESSABLE CONTENT", error) + reply("422 X", b"Invalid", "text/plain")
    async with raw(twice) as url:
        assert await exchange(url) == Answer(422, "application/json", error)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"HTTP/1.1 304 NOT MODIFIED\r\n\r\n", Answer(304, "", b"")),
        (reply("200 OK", b""), Answer(200, "application/json", b"")),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", Answer(200, "", b"to the end")),
        (
            CHUNKED + b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
            Answer(200, "", b"abcde"),
        ),
    ],
)
async def test_every_way_to_end_a_body_is_read(sent: bytes, read: Answer):
    async with raw(sent) as url:
        assert await exchange(url) == read


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        CHUNKED + b"5\r\nab",
        b"HTTP/1.1 200",
    ],
)
async def test_a_reply_that_ends_too_soon_is_no_reply(sent: bytes):
    async with raw(sent) as url:
        with pytest.raises(EOFError):
            await exchange(url)
        with pytest.raises(UnreachableError, match="broke off"):
            await Slurmrestd(url, lambda: "token").nodes()


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        CHUNKED + b"-1\r\n",
        CHUNKED + b"f" * 100_000,
        CHUNKED + b"1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \N{SUPERSCRIPT TWO}\r\n\r\n".encode("latin-1"),
        "HTTP/1.1 \N{SUPERSCRIPT TWO}00 OK\r\n\r\n".encode("latin-1"),
    ],
)
async def test_what_is_not_http_is_reported(sent: bytes):
    async with raw(sent) as url:
        with pytest.raises(HttpFormatError):
            await exchange(url)


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 600000000\r\n\r\n",
        CHUNKED + b"800\r\n" + b"x" * 2048 + b"\r\n",
        CHUNKED + b"7fffffff\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2048,
    ],
)
async def test_a_reply_has_a_largest_size(sent: bytes):
    async with raw(sent) as url:
        with pytest.raises(HttpFormatError, match="more than"):
            await exchange(url, limit=SizeLimit(lambda: 1024))
        with pytest.raises(HttpFormatError, match="more than"):
            await bounded(lambda: 1024)(url, "GET", {}, b"", lambda: None)


async def test_the_largest_size_is_not_asked_for_a_small_reply():
    asked: list[str] = []

    def most() -> int:
        asked.append("most")
        return 4096

    async with raw(reply("200 OK", b"x" * 2048)) as url:
        await bounded(most, 2048)(url, "GET", {}, b"", lambda: None)
        assert not asked
        await bounded(most, 2047)(url, "GET", {}, b"", lambda: None)
        assert asked


def test_the_largest_reply_grows_with_the_cluster():
    assert largest_reply(0) == 64 * 2**20
    assert largest_reply(5_000) > 200 * 2**20


async def test_a_reply_that_trickles_ends_with_the_time_limit():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"

    ended = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = 0
        while not reader.at_eof() and not writer.is_closing():
            writer.write(head[sent : sent + 1] or b"x")
            sent += 1
            await asyncio.sleep(0.002)
        writer.close()
        ended.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(UnreachableError, match="did not answer within"):
            await Slurmrestd(url, lambda: "t", timeout_s=0.2).nodes()
        await ended.wait()


async def test_a_request_carries_method_query_headers_and_host():
    requests: list[bytes] = []
    async with raw(reply("200 OK", b"{}"), requests) as url:
        await exchange(f"{url}/a%2Fb?update_time=5", "POST", {"X-SLURM-USER-TOKEN": "t"}, b"{}")
    (head,) = requests
    first, *lines = head.decode().rstrip().split("\r\n")
    assert first == "POST /a%2Fb?update_time=5 HTTP/1.1"
    assert {"X-SLURM-USER-TOKEN: t", "Content-Length: 2"} <= set(lines)
    assert any(line.startswith("Host: 127.0.0.1:") for line in lines)


async def test_a_header_cannot_be_smuggled_in_by_a_token():
    async with raw(reply("200 OK", b"{}")) as url:
        with pytest.raises(HttpFormatError):
            await exchange(url, headers={"X-SLURM-USER-TOKEN": "t\r\nX-Other: 1"})
