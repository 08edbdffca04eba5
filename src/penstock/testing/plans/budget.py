"""The promise that an update has no more nodes out at once than declared."""

from __future__ import annotations

from penstock.api.meta import Json
from penstock.testing.apiserver import ApiServer, Change
from penstock.testing.kubelet import PODS
from penstock.testing.slurm import SimulatedSlurm

NODESETS = "slinky.slurm.net/nodesets"


class Budget:
    """Follows which nodes an update took out of use that are not in use again.

    What fails meanwhile is nobody's promise. A node that is not wanted any more is not counted from
    then on, also if it is wanted again in the next moment.
    """

    def __init__(self, server: ApiServer, slurm: SimulatedSlurm, broken: list[str]) -> None:
        self.taken: set[str] = set()
        self._server = server
        self._slurm = slurm
        self._broken = broken
        server.store.listeners.append(self._changed)

    def usable(self, name: str) -> bool:
        """Whether a node is in use, in truth."""
        node = self._slurm.ctld.nodes.get(name)
        return (
            node is not None
            and name in self._slurm.slurmds
            and node.base == "IDLE"
            and not node.flags & {"DRAIN", "NOT_RESPONDING"}
        )

    def took(self, name: str) -> None:
        """The operator has drained a node that was in use, for an update."""
        self.taken = {one for one in self.taken if not self.usable(one)} | {name}
        for nodeset in self._server.objects(NODESETS):
            if not name.startswith(f"{nodeset['metadata']['name']}-"):
                continue
            self._forget_unwanted(nodeset)
            replicas = nodeset["spec"]["replicas"]
            # A quarter, rounded up.
            if len(self.taken) > max(1, (replicas + 3) // 4):
                self._broken.append(f"an update has {sorted(self.taken)} out of {replicas}")

    def _changed(self, change: Change) -> None:
        if change.resource != NODESETS:
            return
        if change.new is None:
            self.taken.clear()
        else:
            self._forget_unwanted(change.new.obj)

    def _forget_unwanted(self, nodeset: Json) -> None:
        prefix = f"{nodeset['metadata']['name']}-"
        alive = {
            pod["metadata"]["name"]
            for pod in self._server.objects(PODS, nodeset["metadata"]["namespace"])
            if pod["metadata"]["name"].startswith(prefix)
            and "deletionTimestamp" not in pod["metadata"]
        }
        if len(alive) >= nodeset["spec"]["replicas"]:
            self.taken &= alive
