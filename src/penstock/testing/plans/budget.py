"""The promise that an update has no more nodes out at once than declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from penstock.api.meta import Json
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.kubelet import NODES, node_name
from penstock.testing.plans.daemons import (
    called,
    is_daemon,
    machine_of,
    places,
    wanted,
    workers,
)
from penstock.testing.slurm import SimulatedSlurm

NODESETS = "slinky.slurm.net/nodesets"
Key = tuple[str, str]
"""Namespace and name of a NodeSet."""


class Budget:
    """Follows which nodes an update took out of use that are not in use again.

    What fails meanwhile is nobody's promise. A node that is not wanted any more is not counted from
    then on, also if it is wanted again in the next moment. `slurms` are by namespace.
    """

    def __init__(
        self, server: ApiServer, slurms: Mapping[str, SimulatedSlurm], broken: list[str]
    ) -> None:
        self._taken: defaultdict[Key, set[str]] = defaultdict(set)
        self._server = server
        self._slurms = slurms
        self._broken = broken
        server.store.listeners.append(self._changed)

    def usable(self, space: str, name: str) -> bool:
        """Whether a node is in use, in truth."""
        slurm = self._slurms[space]
        node = slurm.ctld.nodes.get(name)
        return (
            node is not None
            and name in slurm.slurmds
            and node.base == "IDLE"
            and not node.flags & {"DRAIN", "NOT_RESPONDING"}
        )

    def look(self, space: str) -> None:
        """Forget what is in use again. What somebody takes out of use later is not the update's."""
        for (where, of), taken in self._taken.items():
            if where == space:
                self._taken[where, of] = {one for one in taken if not self.usable(space, one)}

    def took(self, space: str, name: str) -> None:
        """The operator has drained a node that was in use, for an update."""
        nodeset = self._nodeset_of(space, name)
        if nodeset is None:
            return
        key = space, nodeset["metadata"]["name"]
        self._taken[key] |= {name}
        alive = self._forget_unwanted(key, nodeset)
        number = wanted(self._server, nodeset)
        # A quarter, rounded up. Of more than are wanted, some go anyhow, and which is not known.
        surplus = max(0, len(alive) - number)
        if len(self._taken[key]) > max(1, (number + 3) // 4) + surplus:
            self._broken.append(f"an update has {sorted(self._taken[key])} out of {number}")

    def _nodeset_of(self, space: str, node: str) -> Json | None:
        found = (one for one in self._server.objects(NODESETS, space))
        return next((n for n in found if node in called(workers(self._server, n))), None)

    def _changed(self, change: Change) -> None:
        if change.resource == NODES:
            self._forget_machines()
        if change.resource != NODESETS:
            return
        if change.new is None:
            self._taken.pop(change.key, None)
        else:
            self._forget_unwanted(change.key, change.new.obj)

    def _forget_machines(self) -> None:
        """The nodes of machines that are not for workers any more are not wanted."""
        for (space, name), taken in self._taken.items():
            nodeset = self._server.find(NODESETS, space, name) if taken else None
            if nodeset is None or not is_daemon(nodeset):
                continue
            machines = places(self._server).keys()
            pods = workers(self._server, nodeset)
            gone = {node_name(pod) for pod in pods if machine_of(pod) not in machines}
            self._taken[space, name] = taken - gone

    def _forget_unwanted(self, key: Key, nodeset: Json) -> set[str]:
        """Returns the nodes of pods that are not being deleted."""
        alive = called(workers(self._server, nodeset))
        if len(alive) >= wanted(self._server, nodeset):
            self._taken[key] &= alive
        return alive
