"""The promise that an update has no more nodes out at once than declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from penstock.api.meta import Json
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.kubelet import PODS
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
        key = space, name.rpartition("-")[0]
        nodeset = self._server.find(NODESETS, *key)
        if nodeset is None:
            return
        self._taken[key] |= {name}
        alive = self._forget_unwanted(key, nodeset)
        replicas = nodeset["spec"]["replicas"]
        # A quarter, rounded up. Of more than are wanted, some go anyhow, and which is not known.
        surplus = max(0, len(alive) - replicas)
        if len(self._taken[key]) > max(1, (replicas + 3) // 4) + surplus:
            self._broken.append(f"an update has {sorted(self._taken[key])} out of {replicas}")

    def _changed(self, change: Change) -> None:
        if change.resource != NODESETS:
            return
        if change.new is None:
            self._taken.pop(change.key, None)
        else:
            self._forget_unwanted(change.key, change.new.obj)

    def _forget_unwanted(self, key: Key, nodeset: Json) -> set[str]:
        """Returns the pods that are not being deleted."""
        space, name = key
        alive = {
            pod["metadata"]["name"]
            for pod in self._server.objects(PODS, space)
            if pod["metadata"]["name"].startswith(f"{name}-")
            and "deletionTimestamp" not in pod["metadata"]
        }
        if len(alive) >= nodeset["spec"]["replicas"]:
            self._taken[key] &= alive
        return alive
