"""A slurmrestd for thousands of nodes: whole records, kept encoded until they change."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed import drain_reason
from penstock.decide.observed.pod import slurm_node_name
from penstock.local.recipes import ROOT
from penstock.simulation.slurm.rest_replies import JSON, TEXT, RestRequest
from penstock.simulation.slurm.slurmctld import SimulatedSlurmNode
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.rest.http import Answer
from penstock.translate.slinky.worker_set import MARKS

RECORDED = ROOT / "tests/fixtures/slurmrestd/nodes.json"
"""An answer of a real slurmrestd, for the fields that nobody here reads: they cost to skip."""


class FleetSlurm(SimulatedSlurmrestd):
    """The stand-in. `started` and `stopping` register and stop slurmds."""

    def __init__(self, feature: str = app_labels.APP_INSTANCE) -> None:
        """`feature` is the label of a worker pod whose value is a feature of its node."""
        super().__init__()
        self._feature = feature
        self._encoded: dict[str, tuple[tuple[Any, ...], bytes]] = {}

    async def __aenter__(self) -> FleetSlurm:
        await self.start()
        return self

    def follow(self, old: Pod | None, new: Pod | None) -> None:
        """Start or stop the slurmd of a pod that becomes Ready, or is no longer."""
        runs = new is not None and new.ready and not new.metadata.deleting
        if new is not None and runs and not (old and old.ready):
            self.started(new)
        elif old is not None and not runs and old.ready and not old.metadata.deleting:
            self.stopping(new or old)

    def started(self, pod: Pod) -> None:
        """A pod's slurmd registers, unless it did so before."""
        name, slurm = slurm_node_name(pod), self.slurmctld
        node = slurm.nodes.get(name)
        if node is None:
            slurm.register(
                name,
                address=pod.status.pod_ip or "",
                started=int(slurm.clock()),
                features=[pod.metadata.labels.get(self._feature, "")],
            )
        elif node.base != "IDLE":
            node.base = "IDLE"
            slurm.touch()

    def stopping(self, pod: Pod) -> None:
        """What the preStop hook of worker pods does."""
        name = slurm_node_name(pod)
        if name in self.slurmctld.nodes:
            self.slurmctld.update_node(name, ["DOWN"], {"reason": drain_reason.terminating(MARKS)})

    def reconfigured(self) -> None:
        """Each slurmd starts a new process in the place of the former, as in a reconfigure."""
        now = int(self.slurmctld.clock())
        for node in self.slurmctld.nodes.values():
            node.started = now
        self.slurmctld.reconfigured += 1
        self.slurmctld.touch()

    def records(self) -> list[bytes]:
        """Each node as slurmrestd writes it."""
        return [self._bytes(node) for node in self.slurmctld.nodes.values()]

    def _get_nodes(self, asked: RestRequest, _: str) -> Answer:
        if self._unchanged(asked):
            return Answer(304, TEXT, b"")
        nodes = b",".join(self.records())
        rest: dict[str, Any] = {
            "last_update": self._now(),
            "meta": {},
            "errors": [],
            "warnings": [],
        }
        return Answer(200, JSON, b'{"nodes":[%b],%b' % (nodes, json.dumps(rest).encode()[1:]))

    def _bytes(self, node: SimulatedSlurmNode) -> bytes:
        reserved = node.name in self.slurmctld.maintained
        shown = (
            *(node.base, *sorted(node.flags), node.reason, node.comment, node.started),
            *(node.weight, *node.features, reserved),
        )
        known = self._encoded.get(node.name)
        if known is None or known[0] != shown:
            known = shown, json.dumps({**_others(), **self._node(node)}).encode()
            self._encoded[node.name] = known
        return known[1]


@cache
def _others() -> dict[str, Any]:
    recorded = json.loads(RECORDED.read_text())
    return recorded["body"]["nodes"][0]
