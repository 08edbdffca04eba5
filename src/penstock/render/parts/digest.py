"""One form for one meaning: the bytes and the hashes that say whether something changed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from penstock.api.kubernetes.meta import Json

_SAFE = "bcdfghjklmnpqrstvwxz2456789"


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys and no blanks: equal values give equal bytes."""
    return msgspec.json.encode(value, order="sorted")


def digest(value: str | bytes | Json) -> str:
    """SHA-256 in hex, of text, of bytes, or of a JSON object's canonical form."""
    if isinstance(value, str):
        # Files that are not UTF-8 come as surrogates: the hash is over the bytes as they are.
        data = value.encode(errors="surrogateescape")
    elif isinstance(value, bytes):
        data = value
    else:
        data = canonical_json(value)
    return hashlib.sha256(data).hexdigest()


def secret_digest(data: Mapping[str, str] | None) -> str:
    """SHA-256 in hex over the decoded values of a Secret's `data`, joined in the order of its keys.

    slurm-operator's rule for its `*-hash` annotations, so a switch-over changes no pod template.
    Raises ValueError for a value that is not base64.
    """
    values = data or {}
    return hashlib.sha256(
        b"".join(base64.b64decode(values[key], validate=True) for key in sorted(values))
    ).hexdigest()


def config_digest(data: Mapping[str, str] | None) -> str:
    """SHA-256 in hex over the values of a ConfigMap's `data`, joined in the order of its keys."""
    values = data or {}
    return digest("".join(values[key] for key in sorted(values)))


@lru_cache(maxsize=256)
def revision_hash(data: bytes, collisions: int | None = None) -> str:
    """A short label value for a pod template, as ControllerRevisions are named.

    FNV-1 (32 bit) over the bytes and, when there is one, the decimal collision count; the decimal
    digits are spelt in letters that make no words. Source: kubernetes/pkg/controller/history and
    apimachinery's SafeEncodeString.
    """
    if collisions is not None:
        data += str(collisions).encode()
    value = 0x811C9DC5
    for byte in data:
        value = ((value * 0x01000193) & 0xFFFFFFFF) ^ byte
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(value))
