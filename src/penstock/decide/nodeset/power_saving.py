"""Workers whose Slurm nodes slurmctld powers up and down: those that are up have a pod.

slurmctld marks a node before it asks for its end, and jobs that get the node afterwards wait for a
boot. So a worker goes by that mark and not by a drain, which would stay on the record without a pod
and keep jobs away from it. Source: Slurm's power saving guide, and slurm.conf(5), SuspendProgram.
"""

from __future__ import annotations

from typing import Final

from penstock.catalog.event import Event
from penstock.decide.action import EventReason, PowerDownNode, UndrainNode
from penstock.decide.drain.recheck import is_going_down
from penstock.decide.observed import drain_reason
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Known

BOOT_S: Final = 60.0
"""How long slurmd has to register after its start, before its pod counts as older than the boot
that slurmctld waits for."""


def power_down(worker: Worker) -> PowerDownNode | None:
    """Have slurmctld power down the node of a worker that goes; None when it does so already."""
    node = worker.node
    if node is None or is_going_down(node):
        return None
    why = f"Powering down {node.name}: it is not in spec.activeNodes"
    return PowerDownNode(node.name, EventReason(Event.SCALE_IN, why))


def undrains(view: WorkerSetView, observed: ObservedWorkers) -> tuple[UndrainNode, ...]:
    """Take back drains of ours of nodes that are powered down: no job would power them up."""
    workers, slurm = view.workers, observed.slurm
    if workers.powered is None or view.deleting or not isinstance(slurm.nodes, Known):
        return ()
    found: list[UndrainNode] = []
    for number in range(workers.power_saved):
        name = workers.names.host(number)
        node = slurm.node(name)
        if node is None or name in observed.aggregates.slurm_nodes or not node.drain:
            continue
        is_down = "POWERED_DOWN" in node.state
        if is_down and drain_reason.is_own_reason(workers.marks, node.reason):
            why = EventReason(Event.UNDRAINED, f"Undrained {name}: its pod is gone")
            found.append(UndrainNode(name, why))
    return tuple(found)


def not_rebooted_in(workers: WorkerSet, worker: Worker, now: float) -> float | None:
    """Seconds until a worker counts as older than the power-up of its node; None when it is not.

    Its pod was to go with the last power-down, and jobs came back before: slurmctld waits for a
    boot that only another pod brings.
    """
    started, node = worker.slurmd_started_at, worker.node
    if workers.powered is None or started is None or node is None or worker.is_terminating:
        return None
    return max(0.0, started + BOOT_S - now) if node.is_powering_up else None
