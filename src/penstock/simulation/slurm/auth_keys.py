"""Which key a simulated daemon signs with, and whom it believes, as auth/slurm has it.

Source: Slurm's page "Authentication Plugins" (Multiple Key Setup); seen with 26.05.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.slurm.auth.key_files import SLURM_JWKS, SLURM_KEY
from penstock.slurm.auth.key_rotation import named


@dataclass(frozen=True, slots=True)
class Keys:
    """What a daemon has read. `known` are its keys by name, None for a lone slurm.key."""

    signs: bytes
    """The key that it signs with."""
    known: Mapping[str, bytes] | None = None

    def believes(self, other: Keys) -> bool:
        """By the name that is in the token, if both sides have names, else by the default key."""
        if self.known is None or other.known is None:
            return self.signs == other.signs
        return self.known.get(named(other.signs)) == other.signs


def read(files: Mapping[str, str]) -> Keys | None:
    """The keys that files of /etc/slurm give a daemon; None when there is none in them."""
    if text := files.get(SLURM_JWKS):
        found: list[dict[str, Any]] = msgspec.json.decode(text)["keys"]
        known = {one["kid"]: base64.b64decode(one["k"]) for one in found}
        (default,) = [one["kid"] for one in found if one.get("use") == "default"]
        return Keys(known[default], known)
    if key := files.get(SLURM_KEY):
        return Keys(key.encode(errors="surrogateescape"))
    return None


def decoded(data: Mapping[str, str]) -> dict[str, str]:
    """The files of a Secret's `data`."""
    return {
        name: base64.b64decode(value).decode(errors="surrogateescape")
        for name, value in data.items()
    }


def understand(one: Keys | None, other: Keys | None) -> bool:
    """Whether two daemons believe each other; those without keys are not asked."""
    return one is None or other is None or (one.believes(other) and other.believes(one))
