"""slurmrestd's reservations: the fields of one, and the request that creates or changes one.

slurmctld keeps them in its own state; nothing in a Slinky kind declares one.
Source: slurmrestd's OpenAPI v0.0.45 (reservation_info, reservation_desc_msg); scontrol(1),
RESERVATIONS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.slurm import hostlist
from penstock.slurm.rest.errors import BadReplyError
from penstock.slurm.rest.wire import Number, Reply, Strings, Wire


class Reservation(Wire, frozen=True):
    """One reservation. Times are Unix seconds; lists that Slurm joins are joined by commas."""

    name: str
    node_list: str = ""
    node_count: int = 0
    partition: str = ""
    users: str = ""
    accounts: str = ""
    groups: str = ""
    licenses: str = ""
    features: str = ""
    flags: Strings | None = None
    start_time: Number = Number()
    end_time: Number = Number()


class ReservationsReply(Reply, frozen=True):
    """`GET reservations/` and `GET reservation/{name}`."""

    reservations: tuple[Reservation, ...] | None = None


_MOVING = frozenset({"ALL_NODES", "PART_NODES"})
"""Flags of reservations that take in nodes as they come. Source: scontrol(1), Flags."""


def reserved(reservations: Iterable[Reservation]) -> frozenset[str]:
    """The nodes that reservations name one by one, whether they have begun or not.

    Raises BadReplyError for nodes that cannot be read.
    """
    try:
        return frozenset(
            name
            for one in reservations
            if not _MOVING.intersection(one.flags or ())
            for name in hostlist.expand(one.node_list)
        )
    except hostlist.HostListError as error:
        raise BadReplyError(f"the nodes of a reservation cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class WantedReservation:
    """Desired reservation. A field that is None is Slurm's choice, or stays as it is.

    `start_time` and `end_time` are Unix seconds, `duration` is in minutes. A new one needs a time
    to start, an end or a duration, nodes or licences, and users or accounts. slurmctld keeps a
    comment but slurmrestd does not return it.
    """

    name: str
    start_time: int | None = None
    end_time: int | None = None
    duration: int | None = None
    nodes: Sequence[str] | None = None
    node_count: int | None = None
    partition: str | None = None
    users: Sequence[str] | None = None
    accounts: Sequence[str] | None = None
    licenses: Sequence[str] | None = None
    features: str | None = None
    comment: str | None = None
    flags: Sequence[str] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """In slurmrestd's own field names."""
        values: dict[str, Any] = {
            "name": self.name,
            "start_time": _number(self.start_time),
            "end_time": _number(self.end_time),
            "duration": _number(self.duration),
            "node_list": _list(self.nodes),
            "node_count": _number(self.node_count),
            "partition": self.partition,
            "users": _list(self.users),
            "accounts": _list(self.accounts),
            "licenses": _list(self.licenses),
            "features": self.features,
            "comment": self.comment,
            "flags": _list(self.flags),
        }
        return {key: value for key, value in values.items() if value is not None}


def _number(value: int | None) -> dict[str, Any] | None:
    return None if value is None else {"set": True, "number": value}


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)
