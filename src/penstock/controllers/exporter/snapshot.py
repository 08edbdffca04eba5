"""All that the metrics of one moment are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.controllers.exporter.history import NodeHistory
from penstock.slurm.rest.records import Counters, JobRecord, NodeRecord


@dataclass(frozen=True, slots=True)
class Place:
    """Where the worker pod of a Slurm node is."""

    nvlink_group: str = ""
    node_set: str = ""


NO_PLACE = Place()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Records as last collected; `now` in Unix seconds."""

    now: float
    history: NodeHistory
    nodes: tuple[NodeRecord, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    counters: Counters | None = None
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])

    def place(self, node: str) -> Place:
        """The place of a Slurm node, which has the name of its pod."""
        return self.places.get(node, NO_PLACE)
