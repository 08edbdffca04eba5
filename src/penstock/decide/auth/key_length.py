"""A key whose length munged or Slurm rejects: the daemon that reads it would end."""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.catalog.reasons.keys import KeyReason
from penstock.slurm.auth.key_rotation import SHORTEST

MUNGE_SHORTEST: Final = 32
"""Bytes of a key of munged, which has no upper limit: those of soperator have 1026.

Source: munged 0.5.18, whose message names no other limit.
"""


def munge_key_problem(path: str, ref: SecretKeySelector, size: int) -> Finding | None:
    """Why munged rejects a key of that many bytes; `path` is the field that names it, if any."""
    if size >= MUNGE_SHORTEST:
        return None
    return _unusable(path, ref, size, f"munge takes {MUNGE_SHORTEST} or more")


def slurm_key_problem(path: str, ref: SecretKeySelector, size: int) -> Finding | None:
    """Why Slurm rejects a key of auth/slurm of that many bytes."""
    if size >= SHORTEST:
        return None
    return _unusable(path, ref, size, f"auth/slurm takes {SHORTEST} or more")


def empty_key_problem(path: str, ref: SecretKeySelector, size: int) -> Finding | None:
    """Why a daemon does not start with a key of that many bytes.

    Alone, in slurm.key or jwt.key, Slurm takes any key but an empty one. Source: slurmctld 26.05,
    "Could not load key file".
    """
    if size:
        return None
    message = f"{path}key {ref.key} of Secret {ref.name} is empty: put a key there"
    return Finding(False, KeyReason.UNUSABLE, message)


def _unusable(path: str, ref: SecretKeySelector, size: int, allowed: str) -> Finding:
    message = (
        f"{path}key {ref.key} of Secret {ref.name} has {size} bytes, and {allowed}: put another "
        "key there"
    )
    return Finding(False, KeyReason.UNUSABLE, message)
