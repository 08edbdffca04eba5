"""Reads what sidecars of workers report of their roots, and compares it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.controllers.runtime.reconciler import Context
from penstock.decide.jail import roots
from penstock.decide.observed.pod import slurmd_container
from penstock.kube import KubeError
from penstock.model.root_report import CONTAINER, RootReport

AGAIN_S: Final = 30.0
"""Seconds between two reads of a worker's log, for up to MOST_AT_ONCE workers."""
FIRST_S: Final = 5.0
"""The same until there is a first report."""
MOST_AT_ONCE: Final = 50
"""Logs that one reconcile reads: of more workers each is read less often."""
_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class _Read:
    """The last report of a pod, and when its log was read (monotonic seconds)."""

    at: float
    report: RootReport | None


@dataclass(slots=True)
class _State:
    reads: dict[str, _Read] = field(default_factory=dict[str, _Read])
    """By the uid of the pod."""


class WorkerRoots:
    """Those of all objects of a resource."""

    def __init__(self, context: Context, resource: Resource[Any]) -> None:
        self._client = context.client
        self._states = context.states(resource, _State)

    async def findings(self, obj: KubeObject, pods: Sequence[Pod]) -> list[Finding]:
        """The condition; none while no worker runs."""
        running, state = _running(pods), self._states.of(obj)
        now = self._client.clock.monotonic()
        state.reads = {uid: read for uid in map(_uid, running) if (read := state.reads.get(uid))}
        due = sorted(
            (pod for pod in running if self._wait(state, pod, len(running), now) <= 0),
            key=lambda pod: state.reads[_uid(pod)].at if _uid(pod) in state.reads else 0.0,
        )[:MOST_AT_ONCE]
        found = await asyncio.gather(*(self._read(pod) for pod in due))
        for pod, report in zip(due, found, strict=True):
            before = state.reads.get(_uid(pod))
            # A kubelet that does not answer changes nothing about the root.
            kept = before.report if before is not None else None
            state.reads[_uid(pod)] = _Read(now, report if report is not None else kept)
        if not running:
            return []
        reads = ((pod.metadata.name, state.reads.get(_uid(pod))) for pod in running)
        return [roots.finding({name: read.report if read else None for name, read in reads})]

    def outdated(self, obj: KubeObject) -> frozenset[str]:
        """The type of the condition while no worker runs."""
        return frozenset() if self._states.of(obj).reads else frozenset({roots.ROOTS_EQUAL})

    def requeue_after(self, obj: KubeObject, pods: Sequence[Pod]) -> float | None:
        """Seconds until a log is to be read; None while no worker runs."""
        running, state = _running(pods), self._states.of(obj)
        now = self._client.clock.monotonic()
        waits = [self._wait(state, pod, len(running), now) for pod in running]
        return max(min(waits), 1.0) if waits else None

    def _wait(self, state: _State, pod: Pod, count: int, now: float) -> float:
        read = state.reads.get(_uid(pod))
        if read is None:
            return 0.0
        again = AGAIN_S * max(1.0, count / MOST_AT_ONCE) if read.report is not None else FIRST_S
        return read.at + again - now

    async def _read(self, pod: Pod) -> RootReport | None:
        meta = pod.metadata
        try:
            log = await self._client.log(meta.namespace, meta.name, CONTAINER, _LINES)
        except KubeError:
            return None
        return roots.parse(log)


def _uid(pod: Pod) -> str:
    return pod.metadata.uid


def _running(pods: Sequence[Pod]) -> list[Pod]:
    """Workers whose slurmd runs, so that their sidecar has reported."""
    found: list[Pod] = []
    for pod in pods:
        slurmd = slurmd_container(pod)
        if not pod.metadata.deleting and slurmd is not None and slurmd.state.running is not None:
            found.append(pod)
    return found
