"""Limits of the webhooks' server: anybody who reaches its port may send to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a request: a new and an old object of 1.5 MiB each, the most that etcd stores, in JSON
that may escape them."""


class NoRoomError(Exception):
    """All requests together exceed their size."""


class TooLargeError(Exception):
    """A request exceeds its size."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What all callers together may take. An API server waits 30 s for an answer at most."""

    largest: int = LARGEST
    """Bytes of one request."""
    bytes: int = 4 * LARGEST
    """Bytes of all requests that are read or judged."""
    requests: int = 32
    """Requests that are read or judged at a time; others wait for `read_s`."""
    connections: int = 256
    threads: int = 2
    """Requests that are judged at a time."""
    read_s: float = 5.0
    """Seconds for a TLS handshake, for the head and for the body of a request, each."""
    judge_s: float = 10.0
    """Seconds for the answer, once a request is read."""


class ByteBudget:
    """Bytes that several requests share."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self.left = most
        self.most_of_one = most_of_one

    def share(self) -> Share:
        """The part of one request, which has nothing yet."""
        return Share(self)


class Share:
    """Bytes of one request."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._taken = 0

    def take(self, count: int) -> None:
        """Use some more. Raises TooLargeError, and NoRoomError when fewer are left."""
        budget = self._budget
        if self._taken + count > budget.most_of_one:
            raise TooLargeError(f"a request may have {budget.most_of_one} bytes at most")
        if count > budget.left:
            raise NoRoomError("other requests use all memory of the webhooks: try again")
        budget.left -= count
        self._taken += count

    def give_back(self) -> None:
        """Return all of them."""
        self._budget.left += self._taken
        self._taken = 0
