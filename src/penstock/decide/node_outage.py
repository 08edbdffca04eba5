"""When a Kubernetes node is taken out of service, rebooted, and brought back.

A condition of the node asks for it: `SlurmNodeReboot`, `SlurmNodeDrain`, or one of a provider's
maintenance; or a SlurmCluster has its machine replaced (`penstock.decide.node_replacement`). The
operator marks and cordons the node, workers are drained and leave
(`penstock.decide.drain.eviction`), and a node to be rebooted is then left to its rebooter. The
order makes each step safe to stop in:

1. The mark is written in one patch with the cordon. It has the boot ID of that moment, so a boot
   since then is the answer to the request, whoever made it.
2. The mark allows the reboot only once no worker is on the node. The rebooter acts once for a boot
   ID: it notes that in an annotation before its command. Both writes name the resourceVersion, so
   either the operator withdraws the mark or the rebooter begins, never both.
3. After the boot the request is answered first, then the mark goes with the cordon. The answer has
   the time of the request, so a condition that stays True is not answered again.

Only the operator's own cordon is removed, and only a Slurm node's drain of the operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from penstock.base import times
from penstock.base.text import list_some
from penstock.model.node_mark import NodeMark, Purpose, Step

SHARE: Final = 0.1
"""Of the Kubernetes nodes with pods of clusters: so many at the same time, at least one."""
OVERDUE_S: Final = 900.0
"""Seconds after which a reboot that has not happened needs a person."""
RETRY_S: Final = 15.0
"""Seconds until a node that waits for another one is requeued."""


def budget(nodes: int, out: int) -> int:
    """How many more of so many Kubernetes nodes may go out while some are."""
    return max(1, math.floor(nodes * SHARE)) - out


@dataclass(frozen=True, slots=True)
class Requests:
    """What conditions of a node ask for.

    `reboot` and `drain` are the time of the condition's last transition, None when nobody asks.
    `drain_reason` is the reason of the condition. `maintenance` is the type of the provider's
    condition; empty without one. `replace` is the SlurmCluster that has the machine replaced.
    """

    reboot: str | None = None
    drain: str | None = None
    drain_reason: str = ""
    maintenance: str = ""
    replace: str = ""


@dataclass(frozen=True, slots=True)
class KubernetesNodeView:
    """One Kubernetes node.

    `workers` are the pods of Slurm workers there. `started` is the boot ID at which the rebooter
    ran its command, `answered` the last request that a reboot answered and the boot ID since.
    """

    name: str
    boot: str
    is_cordoned: bool
    is_ready: bool
    has_rebooter: bool
    workers: tuple[str, ...] = ()
    requests: Requests = Requests()
    mark: NodeMark | None = None
    started: str = ""
    answered: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class WriteMark:
    """Write the mark, and cordon the node."""

    mark: NodeMark
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Set SlurmNodeReboot to False, and note that this request was answered at this boot ID."""

    request: str
    boot: str


@dataclass(frozen=True, slots=True)
class SetDrainReason:
    """Show in the condition SlurmNodeDrain how far the drain is."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Release:
    """Remove the mark, and the cordon if it is the operator's."""

    uncordon: bool
    message: str


NodeStep = WriteMark | Answer | SetDrainReason | Release


