"""Kubernetes nodes that are rebooted on request, in plans with SlurmClusters.

Each node has a rebooter from the first request on. It acts as `penstock.decide.reboot_command`
does, and notes in `broken` a reboot that ends a job, or one more than was asked for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from fault_plans.plan import Family, Happening
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.labels import configurator_selector
from penstock.decide.reboot_command import may_reboot
from penstock.model.node_mark import REBOOT_STARTED
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.kubelet import NODES
from penstock.simulation.kubelet.pod_lifecycle import PODS, node_name
from penstock.simulation.slurm.cluster import SimulatedSlurm

if TYPE_CHECKING:
    from fault_plans.nebius_world import NebiusWorld

REBOOT = "SlurmNodeReboot"
BOOT_S = (5.0, 40.0)
"""From the command to the kubelet's next report."""


class Reboots:
    """The rebooters of all Kubernetes nodes, and who asks for them."""

    def __init__(
        self,
        server: ApiServer,
        slurms: Mapping[str, SimulatedSlurm],
        broken: list[str],
        between: Callable[[float, float], float],
    ) -> None:
        self._server, self._slurms = server, slurms
        self._broken, self._between = broken, between
        self._asked: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        server.store.listeners.append(self._changed)

    def ask(self, space: str, name: str) -> None:
        """Set the condition, with a rebooter there."""
        node = self._server.find(NODES, "", name)
        if node is None or _is_asked(node):
            return
        if not _boot(node):
            self._report(name, {"nodeInfo": {"bootID": f"{name}-0"}})
            self._add_rebooter(space, name)
        self._asked[name] += 1
        self._condition(name, "True", f"t{self._asked[name]}")

    def withdraw(self, name: str) -> None:
        """Set the condition to False, if it still asks."""
        node = self._server.find(NODES, "", name)
        if node is not None and _is_asked(node):
            self._condition(name, "False", "")

    def _add_rebooter(self, space: str, name: str) -> None:
        pod: Json = {
            "kind": "Pod",
            "metadata": {"name": f"rebooter-{name}", "labels": configurator_selector("rebooter")},
            "spec": {"nodeName": name, "containers": [{"name": "rebooter", "image": "x"}]},
        }
        self._server.ask("POST", f"/api/v1/namespaces/{space}/pods", pod, user="daemonsets")

    def _condition(self, name: str, status: str, at: str) -> None:
        one = {"type": REBOOT, "status": status, "reason": "Asked", "lastTransitionTime": at}
        self._report(name, {"conditions": [one]})

    def _report(self, name: str, status: Json, annotations: Json | None = None) -> None:
        body: Json = {"status": status}
        if annotations:
            body["metadata"] = {"annotations": annotations}
        path = f"/api/v1/nodes/{name}/status"
        self._server.ask("PATCH", path, body, kind="strategic", user="kubelet")

    def _changed(self, change: Change) -> None:
        if change.resource == NODES and change.new is not None and _may(change.new.obj):
            # Not below the write that is going on.
            asyncio.get_running_loop().call_soon(self._reboot, change.key[1])

    def _reboot(self, name: str) -> None:
        node = self._server.find(NODES, "", name)
        if node is None or not _may(node):
            return
        self._done[name] += 1
        if self._done[name] > self._asked[name]:
            self._broken.append(f"{name} was rebooted more often than it was asked for")
        for pod in self._server.objects(PODS):
            slurm = self._slurms.get(pod["metadata"]["namespace"])
            if pod["spec"].get("nodeName") == name and slurm is not None:
                worker = node_name(pod)
                jobs = slurm.jobs_on(worker) if worker in slurm.slurmds else []
                if jobs:
                    self._broken.append(f"{name} was rebooted while {worker} had jobs {jobs}")
        boot = _boot(node)
        self._report(name, {}, {REBOOT_STARTED: boot})
        then = {"nodeInfo": {"bootID": f"{name}-{self._done[name]}"}}
        seconds = self._between(*BOOT_S)
        asyncio.get_running_loop().call_later(seconds, self._report, name, then)


def _boot(node: Json) -> str:
    found = cast("Json", node.get("status", {}).get("nodeInfo") or {})
    return str(found.get("bootID") or "")


def _is_asked(node: Json) -> bool:
    every = cast("list[dict[str, Any]]", node.get("status", {}).get("conditions") or [])
    return any(one["type"] == REBOOT and one["status"] == "True" for one in every)


def _may(node: Json) -> bool:
    notes = cast("dict[str, str]", node["metadata"].get("annotations") or {})
    return may_reboot(notes, _boot(node), is_requested=_is_asked(node))


def reboot_machine(world: NebiusWorld, number: int, seconds: float) -> None:
    """Somebody asks for a reboot, and does not any more after a while."""
    name = f"machine-{number}"
    world.reboots.ask(world.space(0), name)
    world.later(seconds, lambda: world.reboots.withdraw(name))


FAMILY = Family(
    "reboots of Kubernetes nodes",
    dice=23,
    share=0.3,
    users={
        "reboot_machine": Happening(
            6,
            lambda d: (d.randrange(3), round(20 + d.expovariate(1 / 200), 1)),
            reboot_machine,
        ),
    },
)
