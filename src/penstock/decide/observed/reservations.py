"""Slurm's reservations, as a scheduled update reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.decide.action import RejectedReservation
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.reservation import Reservation

_NOT_ASKED = Unknown("Slurm was not asked for reservations")


@dataclass(frozen=True, slots=True)
class ObservedReservations:
    """Those of the cluster by name, listed while `maintenance.needs_reservations` is true.

    `rejected` is slurmctld's answer to the last one that it rejected. `unsupported` is why
    slurmrestd cannot create any; empty when it can, as far as is known.
    """

    known: Fact[Mapping[str, Reservation]] = _NOT_ASKED
    rejected: RejectedReservation | None = None
    unsupported: str = ""
