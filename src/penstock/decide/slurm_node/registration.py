"""Workers that run and have no record in Slurm, and how they get one again.

slurmd registers when it starts, and when slurmctld asks it to. A slurmctld that lost its state asks
nobody, so its workers would stay away until somebody restarts them. Their slurmd is led to register
again, in the pod and with the jobs that it has; see `penstock.slurm.rest.node_registration`.

Where that is not possible, as slurmrestd is older than Slurm 25.11, the pods are replaced; see
`penstock.decide.rollout.cannot_register`.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog.event import Event
from penstock.decide.action import EventReason, RegisterNode, RemoveStandIns
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.model.worker_set import WorkerSet
from penstock.slurm.daemons import SLURMD_PORT
from penstock.slurm.stand_in import stand_ins

STARTS_S = 30.0
"""How long slurmd has to register by itself after its start."""


@dataclass(frozen=True, slots=True)
class Registration:
    """Actions, and seconds until the next worker has had its time to register by itself."""

    actions: tuple[RegisterNode | RemoveStandIns, ...] = ()
    requeue_after: float | None = None
    due: frozenset[Worker] = frozenset()
    """Workers that must register now."""


def registration(view: WorkerSetView, observed: ObservedWorkers) -> Registration:
    """Which workers are to register again: those that run and are not in Slurm's known list.

    Pods that are to go count as well: only a node that Slurm has can be drained and then deleted.
    """
    slurm = observed.slurm
    if view.workers.powered is not None:
        # slurm.conf has their records.
        return Registration()
    if slurm.unknown_reason is not None or observed.deletion.is_orphaned:
        return Registration()
    left = stand_ins(slurm.records)
    actions: list[RegisterNode | RemoveStandIns] = [RemoveStandIns(left)] if left else []
    waits: list[float] = []
    due: list[Worker] = []
    if not observed.aggregates.slurm_nodes <= slurm.records.keys():
        for worker in observed.all:
            wait = _registers_in(worker, view.now)
            if wait == 0:
                due.append(worker)
            elif wait is not None:
                waits.append(wait)
    actions += [_register(view.workers, worker) for worker in due]
    return Registration(tuple(actions), min(waits, default=None), frozenset(due))


def _registers_in(worker: Worker, now: float) -> float | None:
    """Seconds until the worker has to register again; None when it does not have to.

    Slurm's nodes are known.
    """
    if worker.is_terminating or not worker.is_ready or not worker.pod.status.pod_ip:
        return None
    if worker.node is not None or worker.shares_slurm_node:
        return None
    began = worker.slurmd_started_at
    return None if began is None else max(0.0, began + STARTS_S - now)


def _register(workers: WorkerSet, worker: Worker) -> RegisterNode:
    name = worker.slurm_node
    why = EventReason(
        Event.NODE_REGISTERED, f"Node {name} registered again: Slurm had no record of it"
    )
    return RegisterNode(name, worker.pod.status.pod_ip or "", _port(workers.parameters), why)


def _port(extra_conf: str) -> int:
    """Where slurmd listens. Source: slurm.conf(5), NODE CONFIGURATION, Port."""
    for word in extra_conf.split():
        key, _, value = word.strip("'\"").partition("=")
        if key.lower() == "port" and value.isdecimal():
            return int(value)
    return SLURMD_PORT
