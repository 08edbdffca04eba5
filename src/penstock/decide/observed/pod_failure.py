"""Why a pod is not ready, as far as Kubernetes reports it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import ContainerStatus, ContainerWaiting, Pod
from penstock.decide.observed import spank_plugin
from penstock.decide.observed.image_pull import REASONS, Pull, advice
from penstock.decide.observed.job_text import printable
from penstock.model.image_sources import ImageSources

CRASH_LOOP = "CrashLoopBackOff"
"""Waiting reason of a container that ended again and again. Source: kubelet."""
BROKEN = frozenset(
    {
        CRASH_LOOP,
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        *REASONS,
    }
)
"""Waiting reasons of a container that seldom pass by themselves. Source: kubelet."""

_LINES = 3
_LETTERS = 400
_STAMP = re.compile(r"^\[\d{4}-\d\d-\d\dT[\d:.]+\] ")
"""Slurm's time before each line of a log: without it the same words are the same message."""
_SUPERVISOR = "penstock: "
_PULL = "ErrImagePull"


@dataclass(frozen=True, slots=True)
class PodFailure:
    """What is wrong with a pod; `needs_action` when somebody will have to act."""

    text: str
    needs_action: bool
    pull: Pull | None = None
    """The image that its Kubernetes node cannot get."""
    plugin: str = ""
    """The plug-in that plugstack.conf requires and the image lacks."""


def pod_failure(pod: Pod) -> PodFailure | None:
    """The failure of a pod that is not ready; None when it may just be starting."""
    name = pod.metadata.name
    if pod.status.phase == "Failed":
        return PodFailure(
            f"{name} failed ({pod.status.reason or 'no reason given'})", needs_action=False
        )
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        why = scheduled.message or scheduled.reason
        return PodFailure(f"{name} has no Kubernetes node: {why}", needs_action=False)
    every = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    for container in every:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in BROKEN:
            reason, message = _pulling(waiting)
            if reason in REASONS and container.image:
                pull = Pull(container.name, container.image, reason, message)
                words = f"{reason}{f' ({pull.cause})' if pull.cause else ''}"
                text = f"{name}: container {container.name} cannot get {pull.image}: {words}"
                return PodFailure(text, needs_action=True, pull=pull)
            said = termination_message(container) or message
            words = f"{reason}{f' ({said})' if said else ''}"
            text = f"{name}: container {container.name} {words}"
            plugin = spank_plugin.missing(_last_output(container))
            return PodFailure(text, needs_action=True, plugin=plugin)
    return None


def next_step(of: ImageSources | None, found: Iterable[PodFailure]) -> str:
    """What to do about an image, as a second sentence of a message.

    The first one that cannot be got comes before one that lacks a plug-in of plugstack.conf.
    """
    every = tuple(found)
    pull = next((one.pull for one in every if one.pull is not None), None)
    if of is not None and pull is not None:
        return f". {advice(of, pull)}"
    plugin = next((one.plugin for one in every if one.plugin), "")
    return f". {spank_plugin.advice(plugin)}" if plugin else ""


def termination_message(container: ContainerStatus) -> str:
    """The end of what a container wrote before it ended, as far as the kubelet kept it."""
    output = _last_output(container)
    if not output:
        return ""
    lines = [printable(_STAMP.sub("", line.strip())) for line in output.split("\n")]
    said = [line for line in lines if line and not line.startswith(_SUPERVISOR)]
    return " / ".join((said or lines)[-_LINES:])[-_LETTERS:]


def _last_output(container: ContainerStatus) -> str:
    for state in (container.state, container.last_state):
        if state.terminated is not None and state.terminated.message:
            return state.terminated.message
    return ""


def _pulling(waiting: ContainerWaiting) -> tuple[str, str]:
    """Reason and message; the same ones whether an image is being pulled again or waited for.

    The kubelet goes to and fro between ErrImagePull and ImagePullBackOff, which repeats the
    message of the former.
    """
    reason, message = waiting.reason or "", waiting.message or ""
    if reason != "ImagePullBackOff":
        return reason, message
    _, found, why = message.partition(f"{_PULL}: ")
    return (_PULL, why) if found else (reason, message)
