"""Changes of nodes that slurmctld rejected, kept so that they are neither repeated nor hidden.

They are not written anywhere: a new process tries once more and gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import TopologyRejection
from penstock.kube import Cache
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.state import StateByUid
from penstock.model.worker_set import WorkerSet

AGAIN_S = 30.0
"""Pause before it is asked again: a changed topology.yaml may have made it right."""


@dataclass(slots=True)
class _State:
    topologies: Mapping[str, TopologyRejection] = field(
        default_factory=dict[str, TopologyRejection]
    )
    """By name of the Slurm node."""
    gres: frozenset[str] = frozenset()


class Rejections:
    """Those of all worker sets of one kind."""

    def __init__(self, objects: Cache[Any], clock: Clock) -> None:
        self._clock = clock
        self._states = StateByUid(objects, _State)

    def of(self, workers: WorkerSet, pods: Iterable[Pod]) -> Mapping[str, TopologyRejection]:
        """Those of a worker set that has these pods now."""
        state = self._states.of(workers)
        if not state.topologies:
            return {}
        nodes = {pod.host for pod in pods}
        state.topologies = {name: one for name, one in state.topologies.items() if name in nodes}
        return state.topologies

    def rejected(self, workers: WorkerSet, node: str, topology: str, words: str) -> None:
        """Slurmctld rejected it, in these words."""
        state = self._states.of(workers)
        rejection = TopologyRejection(topology, words, self._clock.time() + AGAIN_S)
        state.topologies = {**state.topologies, node: rejection}

    def accepted(self, workers: WorkerSet, node: str) -> None:
        """Slurmctld accepted it."""
        state = self._states.of(workers)
        if node in state.topologies:
            state.topologies = {n: r for n, r in state.topologies.items() if n != node}

    def gres_rejected(self, workers: WorkerSet, gres: str) -> None:
        """Slurmctld does not change a running node to these counts of generic resources."""
        self._states.of(workers).gres |= {gres}

    def gres(self, workers: WorkerSet) -> frozenset[str]:
        """The counts of generic resources that its nodes get by another pod only."""
        return self._states.of(workers).gres
