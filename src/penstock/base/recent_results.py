"""Results of a pure function for its last few arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class RecentResults(Generic[A, R]):
    """Calls a pure function only for arguments that differ from the last few.

    Arguments need no hash: they are compared, which is cheap where equal ones have identical parts.
    Nothing may change an argument or a result afterwards.
    """

    def __init__(self, function: Callable[[A], R], most: int) -> None:
        self._function = function
        self._most = most
        self._known: list[tuple[A, R]] = []

    def __call__(self, argument: A) -> R:
        """Return the function's result for the argument."""
        for known, result in self._known:
            if known == argument:
                return result
        result = self._function(argument)
        self._known = [(argument, result), *self._known[: self._most - 1]]
        return result
