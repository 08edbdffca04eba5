"""What the slurmctld inside and the one outside have in common, and the state of a Controller."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.controllers.cluster.accounting_registration import Registrations, RegistrationTarget
from penstock.controllers.cluster.backups import Backups
from penstock.controllers.cluster.metrics_monitor import ServiceMonitors
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.runtime.report import Events
from penstock.decide.config import conditions as config_findings
from penstock.decide.config.triggers import TriggerStep
from penstock.decide.config.view import ConfigStep
from penstock.render.slinky.inputs import ClusterInputs


@dataclass(slots=True)
class ControllerState:
    """What a reconcile decided, for its status and until the next one."""

    decision: ConfigStep | None = None
    rejection: str = ""
    """Why Slurm rejects the declared configuration, while something else is on its way."""
    triggered: TriggerStep | None = None
    has_delayed: bool = False
    """Whether a changed template waits for slurmctld's files."""


class ControllerServices:
    """Parts that each Controller has, wherever its slurmctld is."""

    def __init__(self, context: ClusterContext, events: Events) -> None:
        self.context = context
        self.events = events
        self.monitor = ServiceMonitors(context)
        self.backups = Backups(context, context.connections)
        self.registrations = Registrations(context, CONTROLLERS, context.connections)
        self.states = context.states(CONTROLLERS, ControllerState)


def has_worked(controller: Controller) -> bool:
    """Whether slurmctld of a Controller has worked."""
    return config_findings.has_worked(controller.status.conditions)


def registration_target(
    controller: Controller, cluster: ClusterInputs
) -> RegistrationTarget | None:
    """Where a Controller's cluster must be registered; None without an Accounting."""
    accounting = cluster.accounting
    if accounting is None:
        return None
    slurmdbd = f"{names.accounting_host(accounting)}:{names.accounting_port(accounting)}"
    return RegistrationTarget(names.cluster_name(controller), slurmdbd, controller.spec.external)
