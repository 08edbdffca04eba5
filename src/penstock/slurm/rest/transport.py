"""How slurmrestd is spoken to, and which of its answers are believed.

An answer is believed only when HTTP status, JSON and an empty `errors` list all agree, since
slurmrestd reports some failures inside a 200.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from penstock.slurm.rest import wire
from penstock.slurm.rest.errors import (
    AUTHENTICATION,
    DENIED,
    NO_CHANGE,
    NODES_BUSY,
    NOT_FOUND,
    AuthError,
    BadReplyError,
    BusyError,
    DeniedError,
    NotFoundError,
    SlurmError,
    UnreachableError,
    UnsupportedError,
)
from penstock.slurm.rest.http import Answer, Exchange, HttpFormatError, exchange, unfenced
from penstock.slurm.versions import PARSERS

TIMEOUT_S = 12.0
"""Longer than the 10 s after which slurmrestd reports a slurmctld that does not answer."""

SLURMCTLD, SLURMDBD = "slurm", "slurmdb"
"""The two halves of the API: slurmctld's, and slurmdbd's, which slurmrestd has with accounting."""
_SHOWN = 300
"""Characters of an error that a message quotes."""

OTHERS = 10
"""So many replies of another release have the parser chosen again, one time each."""

R = TypeVar("R", bound=wire.Reply)
D = TypeVar("D")


class Transport:
    """HTTP to one slurmrestd, with the data parser found at run time."""

    def __init__(
        self,
        base_url: str,
        token: Callable[[], str],
        timeout_s: float,
        on_call: Callable[[str, str], None] | None,
        exchange: Exchange = exchange,
        fence: Callable[[], None] = unfenced,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.parser: str | None = None
        self._release = ""
        """Of the slurmrestd whose parsers were asked for."""
        self._others = 0
        """How many replies came from another release since the last one of that."""
        self._token = token
        self._timeout_s = timeout_s
        self._on_call = on_call
        self._exchange = exchange
        self._fence = fence
        self._discovery = asyncio.Lock()

    async def must(
        self,
        type_: type[R],
        path: str,
        *,
        method: str = "GET",
        body: dict[str, Any] | None = None,
        api: str = SLURMCTLD,
    ) -> R:
        """One request to which "nothing changed" is no answer."""
        reply = await self.ask(type_, path, method=method, body=body, api=api)
        if reply is None:
            raise BadReplyError(f"slurmrestd answered 'no change' to {method} {path}")
        return reply

    async def ask(
        self,
        type_: type[R],
        path: str,
        params: dict[str, str] | None = None,
        *,
        method: str = "GET",
        body: dict[str, Any] | None = None,
        api: str = SLURMCTLD,
    ) -> R | None:
        """Send one request; None means that slurmctld reports no change."""
        parser = await self._discover()
        answer = await self._send(method, f"/{api}/{parser}/{path}", params, body)
        if answer.status == HTTPStatus.NOT_FOUND and not answer.json:
            # The server was replaced by one that offers other parsers, or never had the path.
            self.parser = None
            if (found := await self._discover()) == parser:
                raise UnsupportedError(
                    f"slurmrestd has no {method} {path} in {parser}", status=answer.status
                )
            answer = await self._send(method, f"/{api}/{found}/{path}", params, body)
        if answer.status == HTTPStatus.NOT_MODIFIED:
            return None
        try:
            reply = _read(type_, answer)
        except SlurmError as error:
            if error.number == NO_CHANGE:
                return None
            raise
        self._note_release(reply.release)
        return reply

    def _note_release(self, release: str) -> None:
        """Choose the parser again when another slurmrestd answers: it may offer a better one.

        While one pod replaces another either may answer, so a few times.
        """
        other = bool(release and self._release) and release != self._release
        self._others = self._others + 1 if other else 0

    @property
    def _chosen(self) -> bool:
        return self.parser is not None and not 0 < self._others <= OTHERS

    async def _discover(self) -> str:
        """Find the best data parser both sides speak."""
        async with self._discovery:
            if self.parser is not None and self._chosen:
                return self.parser
            answer = await self._send("GET", "/openapi/v3")
            if not answer.json:
                raise _plain(answer.status, answer.body)
            document = _decoded(wire.OpenApi, answer)
            offered, self._release = document.parsers, document.release
            self.parser = next((p for p in PARSERS if p in offered), None)
            if self.parser is None:
                raise UnsupportedError(
                    f"slurmrestd offers the data parsers {', '.join(sorted(offered)) or 'none'}; "
                    f"Penstock speaks {', '.join(PARSERS)}"
                )
            return self.parser

    async def _send(
        self,
        method: str,
        path: str,
        params: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Answer:
        fence = self._fence if _changes(method, path) else unfenced
        fence()
        if self._on_call is not None:
            self._on_call(method, path)
        url = self.base_url + path + (f"?{urlencode(params)}" if params else "")
        headers = {"X-SLURM-USER-TOKEN": self._token()}
        data = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(body)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(url, method, headers, data, fence)
        except TimeoutError as error:
            why = f"slurmrestd did not answer within {self._timeout_s:g} s"
            raise UnreachableError(f"{why} ({self.base_url})") from error
        except socket.gaierror as error:
            why = "the name of slurmrestd is unknown"
            raise UnreachableError(f"{why} ({self.base_url})") from error
        except HttpFormatError as error:
            raise BadReplyError(f"slurmrestd's answer cannot be read: {error}") from error
        except (OSError, EOFError) as error:
            raise UnreachableError(f"slurmrestd {_how(error)} ({self.base_url})") from error


def _changes(method: str, path: str) -> bool:
    """Whether a request changes something; slurmrestd has a reconfigure as a GET."""
    return method != "GET" or path.rstrip("/").endswith("/reconfigure")


def _how(error: Exception) -> str:
    # Where a name has several addresses, asyncio wraps one error for each in an OSError.
    if isinstance(error, ConnectionRefusedError) or "Errno 111" in str(error):
        return "refused the connection"
    if isinstance(error, ConnectionError | EOFError):
        return "broke off the connection"
    return "cannot be reached"


def _read(type_: type[R], answer: Answer) -> R:
    """Decode a reply, or raise the error of its status or its `errors`."""
    status = answer.status
    if not answer.json:
        raise _plain(status, answer.body)
    reply = _decoded(type_, answer)
    if reply.errors:
        raise _slurm_error(reply.errors, status)
    if status >= HTTPStatus.BAD_REQUEST:
        raise _plain(status, b"")
    return reply


def _decoded(type_: type[D], answer: Answer) -> D:
    """A reply's JSON. Names of jobs, users and nodes may have bytes that are not UTF-8.

    slurmrestd passes them on as they are. They are replaced: whoever may submit a job could else
    hide all jobs and nodes of the cluster. Raises BadReplyError.
    """
    try:
        try:
            return msgspec.json.decode(answer.body, type=type_)
        except UnicodeDecodeError:
            return msgspec.json.decode(answer.body.decode(errors="replace"), type=type_)
    except (ValueError, RecursionError) as error:
        # msgspec's own errors are ValueErrors too.
        words = f"slurmrestd's answer cannot be read: {str(error)[:_SHOWN]}"
        raise BadReplyError(words, status=answer.status) from error


def _plain(status: int, data: bytes) -> SlurmError:
    """What an answer without Slurm's own error list means."""
    words = data[:200].decode(errors="replace").strip().partition("\n")[0]
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthError(f"slurmrestd did not take the token: {words}", status=status)
    if status < HTTPStatus.BAD_REQUEST:
        return BadReplyError(f"slurmrestd's answer is not JSON (HTTP {status})", status=status)
    text = f"slurmrestd answered HTTP {status}"
    return SlurmError(f"{text}: {words}" if words else text, status=status)


def _slurm_error(errors: tuple[wire.WireError, ...], status: int) -> SlurmError:
    number = next((e.error_number for e in errors if e.error_number), 0)
    words = "; ".join(dict.fromkeys(e.words() for e in errors if e.words())) or f"HTTP {status}"
    why = f"slurmrestd answered with an error: {words}"
    kind = SlurmError
    if number in AUTHENTICATION:
        kind = AuthError
    elif number in DENIED:
        kind = DeniedError
    elif number in NOT_FOUND or (number == 0 and all(e.source == "_dump_nodes" for e in errors)):
        # GET of an unknown node is a 200 with one error whose number is 0.
        kind = NotFoundError
    elif number == NODES_BUSY:
        kind = BusyError
    return kind(why, number=number, status=status)
