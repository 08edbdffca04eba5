"""The promise that an update has no more nodes out at once than declared."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from fault_plans import worker_sets
from fault_plans.daemonset import (
    called,
    full,
    is_daemon,
    machine_of,
    of_mode,
    places,
    wanted,
    workers,
)
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.kubelet import NODES
from penstock.simulation.kubelet.pod_lifecycle import PODS
from penstock.simulation.slurm.cluster import SimulatedSlurm

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
        self._taken: defaultdict[Key, dict[str, str]] = defaultdict(dict)
        """Nodes, with their machines."""
        self._wanted: defaultdict[Key, list[tuple[float, int]]] = defaultdict(list)
        """Since when how many were wanted."""
        self._full: dict[str, float] = {}
        """Since when a machine takes no new workers."""
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
        for (where, _), taken in self._taken.items():
            if where == space:
                _forget(taken, {one for one in taken if self.usable(space, one)})

    def took(self, space: str, name: str, shown: float) -> None:
        """The operator has drained a node that was in use, for an update.

        `shown` is up to when it knew what is declared, in the loop's seconds.
        """
        found = self.worker(space, name)
        if found is None:
            return
        nodeset, pod = found
        key, machine = (space, nodeset["metadata"]["name"]), machine_of(pod)
        self._taken[key][name] = machine
        alive = self._forget_unwanted(key, nodeset)
        # A quarter, rounded up. Of more than are wanted, some go anyhow, and which is not known.
        numbers = [*self._lately(key, shown), self._served(nodeset)]
        most = max(max(1, (one + 3) // 4) + max(0, len(alive) - one) for one in numbers)
        if len(self._taken[key]) > most:
            told = " or ".join(map(str, sorted(set(numbers))))
            self._broken.append(f"an update has {sorted(self._taken[key])} out of {told}")
        daemon = is_daemon(nodeset) and of_mode([pod], nodeset)
        if daemon and self._full.get(machine, float("inf")) <= shown:
            self._broken.append(f"an update took {name}, and {machine} takes no new worker")

    def worker(self, space: str, node: str) -> tuple[Json, Json] | None:
        """The NodeSet and the pod of a node."""
        return next(
            (
                (nodeset, pod)
                for nodeset in worker_sets.every(self._server, space)
                for pod in workers(self._server, nodeset)
                if node in called([pod])
            ),
            None,
        )

    def _lately(self, key: Key, since: float) -> list[int]:
        """How many workers were wanted at any time since then."""
        history = self._wanted[key]
        before = [number for when, number in history if when <= since]
        return before[-1:] + [number for when, number in history if when > since]

    def _served(self, nodeset: Json) -> int:
        """How many are wanted where a machine that takes no new worker and has none is none."""
        if not is_daemon(nodeset):
            return wanted(self._server, nodeset)
        having = {machine_of(p) for p in of_mode(workers(self._server, nodeset), nodeset)}
        found = places(self._server).items()
        return len({host for name, host in found if name in having or name not in self._full})

    def _changed(self, change: Change) -> None:
        if change.resource == PODS:
            self._forget_machines()
        if change.resource == NODES:
            self._machine(change)
            self._forget_machines()
            for nodeset in worker_sets.every(self._server):
                self._note(nodeset)
        if change.resource == worker_sets.CLUSTERS and change.new is not None:
            # Its maintenance decides how many workers its NodeSets have.
            for nodeset in worker_sets.every(self._server, change.key[0]):
                self._note(nodeset)
        if change.resource not in worker_sets.RESOURCES or not worker_sets.is_set(change.last.obj):
            return
        if change.new is None:
            self._taken.pop(change.key, None)
            self._wanted.pop(change.key, None)
        else:
            self._note(change.new.obj)
            self._forget_unwanted(change.key, change.new.obj)

    def _machine(self, change: Change) -> None:
        name = change.key[1]
        if change.new is None or not full(change.new.obj):
            self._full.pop(name, None)
        else:
            self._full.setdefault(name, _now())

    def _note(self, nodeset: Json) -> None:
        meta = nodeset["metadata"]
        history = self._wanted[meta["namespace"], meta["name"]]
        number = wanted(self._server, nodeset)
        if not history or history[-1][1] != number:
            history.append((_now(), number))

    def _forget_machines(self) -> None:
        """The nodes of machines that are not for workers any more are not wanted.

        Nor is one whose pod has gone while its machine takes no new one.
        """
        for (space, name), taken in self._taken.items():
            nodeset = worker_sets.find(self._server, space, name) if taken else None
            if nodeset is None or not is_daemon(nodeset):
                continue
            machines = places(self._server).keys()
            alive = called(workers(self._server, nodeset))
            gone = {
                one
                for one, machine in taken.items()
                if machine not in machines or (machine in self._full and one not in alive)
            }
            _forget(taken, gone)

    def _forget_unwanted(self, key: Key, nodeset: Json) -> set[str]:
        """Returns the nodes of pods that are not being deleted."""
        alive = called(workers(self._server, nodeset))
        if len(alive) >= self._served(nodeset):
            taken = self._taken[key]
            _forget(taken, taken.keys() - alive)
        return alive


def _forget(taken: dict[str, str], nodes: set[str]) -> None:
    for one in nodes:
        del taken[one]


def _now() -> float:
    return asyncio.get_running_loop().time()
