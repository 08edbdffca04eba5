"""Slurm's state of a node as conditions of its pod: `SlurmNodeState<X>`, with the reason.

And why its slurmd fails, from the moment it ended with an error until it is ready.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.cluster.marks import SLURMD_FAILING
from penstock.api.kubernetes.kinds import Pod, PodCondition
from penstock.base import times
from penstock.decide.action import SetPodConditions
from penstock.decide.observed.pod import slurmd_container
from penstock.decide.observed.pod_failure import termination_message
from penstock.decide.observed.worker import Worker
from penstock.model.worker_marks import WorkerMarks
from penstock.slurm.state import Node

BASES = {
    "ALLOCATED": "Allocated",
    "DOWN": "Down",
    "ERROR": "Error",
    "FUTURE": "Future",
    "IDLE": "Idle",
    "MIXED": "Mixed",
    "UNKNOWN": "Unknown",
}
"""The first that applies is shown."""
FLAGS = {
    "COMPLETING": "Completing",
    "DRAIN": "Drain",
    "FAIL": "Fail",
    "INVALID": "Invalid",
    "INVALID_REG": "InvalidReg",
    "MAINTENANCE": "Maintenance",
    "NOT_RESPONDING": "NotResponding",
    "UNDRAIN": "Undrain",
}
"""All that apply are shown."""

MANY_STARTING = 32
"""Pods that start at the same time before the conditions of others wait for them."""
START_S = 30.0
"""Age up to which a pod that is not Ready counts as starting."""
LATER_S = 5.0
"""Pause before the next check whether they still wait."""


def must_wait(workers: Iterable[Worker], now: float) -> bool:
    """Whether so many pods start that conditions, which nobody waits for, are written later.

    A pod's conditions cost the API server as much as its start. A pod that does not become Ready
    counts only for a short time.
    """
    starting = [one for one in workers if not one.is_ready and not one.is_terminating]
    if len(starting) <= MANY_STARTING:
        return False
    oldest = now - START_S
    born = (times.parse(one.pod.metadata.creation_timestamp) for one in starting)
    return sum(1 for when in born if when is not None and when > oldest) > MANY_STARTING


def shown_states(node: Node) -> tuple[str, ...]:
    """The X of each condition that a node's state gives."""
    base = next((shown for state, shown in BASES.items() if state in node.state), None)
    flags = tuple(shown for flag, shown in FLAGS.items() if flag in node.state)
    return ((base,) if base else ()) + flags


def failing(pod: Pod) -> str | None:
    """Why slurmd fails, in one line; None when it does not.

    A slurmd that runs again may end on the same thing once more: until it is ready the last answer
    stays.
    """
    slurmd = slurmd_container(pod)
    if slurmd is None or slurmd.ready:
        return None
    if slurmd.state.running is not None:
        message = pod.condition(SLURMD_FAILING)
        return message.message or "" if message is not None else None
    ended = slurmd.state.terminated or slurmd.last_state.terminated
    if ended is None or ended.exit_code == 0:
        return None
    return termination_message(slurmd) or f"slurmd ended with status {ended.exit_code}"


def conditions_action(marks: WorkerMarks, worker: Worker, now: float) -> SetPodConditions | None:
    """What must change, None for nothing. While Slurm is silent its last word stays."""
    wanted: dict[str, str] = {}
    pod, node = worker.pod, worker.node
    if worker.is_slurm_known:
        for shown in shown_states(node) if node else ():
            # An empty message is sent, not left out: a strategic merge would keep the old one.
            wanted[f"{marks.state_prefix}{shown}"] = node.reason if node else ""
    if not worker.is_ready and (why := failing(pod)) is not None:
        wanted[SLURMD_FAILING] = why
    have = {
        condition.type: condition
        for condition in pod.status.conditions or ()
        if condition.type == SLURMD_FAILING
        or (worker.is_slurm_known and condition.type.startswith(marks.state_prefix))
    }
    changed: list[PodCondition] = []
    for type_, message in wanted.items():
        old = have.pop(type_, None)
        if old is not None and old.status == "True":
            if (old.message or "") == message:
                continue
            since = old.last_transition_time
        else:
            since = times.write(now)
        changed.append(
            PodCondition(type=type_, status="True", message=message, last_transition_time=since)
        )
    if not changed and not have:
        return None
    meta = pod.metadata
    return SetPodConditions(meta.name, meta.uid, tuple(changed), remove=tuple(sorted(have)))
