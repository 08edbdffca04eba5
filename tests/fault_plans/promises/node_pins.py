"""The promise that a pinned worker returns to its machine."""

from __future__ import annotations

from fault_plans.daemonset import fits, is_daemon, of_mode, workers
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.kubelet import NODES

NODESETS = "slinky.slurm.net/nodesets"
Place = tuple[str, str, str]
"""Namespace and name of a NodeSet, and an ordinal."""


class PinPromises:
    """Notes in `broken` when a pod runs elsewhere than its ordinal is known to belong.

    It belongs where a pod of it ran and the status has said so since: what nobody could note down
    in time is nobody's promise. It is forgotten when the machine is gone or does not fit, and with
    the pin.
    """

    def __init__(self, server: ApiServer, broken: list[str]) -> None:
        self._server = server
        self._broken = broken
        self._known: dict[Place, str] = {}
        server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        match change.resource:
            case "slinky.slurm.net/nodesets":
                self._nodeset(change)
            case "/nodes":
                if change.new is None or not fits(change.new.obj):
                    self._forget(change.key[1])
            case "/pods" if change.new is not None:
                old = change.old.obj if change.old is not None else None
                self._pod(change.new.obj, old)
            case _:
                pass

    def _nodeset(self, change: Change) -> None:
        nodeset = change.last.obj
        if change.new is None or not pinned(nodeset):
            for place in [one for one in self._known if one[:2] == change.key]:
                del self._known[place]
            return
        machines: dict[str, str] = nodeset.get("status", {}).get("ordinalToNode") or {}
        runs = running(self._server, nodeset)
        for ordinal, machine in machines.items():
            place = (*change.key, ordinal)
            found = self._server.find(NODES, "", machine)
            if place not in self._known and runs.get(ordinal) == machine and found and fits(found):
                self._known[place] = machine

    def _forget(self, machine: str) -> None:
        for place in [one for one, name in self._known.items() if name == machine]:
            del self._known[place]

    def _pod(self, pod: Json, old: Json | None) -> None:
        machine = pod["spec"].get("nodeName")
        if not machine or (old is not None and old["spec"].get("nodeName")):
            return
        meta = pod["metadata"]
        for one in meta.get("ownerReferences", ()):
            place = (meta["namespace"], one["name"], meta["name"].rpartition("-")[2])
            if one["kind"] == "NodeSet" and self._known.get(place, machine) != machine:
                told = f"pod {meta['name']} runs on {machine}, not on {self._known[place]}"
                self._broken.append(told)


def pinned(nodeset: Json) -> bool:
    """Whether its workers return to their machines."""
    return bool(nodeset["spec"].get("pinToNode")) and not is_daemon(nodeset)


def running(server: ApiServer, nodeset: Json) -> dict[str, str]:
    """Machines of the workers that run, by ordinal."""
    pods = of_mode(workers(server, nodeset), nodeset)
    return {
        pod["metadata"]["name"].rpartition("-")[2]: pod["spec"]["nodeName"]
        for pod in pods
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") == "Running"
    }


def missing(server: ApiServer, nodeset: Json) -> list[str]:
    """Workers of which the status does not say where they run."""
    if not pinned(nodeset):
        return []
    told: dict[str, str] = nodeset.get("status", {}).get("ordinalToNode") or {}
    runs = running(server, nodeset)
    if runs.items() <= told.items():
        return []
    return [f"ordinals run on {runs}, and the status says {told}"]
