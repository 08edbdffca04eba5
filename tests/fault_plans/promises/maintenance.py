"""The promise that a scheduled update takes no worker before its reservation has begun."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from fault_plans import worker_sets
from fault_plans.daemonset import Unfit, is_daemon, machine_of, of_mode
from penstock.api.kubernetes.meta import Json
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.kubelet.pod_lifecycle import node_name
from penstock.simulation.slurm.cluster import SimulatedSlurm


class ReservedPromises:
    """Notes in `broken` when an update takes a worker before its reservation has begun.

    `stale` are the seconds of the oldest view that anybody may act on.
    """

    def __init__(
        self,
        server: ApiServer,
        slurms: Mapping[str, SimulatedSlurm],
        unfit: Unfit,
        broken: list[str],
        stale: float,
    ) -> None:
        self._stale = stale
        self._unfit = unfit
        self._slurms = slurms
        self._broken = broken
        self._declared: defaultdict[tuple[str, str], list[tuple[float, bool, bool]]] = defaultdict(
            list
        )
        """By NodeSet since when its workers go in a reservation only, and are a DaemonSet's."""
        server.store.listeners.append(self._changed)

    def took(self, space: str, nodeset: Json, pod: Json, shown: float) -> None:
        """The operator has drained a pod's node for an update; `shown` is as of `Budget.took`.

        A pod of the other scaling mode goes at any time, and so does one that is not called as its
        machine.
        """
        history = self._declared[space, nodeset["metadata"]["name"]]
        lately = [one for one in history if one[0] <= shown][-1:]
        lately += [one for one in history if one[0] > shown]
        daemon = bool(of_mode([pod], nodeset)) == is_daemon(nodeset)
        must = all(scheduled and mode == daemon for _, scheduled, mode in lately)
        if daemon and self._unfit.lately(machine_of(pod), self._stale):
            return
        ctld, node = self._slurms[space].ctld, node_name(pod)
        ctld.pass_time()
        if must and node not in ctld.maintained:
            self._broken.append(f"an update took {node}, which is in no reservation that runs")

    def _changed(self, change: Change) -> None:
        if change.resource in worker_sets.RESOURCES and worker_sets.is_set(change.last.obj):
            now = asyncio.get_running_loop().time()
            scheduled = worker_sets.is_scheduled(change.last.obj)
            self._declared[change.key].append((now, scheduled, is_daemon(change.last.obj)))


def missing(slurm: SimulatedSlurm) -> list[str]:
    """Reservations that are left though no update waits for one."""
    slurm.ctld.pass_time()
    return [f"reservation {name} is left" for name in slurm.ctld.reservations]
