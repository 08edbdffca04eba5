"""A JSON Web Token for one Slurm user, as an object requests it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserIdentity:
    """The user's numbers and passwd fields, which the token contains; empty fields have defaults.

    `groups` are all groups of the user, numbers by name; None means the group `gid` alone.
    """

    uid: int
    gid: int
    groups: Mapping[str, int] | None
    home: str
    shell: str
    gecos: str


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The desired token. `lifetime` is a Go duration, or empty for the default.

    Without `identity` slurmctld looks the user up.
    """

    username: str
    lifetime: str
    identity: UserIdentity | None
