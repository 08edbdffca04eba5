"""The promise that a scheduled update takes no worker before its reservation has begun."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from penstock.api.meta import Json
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.slurm import SimulatedSlurm

NODESETS = "slinky.slurm.net/nodesets"
SCHEDULED = "ScheduledUpdate"


class ReservedPromises:
    """Notes in `broken` when an update takes a worker before its reservation has begun."""

    def __init__(
        self, server: ApiServer, slurms: Mapping[str, SimulatedSlurm], broken: list[str]
    ) -> None:
        self._slurms = slurms
        self._broken = broken
        self._waits: defaultdict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
        """By NodeSet since when its workers go in a reservation only, or at any time."""
        server.store.listeners.append(self._changed)

    def took(self, space: str, nodeset: str, node: str, shown: float) -> None:
        """The operator has drained a node for an update; `shown` is as of `Budget.took`."""
        history = self._waits[space, nodeset]
        lately = [one for at, one in history if at <= shown][-1:]
        lately += [one for at, one in history if at > shown]
        ctld = self._slurms[space].ctld
        ctld.pass_time()
        if all(lately) and node not in ctld.maintained:
            self._broken.append(f"an update took {node}, which is in no reservation that runs")

    def _changed(self, change: Change) -> None:
        if change.resource == NODESETS:
            strategy: Json = change.last.obj["spec"].get("updateStrategy") or {}
            now = asyncio.get_running_loop().time()
            self._waits[change.key].append((now, strategy.get("type") == SCHEDULED))


def missing(slurm: SimulatedSlurm) -> list[str]:
    """Reservations that are left though no update waits for one."""
    slurm.ctld.pass_time()
    return [f"reservation {name} is left" for name in slurm.ctld.reservations]
