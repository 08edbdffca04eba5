"""How tests are spread over processes: some have a node and mostly wait, others compute."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]
from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

NODES = {"api": 1, "e2e": 3}
"""By layer, how many processes may have a node: each takes half a minute and 2 GB."""
LATE = {"api": 1, "e2e": 4}
"""The same once nothing is left that computes: what needs a node leaves half of the CPU idle."""
WORTH = 4
"""So many files must be left for one more process to get a node."""


def layer_of(nodeid: str) -> str:
    """The layer of a test that needs a node; empty for what needs none."""
    parts = nodeid.split("/")
    return parts[1] if parts[0] == "tests" and parts[1] in NODES else ""


class ByNode(LoadScopeScheduling):
    """Each file in one process, and what needs a node only in the few processes that have one.

    All of tests/api is little and stays together. The files of tests/e2e are taken in turn by the
    processes that have a node, so these end at about the same time.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._having: dict[str, set[WorkerController]] = {layer: set() for layer in NODES}

    def remove_node(self, node: WorkerController) -> str | None:
        """A process has ended: another one may have a node in its place."""
        for having in self._having.values():
            having.discard(node)
        return super().remove_node(node)

    def _split_scope(self, nodeid: str) -> str:
        layer = layer_of(nodeid)
        return f"tests/{layer}/" if NODES.get(layer) == 1 else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next(node)
        if scope is None:
            return
        if layer := layer_of(scope):
            self._having[layer].add(node)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        # A process begins a test when it knows which one follows, or that none does.
        while not node.shutting_down:
            if self._next(node) is None:
                node.shutdown()
                return
            super()._reschedule(node)
            if self._pending_of(self.assigned_work[node]) > 1:
                return

    def _next(self, node: WorkerController) -> str | None:
        """What a process takes next: what its node is for, then what it may have a node for."""
        found = [scope for scope in self.workqueue if self._may(node, layer_of(scope))]
        return min(found, key=lambda scope: self._rank(node, layer_of(scope)), default=None)

    def _may(self, node: WorkerController, layer: str) -> bool:
        having = self._having.get(layer, set())
        if not layer or node in having or len(having) < NODES[layer]:
            return True
        left = [layer_of(scope) for scope in self.workqueue]
        return len(having) < LATE[layer] and "" not in left and left.count(layer) >= WORTH

    def _rank(self, node: WorkerController, layer: str) -> int:
        return 2 if not layer else 0 if node in self._having[layer] else 1
