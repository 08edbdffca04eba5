"""Machines that a hardware check finds broken, and who replaces them, in plans with SlurmClusters.

A provider deletes the machine of a deleted Kubernetes node, and another one joins with its name.
`broken` has a machine that was replaced without a cause, twice, or under a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fault_plans import worker_sets
from fault_plans.actions.checks import CHECKS
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from fault_plans.plan import LARGEST, Family, Happening
from penstock.api.cluster.marks import REPLACE_NODES, REPLACEMENTS
from penstock.api.kubernetes.meta import Json
from penstock.decide.node_replacement import PREFIX, read_records
from penstock.simulation.apiserver import Change
from penstock.simulation.kubelet.kubelet import NODES
from penstock.simulation.kubelet.pod_lifecycle import PODS, node_name

if TYPE_CHECKING:
    from fault_plans.nebius_world import NebiusWorld

JOINS_S = (60.0, 120.0)
"""From the deletion of a Kubernetes node to the next machine."""
MOST = "20"
HEALTH_CHECK_S = 30.0
"""HealthCheckInterval."""
_MARKS = (
    "gpu_health: fault {} [hc_program]",
    "gpu_health: fault {} [prolog]",
    f"{CHECKS[0]}: job {{}} [slurm_job]",
)
"""The first repairs by itself. One around jobs does not run on a drained node, and the last one is
started on the next machine, where the check is declared. It is an image that tests no such node."""
_CURES = 240


class Replacements:
    """The provider, and what it was asked for."""

    def __init__(self, world: NebiusWorld) -> None:
        self._world = world
        self._drains: dict[tuple[str, str], tuple[str, str]] = {}
        """By namespace and Slurm node: reason of its drain, and uid of the Kubernetes node."""
        self._clusters: dict[tuple[str, str], str] = {}
        """The uid of the SlurmCluster at the time of that drain."""
        self._machines: dict[tuple[str, str], str] = {}
        """What identifies that machine, empty where nothing does."""
        self._places: dict[tuple[str, str], str] = {}
        """The name of that Kubernetes node."""
        self._pods: dict[tuple[str, str], str] = {}
        """The uid of the worker's pod at that time."""
        self.deleted: list[str] = []
        """The uid of each Kubernetes node that the operator deleted."""
        self._joining: set[str] = set()
        self._breaks = 0
        world.promises.replaces = self._replaces
        world.promises.has_moved = self._has_moved
        world.server.store.listeners.append(self._changed)
        world.background.append(asyncio.create_task(self._check()))

    def allow(self, space: str, most: str = MOST) -> None:
        """`kubectl annotate slurmcluster`."""
        body: Json = {"metadata": {"annotations": {REPLACE_NODES: most}}}
        self._world.ask("PATCH", path_of(space, worker_sets.OF_CLUSTER, CLUSTER), body)

    def break_machine(self, space: str, node: str, mark: str = "") -> str:
        """A check drains a Slurm node; the Kubernetes node that it runs on, empty for none."""
        world, slurm = self._world, self._world.slurms[space]
        record, pod = slurm.ctld.nodes.get(node), self._pod(space, node)
        on = pod["spec"].get("nodeName", "") if pod is not None else ""
        machine = world.server.find(NODES, "", on) if on else None
        if record is None or machine is None or not slurm.up or "DRAIN" in record.flags:
            return ""
        self._breaks += 1
        words = mark or _MARKS[self._breaks % len(_MARKS)].format(self._breaks)
        reason = f"{PREFIX} {words}"
        slurm.ctld.update_node(node, ["DRAIN"], {"reason": reason}, user="root")
        self._drains[space, node] = (reason, machine["metadata"]["uid"])
        self._places[space, node] = on
        self._machines[space, node] = _identity(machine)
        self._pods[space, node] = pod["metadata"]["uid"] if pod is not None else ""
        cluster = world.cluster(space)
        self._clusters[space, node] = cluster["metadata"]["uid"] if cluster is not None else ""
        return str(on)

    async def _check(self) -> None:
        """The health check program runs on each machine, and undrains what it had drained."""
        while True:
            await asyncio.sleep(HEALTH_CHECK_S)
            for (space, node), (reason, _) in self._drains.items():
                slurm = self._world.slurms[space]
                record = slurm.ctld.nodes.get(node)
                if record is None or record.reason != reason or "hc_program" not in reason:
                    continue
                if slurm.up and node in slurm.slurmds and self._passes(space, node, reason):
                    slurm.resumed_by_hand(node)

    def _passes(self, space: str, node: str, reason: str) -> bool:
        """Whether the check passes where a worker is: on any machine but the broken one."""
        pod = self._pod(space, node)
        on = pod["spec"].get("nodeName", "") if pod is not None else ""
        machine = self._world.server.find(NODES, "", on) if on else None
        broken = self._machines[space, node]
        is_other = machine is not None and (not broken or _identity(machine) != broken)
        return is_other and self._has_moved(space, node, reason)

    def _pod(self, space: str, node: str) -> Json | None:
        pods = self._world.server.objects(PODS, space)
        return next((one for one in pods if node_name(one) == node), None)

    def _has_moved(self, space: str, node: str, reason: str) -> bool:
        drained, uid = self._drains.get((space, node), ("", ""))
        pod = self._pod(space, node)
        on = pod["spec"].get("nodeName", "") if pod is not None else ""
        machine = self._world.server.find(NODES, "", on) if on else None
        if machine is None:
            # Another one, which has left since.
            return drained == reason and on not in {"", self._places.get((space, node))}
        return drained == reason and machine["metadata"]["uid"] != uid

    def _replaces(self, node: Json) -> None:
        meta, broken = node["metadata"], self._world.promises.broken
        if meta["uid"] in self.deleted:
            broken.append(f"the machine of {meta['name']} was replaced twice")
        self.deleted.append(meta["uid"])
        if meta["uid"] not in {uid for _, uid in self._drains.values()}:
            broken.append(f"the machine of {meta['name']} was replaced for nothing")
        for pod in self._world.server.objects(PODS):
            slurm = self._world.slurms.get(pod["metadata"]["namespace"])
            if slurm is None or pod["spec"].get("nodeName") != meta["name"]:
                continue
            worker = node_name(pod)
            if worker in slurm.slurmds and (jobs := [one.id for one in slurm.jobs_on(worker)]):
                broken.append(f"{meta['name']} was replaced while {worker} had jobs {jobs}")

    def _changed(self, change: Change) -> None:
        uid = change.last.obj["metadata"]["uid"]
        if change.resource != NODES or change.new is not None or uid not in self.deleted:
            return
        loop, name = asyncio.get_running_loop(), change.key[1]
        if name not in self._joining:
            self._joining.add(name)
            # Its pods are collected first, as they are when a machine leaves.
            loop.call_soon(self._world.machines.remove, name)
            loop.call_later(self._world.dice.between(*JOINS_S), self._join, name)

    def _join(self, name: str) -> None:
        self._joining.discard(name)
        if self._world.server.find(NODES, "", name) is None:
            self._world.machines.add(name)

    def hope(self) -> None:
        """Users allow what they allowed before, also for a SlurmCluster that was created again."""
        for space in {space for space, _ in self._drains}:
            self.allow(space)
        self._world.background.append(asyncio.create_task(self._cure()))

    async def _cure(self) -> None:
        """Users resume what the operator forgot with a deleted SlurmCluster."""
        for _ in range(_CURES):
            await asyncio.sleep(2.0)
            for (space, node), (reason, _) in self._drains.items():
                cluster, slurm = self._world.cluster(space), self._world.slurms[space]
                uid = cluster["metadata"]["uid"] if cluster is not None else ""
                record = slurm.ctld.nodes.get(node)
                is_new = uid and uid != self._clusters[space, node]
                pod = self._pod(space, node)
                # Of a pod that somebody evicted before, nobody knows which node was meant.
                moved = pod is not None and pod["metadata"]["uid"] != self._pods[space, node]
                forgot = is_new or (moved and not self._recorded(cluster, node))
                if forgot and record is not None and record.reason == reason and pod is not None:
                    slurm.resumed_by_hand(node)

    @staticmethod
    def _recorded(cluster: Json | None, node: str) -> bool:
        """Whether a replacement is under way for the drain of a Slurm node."""
        notes: Json = (cluster or {"metadata": {}})["metadata"].get("annotations") or {}
        records = read_records(notes.get(REPLACEMENTS, "")) or ()
        return any(node in one.drains and not one.ended for one in records)

    def missing(self) -> Iterator[str]:
        """What has not ended."""
        if self._joining:
            yield f"machines have not joined yet: {sorted(self._joining)}"
        for space in {space for space, _ in self._drains}:
            cluster = self._world.cluster(space)
            notes: Json = (cluster or {"metadata": {}})["metadata"].get("annotations") or {}
            records = read_records(notes.get(REPLACEMENTS, ""))
            if records is None or any(not one.ended for one in records):
                yield f"replacements of {space} have not ended: {records}"
        for (space, node), (reason, _) in self._drains.items():
            record = self._world.slurms[space].ctld.nodes.get(node)
            if record is not None and "DRAIN" in record.flags and record.reason == reason:
                yield f"{node} of {space} is drained: {reason}"


def _identity(node: Json) -> str:
    return str(node.get("status", {}).get("nodeInfo", {}).get("systemUUID", ""))


def break_machine(world: NebiusWorld, number: int) -> None:
    """A check finds the machine of a worker broken, and users have broken machines replaced."""
    if world.replacements is None:
        world.replacements = Replacements(world)
        world.at_end.append(world.replacements.hope)
    space, node = world.node(number)
    world.replacements.allow(space)
    if not list(world.replacements.missing()):
        world.replacements.break_machine(space, node)


def missing(world: NebiusWorld) -> Iterator[str]:
    """What has not ended of replacements."""
    if world.replacements is not None:
        yield from world.replacements.missing()


FAMILY = Family(
    "machines that are replaced",
    dice=43,
    share=0.15,
    users={"break_machine": Happening(4, lambda d: (d.randrange(2 * LARGEST),), break_machine)},
)
