"""The long list of a reply, decoded record by record while the reply arrives.

A reply of 20,000 jobs has 200 MB. Each record is decoded as soon as it is complete, so only what
is read of the records stays in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from penstock.slurm.rest.http import HttpFormatError

T = TypeVar("T")

LARGEST_RECORD: Final = 16 * 2**20
_HEAD: Final = 65536
"""Bytes in which the list has begun, or the reply has none."""
_OVERLAP: Final = 256
"""Bytes that are searched again, as a boundary may arrive in two pieces."""
_FIRST_KEY: Final = re.compile(rb'\{\s*("[^"\\]{1,100}")\s*:')


class ArrayBody(Generic[T]):
    """Takes the pieces of one body whose first member is the list `name`.

    Records end where another one begins with the same first key. Such a place inside a record is no
    harm: what comes before it is no whole JSON object, and the search goes on.
    """

    def __init__(self, name: str, type_: type[Any], convert: Callable[[Any], T | None]) -> None:
        self.items: list[T] = []
        self._begin = re.compile(rb'\A\s*\{\s*"' + name.encode() + rb'"\s*:\s*\[\s*')
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(type_)
        self._convert = convert
        self._buffer = bytearray()
        self._head = b""
        self._boundary: re.Pattern[bytes] | None = None
        self._searched = 0
        self._is_list: bool | None = None

    def feed(self, piece: bytes) -> None:
        """Take the next piece. Raises HttpFormatError, and ValueError of a record."""
        self._buffer += piece
        if self._is_list is None:
            self._start()
        if not self._is_list:
            return
        if self._boundary is None and (first := _FIRST_KEY.match(self._buffer)):
            self._boundary = re.compile(rb"\}\s*,\s*(?=\{\s*" + re.escape(first[1]) + rb"\s*:)")
        if self._boundary is None:
            return
        begin, at = 0, self._searched
        while (found := self._boundary.search(self._buffer, at)) is not None:
            at = found.end()
            if self._take(bytes(self._buffer[begin : found.start() + 1])):
                begin = at
        if begin:
            del self._buffer[:begin]
        self._searched = max(at - begin, len(self._buffer) - _OVERLAP, 0)
        if len(self._buffer) > LARGEST_RECORD:
            raise HttpFormatError(f"a record has more than {LARGEST_RECORD // 2**20} MiB")

    def finish(self) -> bytes:
        """The reply without the records. Raises ValueError of a record."""
        if not self._is_list:
            return bytes(self._buffer)
        text = self._buffer.decode(errors="replace")
        if text.startswith("]"):
            return self._head + self._buffer
        # The last record is followed by the rest of the reply.
        _, end = cast("tuple[object, int]", json.JSONDecoder().raw_decode(text))
        self._take(text[:end].encode())
        return self._head + text[end:].lstrip().encode()

    def _start(self) -> None:
        if (begin := self._begin.match(self._buffer)) is not None and begin.end() < len(
            self._buffer
        ):
            self._head, self._is_list = bytes(begin[0]), True
            del self._buffer[: begin.end()]
        elif len(self._buffer) > _HEAD:
            self._is_list = False

    def _take(self, record: bytes) -> bool:
        """Decode a record; whether it is one. Raises ValidationError, a ValueError."""
        try:
            try:
                found = self._decoder.decode(record)
            except UnicodeDecodeError:
                # Names of jobs may have any bytes; see `transport`.
                found = self._decoder.decode(record.decode(errors="replace"))
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return False
        if (item := self._convert(found)) is not None:
            self.items.append(item)
        return True
