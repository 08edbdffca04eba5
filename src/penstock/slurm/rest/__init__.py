"""slurmrestd: a client that never mistakes a failing answer for a fact."""

from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import (
    AuthError,
    BadReplyError,
    BusyError,
    DeniedError,
    NotFoundError,
    SlurmError,
    UnreachableError,
    UnsupportedError,
)
from penstock.slurm.rest.wire import Diag, Listing, Partition, Ping

__all__ = [
    "AuthError",
    "BadReplyError",
    "BusyError",
    "DeniedError",
    "Diag",
    "Listing",
    "NotFoundError",
    "Partition",
    "Ping",
    "SlurmError",
    "Slurmrestd",
    "UnreachableError",
    "UnsupportedError",
]
