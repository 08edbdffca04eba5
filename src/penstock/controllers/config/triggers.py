"""Reconfigures and restarts that annotations of a Controller ask for."""

from __future__ import annotations

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.slinky.controller import Controller
from penstock.base.times import write
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.decide.config.transaction import ConfigView
from penstock.decide.config.triggers import (
    REJECTED,
    WAITING,
    Daemon,
    TriggerStep,
    TriggerView,
    next_trigger_step,
)
from penstock.decide.pod.workload import workload
from penstock.kube import NotFoundError
from penstock.translate.slinky.cluster import MARKS


class Triggers:
    """Does what is asked for once, and says what came of it."""

    def __init__(self, context: SlinkyContext) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._restarter = PodRestarter(context.client)

    async def advance(
        self, controller: Controller, events: Events, config: ConfigView
    ) -> TriggerStep:
        """The next step; what it has to tell is to be written to the status."""
        pods = self._clusters.slurmctld_pods(controller)
        found = next_trigger_step(
            TriggerView(
                MARKS,
                controller.metadata.annotations,
                controller.status.triggers,
                [_daemon(pod) for pod in pods],
                config.acks,
                config.has_own_sidecar,
                config.persistent,
                write(self._client.clock.time()),
            )
        )
        if found.mark and pods:
            await self._mark(pods[0], found.mark)
        for pod in pods:
            if pod.metadata.uid in found.delete and not pod.metadata.deleting:
                note = f"{pod.metadata.name} is made anew: a restart was asked for by an annotation"
                await self._restarter.restart(controller, events, pod, note)
        tell(controller, events, found)
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


def tell(controller: Controller, events: Events, found: TriggerStep) -> None:
    """An event for each that is over now and was not before."""
    before = controller.status.triggers
    for one in found.status:
        if one in before or one.result == WAITING:
            continue
        note = f"{one.name} {one.value}: {one.message}"
        if one.result == REJECTED:
            events.warning(controller, "TriggerRefused", note, "Trigger")
        else:
            events.normal(controller, "TriggerDone", note, "Trigger")


def _daemon(pod: Pod) -> Daemon:
    serves = not pod.metadata.deleting and bool(workload("slurmctld", 1, [pod]).ok)
    return Daemon(pod.metadata.uid, serves, pod.metadata.annotations)
