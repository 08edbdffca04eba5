"""The reservations of a tiny world: they begin, end and come again, as slurmctld has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.api.slinky.nodeset import RollingUpdate, ScheduledUpdate, UpdateStrategy
from penstock.base import times
from penstock.decide import action as act
from penstock.slurm.reservation import Reservation
from penstock.slurm.state import Node

HOUR_S = 3600


@dataclass
class Upkeep:
    """All of them, by name."""

    records: dict[str, Reservation] = field(default_factory=dict[str, Reservation])

    def copy(self) -> Upkeep:
        return Upkeep(dict(self.records))

    def pass_time(self, now: float) -> None:
        for name, one in list(self.records.items()):
            if one.end > now:
                continue
            if "HOURLY" not in one.flags:
                del self.records[name]
                continue
            steps = int((now - one.end) // HOUR_S + 1) * HOUR_S
            self.records[name] = replace(one, start=one.start + steps, end=one.end + steps)

    def nodes(self, now: float) -> frozenset[str]:
        """Those in maintenance."""
        return frozenset(
            name
            for one in self.records.values()
            if one.start <= now < one.end
            for name in one.nodes
        )

    def shown(self, nodes: Mapping[str, Node], now: float) -> dict[str, Node]:
        """Node records with what reservations add to them."""
        kept = self.nodes(now)
        return {
            name: replace(one, state=one.state | {"MAINTENANCE"}) if name in kept else one
            for name, one in nodes.items()
        }

    def do(self, step: act.SetReservation | act.DeleteReservation, known: set[str]) -> None:
        if isinstance(step, act.DeleteReservation):
            self.records.pop(step.name, None)
        elif set(step.nodes) <= known:
            nodes, flags = frozenset(step.nodes), frozenset(step.flags) - {"FORCE_START"}
            if step.start is not None and step.end is not None:
                new = Reservation(step.name, step.start, step.end, nodes, flags)
                self.records[step.name] = new
            elif step.name in self.records:
                self.records[step.name] = replace(self.records[step.name], nodes=nodes)

    def lose(self, name: str) -> None:
        """A node record is gone."""
        for key, one in self.records.items():
            self.records[key] = replace(one, nodes=one.nodes - {name})


def strategy(most: int, start: float | None, minutes: int, again: bool) -> UpdateStrategy:
    """RollingUpdate, or ScheduledUpdate from `start` on."""
    rolling = RollingUpdate(max_unavailable=most)
    if start is None:
        return UpdateStrategy(rolling_update=rolling)
    update = ScheduledUpdate(
        start_time=times.write(start),
        duration=f"{minutes}m",
        flags=("HOURLY",) if again else None,
    )
    return UpdateStrategy(type="ScheduledUpdate", rolling_update=rolling, scheduled_update=update)
