"""Which slurmrestd each cluster of an API has: the seam between an API and the connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

SLURM_USER: Final = "slurm"
"""SlurmUser of slurm.conf, who may change everything."""


class Target(NamedTuple):
    """A slurmrestd, the key of auth/jwt that signs tokens for it, and whose tokens they are."""

    url: str
    key: bytes
    user: str = SLURM_USER


@dataclass(frozen=True, slots=True)
class SlurmEndpoint:
    """Whom to ask about one cluster.

    `uid` is that of the object that declares it, empty when that is gone. `target` may be the
    reason why there is none. With `outlives` the connection is still needed although that object is
    gone or going: whom it asked before it asks as long as it can, in a new process `remembered`.
    """

    uid: str
    target: Target | str
    outlives: bool = False
    remembered: Target | None = None


class SlurmEndpoints(Protocol):
    """Slurm endpoints of one API's clusters, by `namespace/name` of their objects."""

    def find(self, key: str) -> SlurmEndpoint | None:
        """Return the endpoint of a cluster; None when no connection is needed."""
        ...

    def uid(self, key: str) -> str:
        """The uid of the object that declares the cluster, empty while there is none."""
        ...

    def largest_size(self) -> int:
        """How many nodes all clusters have at most, which bounds the size of an answer."""
        ...
