"""Many actions, some of them at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from penstock.decide.action import Action

AT_ONCE = 32
A = TypeVar("A")
T = TypeVar("T")


def of_kind(actions: Sequence[Action], kind: type[A]) -> list[A]:
    """The actions of one kind, in their order."""
    return [one for one in actions if isinstance(one, kind)]


async def gather(calls: Iterable[Coroutine[Any, Any, T]], at_once: int = AT_ONCE) -> list[T]:
    """Run all, some at once. The first error is raised when all have ended."""
    limit = asyncio.Semaphore(at_once)

    async def one(call: Coroutine[Any, Any, T]) -> T:
        try:
            async with limit:
                return await call
        finally:
            # One that was called off before its turn would be missed as never awaited.
            call.close()

    ended = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    results: list[T] = []
    for result in ended:
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results
