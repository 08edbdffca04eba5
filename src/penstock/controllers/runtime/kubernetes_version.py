"""The release of Kubernetes, which the operator asks once when it starts.

The charts have the same lower bound, but the operator is also installed by kubectl.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple

import msgspec
import structlog

from penstock.kube import UnreachableError
from penstock.kube.client.transport import Request, Transport

ASK_S: Final = 5.0
"""An API server that does not answer is none to judge."""
_NUMBER = re.compile(r"\d+")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Version(NamedTuple):
    """A minor version, such as 1.34."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST: Final = Version(1, 29)
"""The first that has sidecar containers, and rules of definitions that name the field at fault."""
RUN: Final = tuple(Version(1, minor) for minor in (33, 34, 35, 36))
"""Those on which all files of `make versions` have passed with the latest Slurm."""


class _Info(msgspec.Struct):
    major: str = ""
    minor: str = ""


def parse(body: bytes) -> Version | None:
    """The version in an answer of `/version`; None in another answer. Providers add `+`."""
    try:
        info = msgspec.json.decode(body, type=_Info)
    except msgspec.MsgspecError:
        return None
    major, minor = _NUMBER.match(info.major), _NUMBER.match(info.minor)
    return Version(int(major[0]), int(minor[0])) if major and minor else None


def unsupported(version: Version) -> str:
    """Why the operator does not start there; empty where it does."""
    if version >= OLDEST:
        return ""
    return (
        f"Kubernetes {version} is not supported: the operator needs {OLDEST} or later. "
        f"Tests were run on {', '.join(map(str, RUN))}"
    )


def untried(version: Version) -> str:
    """What to know about a version that no test was run on; empty for the others."""
    if version in RUN:
        return ""
    return f"No test was run on Kubernetes {version}, only on {', '.join(map(str, RUN))}"


async def ask(transport: Transport) -> Version | None:
    """The API server's version; None where it does not answer, as the caches wait for it anyway."""
    try:
        async with asyncio.timeout(ASK_S):
            answer = await transport.send(Request("GET", "/version"))
    except (TimeoutError, UnreachableError):
        return None
    return parse(answer.body)


async def check(transport: Transport) -> None:
    """Log what is to know about the API server's version.

    Raises SystemExit where the operator cannot work: objects would fail one by one otherwise.
    """
    version = await ask(transport)
    if version is None:
        return
    if why := unsupported(version):
        log.error("not started", reason=why)
        raise SystemExit(1)
    if words := untried(version):
        log.warning("untried version", reason=words)
