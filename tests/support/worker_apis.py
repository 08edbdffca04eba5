"""The APIs whose workers live in the state machines: how each declares, names and marks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.base import times
from penstock.model.worker_marks import WorkerMarks
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_status import WorkerSetStatus
from penstock.translate.slinky import worker_set as slinky
from support import nodesets, tiny_api, upkeep
from support.tiny_api import Crew, CrewSpec, CrewUpdates


@dataclass(frozen=True)
class WorkerApi:
    """`pod` gives the name of an ordinal's pod, `host` that of the Slurm node of a pod by name."""

    new: Callable[[int], Any]
    workers: Callable[[Any], WorkerSet]
    status: Callable[[Any, WorkerSetStatus], Any]
    updates: Callable[[Any, int, float | None, int, bool], Any]
    """The object with other updates: most unavailable, from when, minutes, each hour."""
    marks: WorkerMarks
    pod: Callable[[int], str]
    host: Callable[[str], str]
    pod_of: Callable[[str], str]
    """The inverse of `host`."""


def _same(name: str) -> str:
    return name


def _nodeset_updates(
    nodeset: Any, most: int, start: float | None, minutes: int, again: bool
) -> Any:
    how = upkeep.strategy(most, start, minutes, again)
    return replace(nodeset, spec=replace(nodeset.spec, update_strategy=how))


def _crew(replicas: int) -> Crew:
    meta = ObjectMeta(
        name="compute",
        namespace="slurm",
        uid="crew-uid",
        generation=3,
        finalizers=(DRAIN_FINALIZER,),
    )
    return Crew(metadata=meta, spec=CrewSpec(cluster="slurm", replicas=replicas))


def _crew_updates(crew: Any, most: int, start: float | None, minutes: int, again: bool) -> Any:
    updates = CrewUpdates(
        at_most=most,
        start="" if start is None else times.write(start),
        duration=f"{minutes}m",
        flags=("HOURLY",) if again else (),
    )
    return replace(crew, spec=replace(crew.spec, updates=updates))


SLINKY = WorkerApi(
    new=nodesets.nodeset,
    workers=slinky.worker_set,
    status=slinky.nodeset_status,
    updates=_nodeset_updates,
    marks=slinky.MARKS,
    pod=lambda ordinal: f"compute-{ordinal}",
    host=_same,
    pod_of=_same,
)
TINY = WorkerApi(
    new=_crew,
    workers=tiny_api.workers_of,
    status=tiny_api.crew_status,
    updates=_crew_updates,
    marks=tiny_api.MARKS,
    pod=lambda ordinal: f"crew-compute-w{ordinal:03}",
    host=lambda pod: pod.replace("crew-compute-w", "computen"),
    pod_of=lambda host: host.replace("computen", "crew-compute-w"),
)
