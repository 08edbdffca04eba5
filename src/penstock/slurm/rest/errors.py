"""What can go wrong with slurmrestd, in words that fit a condition's message.

Texts hold no times or counters: a condition that shows one must not change from second to second.
Source of the numbers: slurm_errno.h of Slurm 26.05.
"""

from __future__ import annotations

NO_CHANGE = 1900
AUTHENTICATION = frozenset({1007})
NODES_BUSY = 2016
NOT_FOUND = frozenset({2000, 2017, 2018})
"""Invalid partition name, job id, node name."""
DENIED = frozenset({2002, 2010})
STANDBY = 2027
"""A slurmctld that is not the one that works now, or not yet."""
_SLURMCTLD = range(2000, 3000)


class SlurmError(Exception):
    """slurmrestd, or slurmctld behind it, did not do what it was asked; `str()` is the reason.

    `number` is Slurm's error number, 0 when there is none; `status` the HTTP status, 0 when there
    was no answer.
    """

    def __init__(self, why: str, *, number: int = 0, status: int = 0) -> None:
        super().__init__(why)
        self.number = number
        self.status = status

    @property
    def is_rejection(self) -> bool:
        """Whether slurmctld itself rejected the request, so that a retry is of no use."""
        said_no = self.number in _SLURMCTLD and self.number != STANDBY
        return said_no and not isinstance(self, AuthError | DeniedError)


class UnreachableError(SlurmError):
    """No answer from slurmrestd: connection refused, timed out or cut off."""


class BadReplyError(SlurmError):
    """An answer that cannot be read: half a JSON document, a proxy's page."""


class AuthError(SlurmError):
    """The token is missing, expired, or signed with another key."""


class DeniedError(SlurmError):
    """The token is good but its user may not do this."""


class NotFoundError(SlurmError):
    """slurmctld has no such node, job or partition."""


class BusyError(SlurmError):
    """The node has jobs."""


class UnsupportedError(SlurmError):
    """slurmrestd offers no data parser or path that Penstock speaks."""
