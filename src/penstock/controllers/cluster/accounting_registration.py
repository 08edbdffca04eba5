"""Has slurmctld register with a slurmdbd that does not have its cluster, by a reconfigure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.event import Event
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.decide.accounting import registration
from penstock.decide.accounting.registration import RegistrationView
from penstock.slurm.known import Unknown
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.rest.errors import SlurmError


@dataclass(frozen=True, slots=True)
class RegistrationTarget:
    """Slurm's name of a cluster, its slurmdbd (`host:port`), and whether slurmctld is external."""

    cluster: str
    slurmdbd: str
    external: bool


@dataclass(slots=True)
class _Attempts:
    """The reconfigures for one slurmdbd."""

    slurmdbd: str
    count: int = 0
    at: float = float("-inf")


@dataclass(slots=True)
class _State:
    attempts: _Attempts | None = None
    view: RegistrationView | None = None


class Registrations:
    """The registrations of all clusters that objects of one resource declare."""

    def __init__(
        self, context: Context, resource: Resource[Any], connections: SlurmConnections
    ) -> None:
        self._clock = context.client.clock
        self._connections = connections
        self._states = context.states(resource, _State)

    async def reconcile(
        self, obj: KubeObject, target: RegistrationTarget | None, events: Events, *, settled: bool
    ) -> list[Finding]:
        """Poll slurmdbd, reconfigure slurmctld where it must register, and report.

        `settled` means that slurmctld serves with the configuration that names this slurmdbd. There
        is no `target` without one.
        """
        state, link = self._states.of(obj), self._connections.get(obj.metadata.key)
        if link is None or target is None:
            state.view = state.attempts = None
            if link is not None:
                link.registration.need("", "")
            return []
        link.registration.need(target.cluster, target.slurmdbd)
        view = self._view(obj, link, target, settled=settled)
        if registration.registers_again(view, self._clock.monotonic()):
            await self._reconfigure(obj, link, events, view)
            view = self._view(obj, link, target, settled=settled)
        state.view = view
        if view.registration == Unknown(NOT_ASKED):
            # A process that has just started would report that nothing is known, and take it back.
            return []
        return [registration.finding(view), *registration.ready(view)]

    def requeue_after(self, obj: KubeObject) -> float | None:
        """Seconds until the next reconfigure is due; None when none is."""
        view = self._states.of(obj).view
        if view is None:
            return None
        return registration.requeue_after(view, self._clock.monotonic())

    def _view(
        self, obj: KubeObject, link: SlurmConnection, target: RegistrationTarget, *, settled: bool
    ) -> RegistrationView:
        state = self._states.of(obj)
        found, tried = link.registration.registration, state.attempts
        if tried is None or tried.slurmdbd != target.slurmdbd:
            tried = state.attempts = _Attempts(target.slurmdbd)
        if registration.is_registered(found):
            tried.count = 0
        return RegistrationView(
            cluster=target.cluster,
            slurmdbd=target.slurmdbd,
            registration=found,
            settled=settled,
            attempts=tried.count,
            attempted_at=tried.at,
            external=target.external,
        )

    async def _reconfigure(
        self, obj: KubeObject, link: SlurmConnection, events: Events, view: RegistrationView
    ) -> None:
        if (tried := self._states.of(obj).attempts) is not None:
            tried.count, tried.at = tried.count + 1, self._clock.monotonic()
        if link.client is None:
            return
        try:
            await link.client.reconfigure()
        except SlurmError as error:
            message = f"slurmctld was not reconfigured, which registers it with slurmdbd: {error}"
            events.warning(obj, Event.REGISTRATION_FAILED, message, "Reconfigure")
            return
        where = f"slurmdbd at {view.slurmdbd}"
        message = f"Reconfigured slurmctld: {where} does not have cluster {view.cluster} registered"
        events.normal(obj, Event.REGISTERING, message, "Reconfigure")
        link.registration.poll_soon()
