"""The keys of auth/slurm of one cluster, and how a new one takes the place of the former.

slurmctld, slurmd, sackd and slurmdbd read slurm.jwks when they start, and all but slurmdbd when
they reconfigure, which is a start of a new process. Each signs with the key that is marked as the
default and takes what any of the keys has signed; what a daemon without slurm.jwks signs counts as
signed with the default key. So nobody is locked out when all first learn the new key, then sign
with it, and forget the former one last. Source: Slurm's page "Authentication Plugins" (Multiple Key
Setup); seen with 26.05.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

import msgspec

WORKERS: Final = "workers.jwks"
SLURMCTLD: Final = "slurmctld.jwks"
CLIENTS: Final = "clients.jwks"
SHORTEST: Final = 16
"""Bytes that a key in slurm.jwks must have; slurmctld ends on a shorter one."""
_STATE: Final = "state"
_CURRENT: Final = "current"
_NEXT: Final = "next"


class Phase(Enum):
    """What the daemons are being given."""

    SETTLED = "Settled"
    """There is one key."""
    LEARN = "Learn"
    """slurmctld and workers learn the new key and sign with the former."""
    CLIENTS = "Clients"
    """slurmdbd and login pods are recreated, and sign with the new key."""
    SWITCH = "Switch"
    """slurmctld and workers sign with the new one, and still take the former."""
    FORGET = "Forget"
    """The former one is good no more."""


_BEFORE: Final = {
    Phase.LEARN: Phase.SETTLED,
    Phase.SWITCH: Phase.CLIENTS,
    Phase.FORGET: Phase.SWITCH,
}


@dataclass(frozen=True, slots=True)
class Ring:
    """State of a cluster's auth keys.

    In each phase workers get their file first; with `handed` slurmctld has it as well, and has
    made all daemons read it. `since` is the time of the last step, in Unix seconds.
    """

    current: bytes
    origin: str = ""
    """Names the key that slurmctld's pod was first made with."""
    clients: str = ""
    """Names the key that logins and slurmdbd are to begin with."""
    next: bytes = b""
    phase: Phase = Phase.SETTLED
    handed: bool = True
    since: float = 0.0
    turn: int = 0
    """Counts what slurmctld was handed: a repeated step is another file, so it is read again."""
    tries: int = 0
    """How often a step of this change had to be taken back."""
    used: bool = False
    """Whether there are files: before the first change Slurm reads slurm.key."""

    @property
    def workers(self) -> str | None:
        """slurm.jwks of the workers; None for no such file."""
        return self._file(self.phase) if self.used else None

    @property
    def slurmctld(self) -> str | None:
        """slurm.jwks of slurmctld."""
        phase = self.phase if self.handed else _BEFORE[self.phase]
        return self._file(phase, self.turn) if self.used else None

    @property
    def login(self) -> str | None:
        """slurm.jwks of logins and slurmdbd, which read it once: with the new key as default."""
        if self.phase is Phase.CLIENTS:
            return self._file(Phase.SWITCH)
        return self.workers

    @property
    def data(self) -> dict[str, str]:
        """The Secret's `data` that holds all this, as base64."""
        state = {one.name: getattr(self, one.name) for one in fields(self)}
        current, upcoming = state.pop(_CURRENT), state.pop(_NEXT)
        found = {
            _STATE: msgspec.json.encode(state),
            _CURRENT: current,
            _NEXT: upcoming,
            WORKERS: (self.workers or "").encode(),
            SLURMCTLD: (self.slurmctld or "").encode(),
            CLIENTS: (self.login or "").encode(),
        }
        return {key: base64.b64encode(value).decode() for key, value in found.items() if value}

    def _file(self, phase: Phase, turn: int | None = None) -> str:
        keys, default = {
            Phase.SETTLED: ([self.current], self.current),
            Phase.LEARN: ([self.current, self.next], self.current),
            Phase.CLIENTS: ([self.current, self.next], self.current),
            Phase.SWITCH: ([self.current, self.next], self.next),
            Phase.FORGET: ([self.next], self.next),
        }[phase]
        found: dict[str, object] = {"keys": [_key(one, default=one == default) for one in keys]}
        if turn is not None:
            # Slurm passes over what it does not know.
            found["turn"] = turn
        return msgspec.json.encode(found).decode()


def named(key: bytes) -> str:
    """Slurm's `kid` of a key: it identifies the key and does not reveal it."""
    return hashlib.sha256(b"kid of " + key).hexdigest()[:16]


def read(data: Mapping[str, str] | None) -> Ring | None:
    """Parse a Secret's `data`; None if it is no key ring."""
    try:
        found = {k: base64.b64decode(v, validate=True) for k, v in (data or {}).items()}
        state: dict[str, Any] = msgspec.json.decode(found[_STATE])
        keys = {_CURRENT: found[_CURRENT], _NEXT: found.get(_NEXT, b"")}
        ring = msgspec.convert(state | keys, Ring)
    except (KeyError, TypeError, ValueError, msgspec.DecodeError):
        return None
    if ring.phase is not Phase.SETTLED and not ring.next:
        return None
    if not ring.handed and ring.phase not in _BEFORE:
        return None
    return ring


def _key(key: bytes, *, default: bool) -> dict[str, str]:
    found = {
        "alg": "HS256",
        "kty": "oct",
        "kid": named(key),
        "k": base64.b64encode(key).decode(),
    }
    return found | ({"use": "default"} if default else {})
