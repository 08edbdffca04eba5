"""Changes of nodes that slurmctld rejected, kept so that they are neither repeated nor hidden.

They are not written anywhere: a new process tries once more and gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.action import TopologyRejection
from penstock.kube.client.clock import Clock

AGAIN_S = 30.0
"""Pause before it is asked again: a changed topology.yaml may have made it right."""


class Rejections:
    """Those of all worker sets of one kind, by the key of their object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, dict[str, TopologyRejection]] = {}
        self._gres: dict[str, frozenset[str]] = {}

    def of(self, key: str, pods: Iterable[Pod]) -> Mapping[str, TopologyRejection]:
        """Those of a worker set that has these pods now."""
        found = self._found.get(key)
        if not found:
            return {}
        nodes = {pod.host for pod in pods}
        left = {name: one for name, one in found.items() if name in nodes}
        self._found[key] = left
        return left

    def rejected(self, key: str, node: str, topology: str, words: str) -> None:
        """Slurmctld rejected it, in these words."""
        refusal = TopologyRejection(topology, words, self._clock.time() + AGAIN_S)
        self._found[key] = {**self._found.get(key, {}), node: refusal}

    def accepted(self, key: str, node: str) -> None:
        """Slurmctld accepted it."""
        if node in self._found.get(key, {}):
            self._found[key] = {n: r for n, r in self._found[key].items() if n != node}

    def gres_rejected(self, key: str, gres: str) -> None:
        """Slurmctld does not change a running node to these counts of generic resources."""
        self._gres[key] = self._gres.get(key, frozenset()) | {gres}

    def gres(self, key: str) -> frozenset[str]:
        """The counts of generic resources that its nodes get by another pod only."""
        return self._gres.get(key, frozenset())

    def forget(self, key: str) -> None:
        """That object is gone."""
        self._found.pop(key, None)
        self._gres.pop(key, None)
