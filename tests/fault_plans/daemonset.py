"""What is true of NodeSets in DaemonSet mode: which machines are theirs, and which were not."""

from __future__ import annotations

import asyncio

from fault_plans import worker_sets
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import HOSTNAME_OVERRIDE, SCALING_MODE
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.kubelet import LABELS, NODES
from penstock.simulation.kubelet.pod_lifecycle import PODS, node_name

MODE = "DaemonSet"


def is_daemon(nodeset: Json) -> bool:
    """Whether a NodeSet is in that mode."""
    return nodeset["spec"].get("scalingMode") == MODE


def fits(machine: Json) -> bool:
    """Whether a pod may be there, if it is there already."""
    labels = machine["metadata"].get("labels", {})
    taints: list[Json] = machine.get("spec", {}).get("taints") or []
    kept_off = any(taint["effect"] == "NoExecute" for taint in taints)
    return LABELS.items() <= labels.items() and not kept_off


def full(machine: Json) -> bool:
    """Whether a pod that is there may stay, and no other one comes."""
    taints: list[Json] = machine.get("spec", {}).get("taints") or []
    return any(taint["effect"] == "NoSchedule" for taint in taints)


def places(server: ApiServer) -> dict[str, str]:
    """What the Slurm node of each machine that fits shall be called."""
    metas = [machine["metadata"] for machine in server.objects(NODES) if fits(machine)]
    override = HOSTNAME_OVERRIDE
    return {one["name"]: one.get("annotations", {}).get(override) or one["name"] for one in metas}


def wanted(server: ApiServer, nodeset: Json) -> int:
    """How many workers a NodeSet shall have; of machines of one name only one has one."""
    if is_daemon(nodeset):
        return len(set(places(server).values()))
    return worker_sets.replicas(server, nodeset)


def workers(server: ApiServer, nodeset: Json) -> list[Json]:
    """The pods of a NodeSet, also of one that was there before under its name."""
    meta = nodeset["metadata"]
    return [
        pod
        for pod in server.objects(PODS, meta["namespace"])
        if any(
            one["kind"] == nodeset["kind"] and one["name"] == meta["name"]
            for one in pod["metadata"].get("ownerReferences", ())
        )
    ]


def of_mode(pods: list[Json], nodeset: Json) -> list[Json]:
    """Those pods that were made in the mode that a NodeSet has now."""
    if worker_sets.is_crew(nodeset) or worker_sets.is_nebius(nodeset):
        return pods
    mode = nodeset["spec"].get("scalingMode") or "StatefulSet"
    return [pod for pod in pods if pod["metadata"]["labels"].get(SCALING_MODE) == mode]


def machine_of(pod: Json) -> str:
    """The machine that a pod runs on or waits for."""
    found = pod["spec"].get("nodeName")
    affinity: Json = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required: Json = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for one in term.get("matchFields", ()):
            found = found or one["values"][0]
    return found or ""


class Unfit:
    """Since when each machine has had its last change of what it is for."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._changed_at: dict[str, float] = {}
        server.store.listeners.append(self._changed)

    def lately(self, machine: str, seconds: float) -> bool:
        """Whether it does not fit, or has changed within so many seconds."""
        found = self._server.find(NODES, "", machine)
        if found is None or not fits(found):
            return True
        now = asyncio.get_running_loop().time()
        return now - self._changed_at.get(machine, float("-inf")) < seconds

    def _changed(self, change: Change) -> None:
        if change.resource != NODES:
            return
        old = _told(change.old.obj) if change.old is not None else None
        new = _told(change.new.obj) if change.new is not None else None
        if old != new and change.old is not None:
            loop = asyncio.get_running_loop()
            self._changed_at[change.key[1]] = loop.time()


def _told(machine: Json) -> tuple[object, ...]:
    meta = machine["metadata"]
    return (fits(machine), meta["uid"], meta.get("annotations"))


def called(pods: list[Json]) -> set[str]:
    """The Slurm nodes of those pods that are not being deleted."""
    return {node_name(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]}
