"""A Controller whose slurmctld is external: what is made here for it, and its status."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.slinky.controller import Controller, ControllerStatus
from penstock.controllers.cluster.external import ExternalCluster
from penstock.controllers.runtime.reconciler import soonest
from penstock.controllers.slinky.controller_services import ControllerServices, registration_target
from penstock.render.slinky.inputs import ClusterInputs


class ExternalSlurmctld:
    """Those of all Controllers."""

    def __init__(self, services: ControllerServices) -> None:
        self._events = services.events
        self._cluster = ExternalCluster(services.context, services.context.connections)
        self._monitor = services.monitor
        self._backups = services.backups
        self._registrations = services.registrations
        self._states = services.states

    def has_answered(self, obj: Controller) -> bool:
        """Whether this process has queried that slurmctld, or knows why it cannot."""
        return self._cluster.has_answered(obj)

    async def reconcile(self, obj: Controller, cluster: ClusterInputs) -> list[Finding]:
        """Keep what its clients need, and remove what a slurmctld inside needed before."""
        self._states.of(obj).triggered = self._cluster.triggers(obj, self._events)
        findings = await self._cluster.reconcile(obj, cluster, self._events)
        slurmdbd, serves = registration_target(obj, cluster), bool(findings[0].ok)
        findings += await self._registrations.reconcile(obj, slurmdbd, self._events, settled=serves)
        await self._backups.retire(obj, self._events)
        return findings + await self._monitor.apply(obj, cluster, self._events)

    def requeue_after(self, obj: Controller) -> float | None:
        """Seconds until something is compared again that no watch reports."""
        return soonest(
            self._cluster.requeue_after(obj),
            self._monitor.requeue_after(obj),
            self._registrations.requeue_after(obj),
        )

    def status(self, obj: Controller, wanted: str) -> ControllerStatus:
        """The hash of the wanted configuration only: its slurmctld reports none."""
        triggered = self._states.of(obj).triggered
        done = triggered.status if triggered is not None else obj.status.triggers
        return ControllerStatus(config_hash=wanted, triggers=done)
