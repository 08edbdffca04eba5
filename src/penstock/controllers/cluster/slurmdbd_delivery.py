"""Delivers a changed slurmdbd.conf to a slurmdbd that runs, and reports on its database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.event import Event
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.accounting import slurmdbd
from penstock.decide.accounting.slurmdbd import REACHABLE, SlurmdbdReport
from penstock.kube import KubeError

LINES = 200
"""Lines of slurmdbd's log that are read: more than one change writes."""
SILENT_S = 90.0
"""Longest wait for an answer of the container; the kubelet alone needs less."""
REFRESH_S = 3.0
"""Until the kubelet is asked to refresh the files; the next time after three times that."""
AGAIN_S = 5.0
"""Between two reads of the log of a slurmdbd that waits for its database."""


@dataclass(slots=True)
class _Delivery:
    """A changed file on its way to the slurmdbd of one pod."""

    uid: str
    wanted: str
    since: float
    refreshed: int = 0
    handed: bool = False
    """Whether slurmdbd started with another file, so that it must take this one over."""


@dataclass(slots=True)
class _State:
    delivery: _Delivery | None = None
    has: tuple[str, str] | None = None
    """The pod's uid and the hash of the file that its slurmdbd runs with, once it is known."""
    requeue_s: float | None = None


class SlurmdbdDelivery:
    """Those of all objects of one resource. `container` is the name of slurmdbd's container."""

    def __init__(
        self, context: Context, resource: Resource[Any], events: Events, container: str
    ) -> None:
        self._client = context.client
        self._restarter = PodRestarter(context.client)
        self._states = context.states(resource, _State)
        self._events = events
        self._container = container

    def begin(self, obj: KubeObject) -> None:
        """Forget the wait of the last reconcile."""
        self._states.of(obj).requeue_s = None

    def requeue_after(self, obj: KubeObject) -> float | None:
        """Seconds until the log is read again; None when no answer is expected."""
        return self._states.of(obj).requeue_s

    async def reconcile(
        self, obj: KubeObject, pod: Pod | None, runs: Finding, wanted: str, database: str
    ) -> list[Finding]:
        """Report on the pod and the database; deliver the file with the hash `wanted`.

        `runs` is about the pod, `database` names the database in messages. Raises KubeError.
        """
        if pod is None or not self._is_running(pod):
            if pod is not None:
                await self._restart_on_change(obj, pod, wanted)
            return [runs, Finding(None, AccountingReason.NOT_RUNNING, type=REACHABLE)]
        return await self._observe(obj, pod, runs, wanted, database)

    async def _observe(
        self, obj: KubeObject, pod: Pod, runs: Finding, wanted: str, database: str
    ) -> list[Finding]:
        """Read the log only while the pod is not ready or its file is not known."""
        state, now_has = self._states.of(obj), (pod.metadata.uid, wanted)
        answers = Finding(True, AccountingReason.DATABASE_ANSWERS, type=REACHABLE)
        if pod.ready and state.has == now_has:
            return [runs, answers]
        report, why = await self._report(pod)
        found = [runs, answers]
        if not pod.ready:
            state.requeue_s = AGAIN_S
            answers = slurmdbd.database(report, database)
            found = [runs, answers] if runs.ok is False else [answers]
        if state.has != now_has:
            found += await self._deliver(obj, pod, wanted, report, why)
        return found

    async def _deliver(
        self, obj: KubeObject, pod: Pod, wanted: str, report: SlurmdbdReport, why: str
    ) -> list[Finding]:
        """Have slurmdbd take over its file; findings while it has not."""
        state, uid, now = self._states.of(obj), pod.metadata.uid, self._client.clock.monotonic()
        delivery = state.delivery
        if delivery is None or (delivery.uid, delivery.wanted) != (uid, wanted):
            delivery = state.delivery = _Delivery(uid, wanted, now)
        waited = now - delivery.since
        if report.effective == wanted or (waited > SILENT_S and not report.effective):
            state.has = (uid, wanted)
            state.delivery = None
            if delivery.handed:
                note = (
                    f"slurmdbd of {pod.metadata.name} has read its "
                    "changed slurmdbd.conf, without a restart"
                )
                self._events.normal(obj, Event.CONFIG_DELIVERED, note, "Configure")
            return []
        if report.rejected == wanted:
            state.requeue_s = AGAIN_S
            message = f"slurmdbd rejects its slurmdbd.conf and keeps the one it has: {report.words}"
            return [Finding(False, ConfigReason.REFUSED, message)]
        state.requeue_s = 0.3 if waited < 4 * REFRESH_S else AGAIN_S
        if not report.effective and waited < REFRESH_S:
            # The container has only just started and reports its first file in a moment.
            return []
        delivery.handed = True
        if (
            not await self._restarter.annotate(pod, wanted)
            and waited >= REFRESH_S * 3**delivery.refreshed
        ):
            delivery.refreshed += 1
            await self._restarter.refresh(pod, f"{wanted[:12]}-{delivery.refreshed}")
        message = "slurmdbd has not read its changed slurmdbd.conf yet"
        return [Finding(None, ConfigReason.DELIVERING, f"{message}: {why}" if why else message)]

    async def _restart_on_change(self, obj: KubeObject, pod: Pod, wanted: str) -> None:
        """Have a slurmdbd that ended on a bad file start at once on the next one."""
        name = self._container
        if not await self._restarter.restart_if_crashed(obj, self._events, pod, name, wanted):
            await self._restarter.annotate(pod, wanted)

    async def _report(self, pod: Pod) -> tuple[SlurmdbdReport, str]:
        try:
            meta = pod.metadata
            log = await self._client.log(meta.namespace, meta.name, self._container, LINES)
        except KubeError as error:
            return SlurmdbdReport(), f"its log cannot be read: {error}"
        return slurmdbd.read(log), ""

    def _is_running(self, pod: Pod) -> bool:
        every = pod.status.container_statuses or ()
        return any(one.name == self._container and one.state.running is not None for one in every)
