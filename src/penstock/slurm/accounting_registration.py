"""What slurmdbd has of a cluster's slurmctld."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Registration:
    """Where slurmdbd reaches a cluster's slurmctld; an empty `host` means nowhere.

    `since` is when slurmdbd was first seen without it, in monotonic seconds; None while it has it.
    """

    host: str = ""
    port: int = 0
    since: float | None = None

    @property
    def complete(self) -> bool:
        """Whether slurmctld has registered."""
        return bool(self.host and self.port)
