"""Reconfigures and restarts that annotations of a cluster's object request."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.cluster import marks
from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.base.times import write
from penstock.controllers.config.source import ConfigSource
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.decide.config.triggers import (
    REJECTED,
    WAITING,
    Daemon,
    TriggerStep,
    TriggerView,
    initial_triggers,
    next_trigger_step,
)
from penstock.decide.config.view import ConfigView
from penstock.decide.pod.workload import workload
from penstock.kube import Client, NotFoundError


class Triggers:
    """Carries out each requested trigger once, and records its result."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._restarter = PodRestarter(client)

    def noted(self, source: ConfigSource, *, worked: bool) -> tuple[Trigger, ...]:
        """Return the triggers of the status; those of a first start count as done."""
        done = source.status.triggers
        if worked:
            return done
        now = write(self._client.clock.time())
        return initial_triggers(source.marks, source.object.metadata.annotations, done, now)

    async def advance(
        self, source: ConfigSource, events: Events, config: ConfigView, *, is_delayed: bool = False
    ) -> TriggerStep:
        """Do the next step, and return the triggers for the status.

        While `is_delayed` none begins: slurmctld's files lack partitions that it has.
        """
        obj, before, pods = source.object, source.status.triggers, source.slurmctld_pods()
        found = next_trigger_step(
            TriggerView(
                source.marks,
                obj.metadata.annotations,
                before,
                [_daemon(pod) for pod in pods],
                config.acks,
                config.has_own_sidecar,
                config.persistent,
                write(self._client.clock.time()),
                is_delayed,
            )
        )
        if found.mark and pods:
            await self._mark(pods[0], found.mark)
        for pod in pods:
            if pod.metadata.uid in found.delete and not pod.metadata.deleting:
                note = f"Recreating pod {pod.metadata.name}: an annotation requests a restart"
                await self._restarter.restart(obj, events, pod, note)
        emit_results(obj, before, events, found)
        return found

    async def _mark(self, pod: Pod, mark: str) -> None:
        meta = pod.metadata
        if meta.deleting or meta.annotations.get(marks.RECONFIGURE) == mark:
            return
        body = {"metadata": {"uid": meta.uid, "annotations": {marks.RECONFIGURE: mark}}}
        try:
            await self._client.patch(PODS, meta.namespace, meta.name, body)
        except NotFoundError:
            return


def emit_results(
    obj: KubeObject, before: Sequence[Trigger], events: Events, found: TriggerStep
) -> None:
    """Emit an event for each trigger that ended since the status `before`."""
    for one in found.status:
        if one in before or one.result == WAITING:
            continue
        note = f"{one.name} {one.value}: {one.message}"
        if one.result == REJECTED:
            events.warning(obj, "TriggerRefused", note, "Trigger")
        else:
            events.normal(obj, "TriggerDone", note, "Trigger")


def _daemon(pod: Pod) -> Daemon:
    serves = not pod.metadata.deleting and bool(workload("slurmctld", 1, [pod]).ok)
    return Daemon(pod.metadata.uid, serves, pod.metadata.annotations)
