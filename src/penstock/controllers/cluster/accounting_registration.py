"""Has slurmctld register with a slurmdbd that does not have its cluster, by a reconfigure."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.decide.accounting import registration
from penstock.decide.accounting.registration import RegistrationView
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.known import Unknown
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.rest.errors import SlurmError


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
    """The registrations of all clusters."""

    def __init__(self, context: Context, connections: SlurmConnections) -> None:
        self._clock = context.client.clock
        self._connections = connections
        self._states = context.states(CONTROLLERS, _State)

    async def reconcile(
        self, controller: Controller, cluster: ClusterInputs, events: Events, *, settled: bool
    ) -> list[Finding]:
        """Poll slurmdbd, reconfigure slurmctld where it must register, and report.

        `settled` says that slurmctld serves with the configuration that names this Accounting.
        """
        state = self._states.of(controller)
        link, accounting = self._connections.get(controller.metadata.key), cluster.accounting
        if link is None or accounting is None:
            state.view = state.attempts = None
            if link is not None:
                link.registration.need("", "")
            return []
        name = names.cluster_name(controller)
        where = f"{names.accounting_host(accounting)}:{names.accounting_port(accounting)}"
        link.registration.need(name, where)
        view = self._view(controller, link, name, where, settled=settled)
        if registration.registers_again(view, self._clock.monotonic()):
            await self._reconfigure(controller, link, events, view)
            view = self._view(controller, link, name, where, settled=settled)
        state.view = view
        if view.registration == Unknown(NOT_ASKED):
            # A process that has just started would report that nothing is known, and take it back.
            return []
        return [registration.finding(view), *registration.ready(view)]

    def requeue_after(self, controller: Controller) -> float | None:
        """Seconds until the next reconfigure is due; None when none is."""
        view = self._states.of(controller).view
        if view is None:
            return None
        return registration.requeue_after(view, self._clock.monotonic())

    def outdated(self, controller: Controller) -> frozenset[str]:
        """The condition's type, where the Controller names no Accounting any more."""
        return _TYPES if controller.spec.accounting_ref is None else frozenset[str]()

    def _view(
        self, controller: Controller, link: SlurmConnection, name: str, where: str, *, settled: bool
    ) -> RegistrationView:
        state = self._states.of(controller)
        found, tried = link.registration.registration, state.attempts
        if tried is None or tried.slurmdbd != where:
            tried = state.attempts = _Attempts(where)
        if registration.is_registered(found):
            tried.count = 0
        return RegistrationView(
            cluster=name,
            slurmdbd=where,
            registration=found,
            settled=settled,
            attempts=tried.count,
            attempted_at=tried.at,
            external=controller.spec.external,
        )

    async def _reconfigure(
        self, controller: Controller, link: SlurmConnection, events: Events, view: RegistrationView
    ) -> None:
        if (tried := self._states.of(controller).attempts) is not None:
            tried.count, tried.at = tried.count + 1, self._clock.monotonic()
        if link.client is None:
            return
        try:
            await link.client.reconfigure()
        except SlurmError as error:
            told = f"slurmctld was not reconfigured, which registers it with slurmdbd: {error}"
            events.warning(controller, "RegistrationFailed", told, "Reconfigure")
            return
        where = f"slurmdbd at {view.slurmdbd}"
        told = f"Reconfigured slurmctld: {where} does not have cluster {view.cluster} registered"
        events.normal(controller, "Registering", told, "Reconfigure")
        link.registration.poll_soon()


_TYPES = frozenset({registration.REGISTERED})
