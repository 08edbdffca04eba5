"""The reference: `python -m bench.fleet.bare create|delete|watch`, a client that does only that.

It prints as JSON when it began (monotonic seconds, which all processes share) and its CPU-seconds.
32 requests are in flight, as the operator's client has; answers are read and not decoded.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.kube import HttpTransport, Request, from_kubeconfig

IN_FLIGHT = 32


async def write(transport: HttpTransport, requests: Iterator[Request]) -> None:
    """Send all. Raises RuntimeError when one is rejected."""

    async def work() -> None:
        for request in requests:
            answer = await transport.send(request)
            if answer.status >= 300:
                raise RuntimeError(f"{request.method} {request.path}: {answer.body.decode()}")

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())


async def watch(transport: HttpTransport, paths: list[str]) -> None:
    """Read watches until cancelled, and do nothing with them."""

    async def follow(path: str) -> None:
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        async with transport.stream(Request("GET", path, params)) as stream:
            async for _ in stream.lines():
                pass

    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(follow(path))


def creates(lines: list[bytes]) -> Iterator[Request]:
    """A POST for each pod."""
    for line in lines:
        space = json.loads(line)["metadata"]["namespace"]
        yield Request("POST", f"/api/v1/namespaces/{space}/pods", {}, line)


def deletes(lines: list[bytes]) -> Iterator[Request]:
    """A DELETE for each pod."""
    for line in lines:
        meta: dict[str, Any] = json.loads(line)["metadata"]
        yield Request("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")


WRITES: dict[str, Callable[[list[bytes]], Iterator[Request]]] = {
    "create": creates,
    "delete": deletes,
}


def _lines(file: str) -> list[bytes]:
    return Path(file).read_bytes().splitlines()


async def main(kubeconfig: str, verb: str, *given: str) -> None:
    """Do one of the three: with the pods of a file, a manifest a line, or with paths."""
    transport = HttpTransport(from_kubeconfig([Path(kubeconfig)]))
    began, used = time.monotonic(), time.process_time()
    try:
        if verb == "watch":
            await watch(transport, list(given))
        else:
            await write(transport, WRITES[verb](_lines(given[0])))
    finally:
        await transport.close()
    print(json.dumps({"began": began, "cpu": time.process_time() - used}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
