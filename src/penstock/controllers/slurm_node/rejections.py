"""What slurmctld did not take of nodes, remembered so that it is neither repeated nor hidden.

It is not written anywhere: a process that starts asks once more and hears it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.slurm_node.topology import TopologyRejection
from penstock.kube.client.clock import Clock

AGAIN_S = 30.0
"""Pause before it is asked again: a changed topology.yaml may have made it right."""


class Refusals:
    """The refusals of all NodeSets, by their key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, dict[str, TopologyRejection]] = {}
        self._gres: dict[str, frozenset[str]] = {}

    def of(self, key: str, pods: Iterable[Pod]) -> Mapping[str, TopologyRejection]:
        """Those of a NodeSet that has these pods now."""
        found = self._found.get(key)
        if not found:
            return {}
        nodes = {pod.host for pod in pods}
        left = {name: one for name, one in found.items() if name in nodes}
        self._found[key] = left
        return left

    def refused(self, key: str, node: str, topology: str, words: str) -> None:
        """Slurmctld said no, in these words."""
        refusal = TopologyRejection(topology, words, self._clock.time() + AGAIN_S)
        self._found[key] = {**self._found.get(key, {}), node: refusal}

    def taken(self, key: str, node: str) -> None:
        """Slurmctld took it."""
        if node in self._found.get(key, {}):
            self._found[key] = {n: r for n, r in self._found[key].items() if n != node}

    def gres_refused(self, key: str, gres: str) -> None:
        """Slurmctld does not change a node that runs to these counts of generic resources."""
        self._gres[key] = self._gres.get(key, frozenset()) | {gres}

    def gres(self, key: str) -> frozenset[str]:
        """The counts of generic resources that nodes of a NodeSet get by another pod only."""
        return self._gres.get(key, frozenset())

    def forget(self, key: str) -> None:
        """The NodeSet is gone."""
        self._found.pop(key, None)
        self._gres.pop(key, None)
