"""Long texts in annotations and reports, which have few bytes: compressed, with a mark before."""

from __future__ import annotations

import base64
import zlib
from typing import Final

MARK: Final = "zlib:"


def compress(text: str) -> str:
    """Return a text that `plain` reads back."""
    return MARK + base64.b64encode(zlib.compress(text.encode())).decode()


def plain(text: str, most_bytes: int) -> str:
    """Return the text itself, or what it is the compressed form of: at most that many bytes.

    Somebody else may have written it. Raises ValueError where it cannot be read.
    """
    if not text.startswith(MARK):
        return text
    try:
        packed = base64.b64decode(text.removeprefix(MARK), validate=True)
        return zlib.decompressobj().decompress(packed, most_bytes).decode()
    except zlib.error as error:
        raise ValueError(str(error)) from error
