"""Parts of the names of pods and containers, for every API group."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

HANDOVER: Final = "handover"
"""Container in which a slurmctld's pod waits while another slurmctld has control."""
NODE_SUFFIX = 10
"""Characters that distinguish the pods of one worker set on different Kubernetes nodes."""
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Characters that form no words. Source: apimachinery's SafeEncodeString."""
_LETTERS = 20
"""How many of these are no digits."""


@lru_cache(maxsize=65536)
def ordinal_in(prefix: str, pod: str) -> int | None:
    """Ordinal in a pod's name after this prefix; None for a name of another form."""
    digits = pod.removeprefix(prefix)
    if not pod.startswith(prefix) or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits)


@lru_cache(maxsize=65536)
def node_suffix(uid: str, node: str) -> str:
    """End of the name of a set's pod on a Kubernetes node: always the same one."""
    found = hashlib.sha256(f"{uid}/{node}".encode()).digest()
    letters = [_SAFE[byte % len(_SAFE)] for byte in found[:NODE_SUFFIX]]
    # Not a number: an ordinal would be read from it.
    letters[0] = _SAFE[found[0] % _LETTERS]
    return "".join(letters)