class Wait(Enum):
    """Whether a wait ends by itself."""

    LATER = "later"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The next step, if there is one, and what the node waits for. `requeue_after` in seconds."""

    step: NodeStep | None = None
    wait: Wait | None = None
    message: str = ""
    requeue_after: float | None = None


_NOTHING: Final = Outcome()
DRAINING: Final = "NodeDraining"
DRAINED: Final = "NodeDrained"
"""Published reasons of the condition SlurmNodeDrain."""


def next_step(node: KubernetesNodeView, more: int, now: float) -> Outcome:
    """Decide about one node; `more` are the nodes that may go out beside those that are."""
    if node.mark is None:
        return _begin(node, more, now)
    if node.mark.purpose is Purpose.REBOOT:
        return _reboot(node, node.mark, now)
    return _drain(node, node.mark, now)


def _is_answered(node: KubernetesNodeView) -> bool:
    """Whether the request for a reboot is one that a reboot has answered."""
    request, boot = node.answered
    asked = node.requests.reboot
    # A condition without a time is the same one until the next boot.
    return bool(boot) and asked == request and (bool(request) or boot == node.boot)


def _begin(node: KubernetesNodeView, more: int, now: float) -> Outcome:
    asked = node.requests
    if asked.replace:
        return _take_out(node, Purpose.REPLACE, asked.replace, more, now)
    if asked.reboot is not None and _is_answered(node):
        return Outcome(Answer(asked.reboot, node.boot))
    if asked.reboot is not None:
        if blocked := _cannot_reboot(node):
            return _person(blocked)
        return _take_out(node, Purpose.REBOOT, asked.reboot, more, now)
    if asked.drain is not None:
        return _take_out(node, Purpose.DRAIN, asked.drain, more, now)
    if asked.maintenance:
        # The provider's time comes with or without a drain, so no share limits it.
        return _take_out(node, Purpose.MAINTENANCE, asked.maintenance, 1, now)
    return _NOTHING


def _cannot_reboot(node: KubernetesNodeView) -> str:
    if not node.has_rebooter:
        return (
            f"Kubernetes node {node.name} is to be rebooted, and no ready rebooter is on it. "
            "Enable spec.rebooter of a NodeConfigurator for this node"
        )
    if not node.boot:
        return (
            f"Kubernetes node {node.name} is to be rebooted, and its kubelet reports no boot ID. "
            "Reboot it by hand, then set the condition to False"
        )
    return ""


def _take_out(
    node: KubernetesNodeView, purpose: Purpose, request: str, more: int, now: float
) -> Outcome:
    if more <= 0:
        words = (
            f"Kubernetes node {node.name} waits for its {purpose}: the share of others is reached"
        )
        return Outcome(None, Wait.LATER, words, RETRY_S)
    mark = NodeMark(purpose, node.boot, request, times.write(now), cordoned=not node.is_cordoned)
    return Outcome(WriteMark(mark, f"Cordoned Kubernetes node {node.name}: {purpose.reason}"))


def _reboot(node: KubernetesNodeView, mark: NodeMark, now: float) -> Outcome:
    asked = node.requests.reboot
    if node.boot and node.boot != mark.boot:
        if not node.is_ready:
            words = f"Kubernetes node {node.name} has booted and is not Ready yet"
            return Outcome(None, Wait.LATER, words, RETRY_S)
        if asked is not None and node.answered[1] != node.boot:
            return Outcome(Answer(asked, node.boot))
        return _release(node, mark, "was rebooted", now)
    started = node.started == mark.boot
    if started:
        return _booting(node, mark, now)
    if asked is None:
        return _release(node, mark, "is not to be rebooted any more", now)
    if mark.step is Step.REBOOT and node.workers:
        # One that came in spite of the cordon may have a job.
        return _cordon_again(node, mark, now, "workers came back")
    if not node.is_cordoned:
        return _cordon_again(node, mark, now, "it was uncordoned while a reboot is asked for")
    if node.workers:
        return _leaving(node)
    if blocked := _cannot_reboot(node):
        return _person(blocked)
    if mark.step is Step.DRAIN:
        allowed = replace(mark, step=Step.REBOOT, since=times.write(now))
        words = f"No worker is on Kubernetes node {node.name}: its rebooter may reboot it"
        return Outcome(WriteMark(allowed, words))
    return _booting(node, mark, now)


def _booting(node: KubernetesNodeView, mark: NodeMark, now: float) -> Outcome:
    left = OVERDUE_S - (now - (times.parse(mark.since) or now))
    if left > 0:
        return Outcome(requeue_after=left)
    return _person(
        f"Kubernetes node {node.name} has not rebooted for {OVERDUE_S / 60:.0f} minutes. Read the "
        "log of its rebooter, and reboot the node by hand"
    )


def _drain(node: KubernetesNodeView, mark: NodeMark, now: float) -> Outcome:
    asked = node.requests
    if mark.purpose is Purpose.REPLACE:
        return _replaced(node, mark, now)
    if asked.replace:
        mark = replace(mark, purpose=Purpose.REPLACE, request=asked.replace, since=times.write(now))
        return Outcome(WriteMark(mark, f"Kubernetes node {node.name}: {mark.purpose.reason}"))
    if asked.reboot is not None and not _is_answered(node) and not _cannot_reboot(node):
        mark = replace(
            mark,
            purpose=Purpose.REBOOT,
            boot=node.boot,
            request=asked.reboot,
            since=times.write(now),
        )
        words = f"Kubernetes node {node.name}: {Purpose.REBOOT.reason}"
        return Outcome(WriteMark(mark, words))
    wanted = asked.drain is not None if mark.purpose is Purpose.DRAIN else bool(asked.maintenance)
    if not wanted:
        return _release(node, mark, "is not to be drained any more", now)
    if not node.is_cordoned:
        return _cordon_again(node, mark, now, "it was uncordoned while a drain is asked for")
    if mark.purpose is Purpose.DRAIN:
        reason = DRAINING if node.workers else DRAINED
        if asked.drain_reason != reason:
            words = _leaving(node).message if node.workers else "No Slurm worker is on the node"
            return Outcome(SetDrainReason(reason, words))
    return _leaving(node) if node.workers else _NOTHING


def _replaced(node: KubernetesNodeView, mark: NodeMark, now: float) -> Outcome:
    """The node stays out until it is deleted, or its replacement is withdrawn."""
    if not node.requests.replace:
        return _release(node, mark, "is not to be replaced any more", now)
    if not node.is_cordoned:
        return _cordon_again(node, mark, now, "it was uncordoned while its machine is replaced")
    return _leaving(node) if node.workers else _NOTHING


def _cordon_again(node: KubernetesNodeView, mark: NodeMark, now: float, why: str) -> Outcome:
    again = replace(
        mark,
        step=Step.DRAIN,
        since=times.write(now),
        cordoned=mark.cordoned or not node.is_cordoned,
    )
    return Outcome(WriteMark(again, f"Cordoned Kubernetes node {node.name} again: {why}"))


def _release(node: KubernetesNodeView, mark: NodeMark, why: str, now: float) -> Outcome:
    drain, maintenance = node.requests.drain, node.requests.maintenance
    other = Purpose.DRAIN if drain is not None else Purpose.MAINTENANCE if maintenance else None
    if other is not None and other is not mark.purpose:
        # Between two outages no worker may come.
        request = drain or maintenance
        goes_on = NodeMark(other, node.boot, request, times.write(now), mark.cordoned)
        return Outcome(WriteMark(goes_on, f"Kubernetes node {node.name}: {other.reason}"))
    words = f"Kubernetes node {node.name} {why}"
    kept = "" if mark.cordoned or not node.is_cordoned else "; the cordon of a user stays"
    return Outcome(Release(mark.cordoned, f"{words}{kept}"))


def _leaving(node: KubernetesNodeView) -> Outcome:
    words = f"Kubernetes node {node.name} waits for its workers: {list_some(node.workers)}"
    return Outcome(None, Wait.LATER, words)


def _person(message: str) -> Outcome:
    return Outcome(None, Wait.PERSON, message, RETRY_S)
