"""ServiceMonitor of a Controller, if the Kubernetes cluster has that kind."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.render.slinky.cluster import metrics_monitor as render
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.slurm_conf import has_metrics
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.versions import METRICS_SINCE

MONITORED = ConditionType.MONITORED
AGAIN_S = 30.0
"""Seconds until the next check whether the CRD exists."""


@dataclass(slots=True)
class _State:
    has_no_metrics: bool = False
    """Whether its slurmctld is of a release without metrics."""


class ServiceMonitors:
    """Applies and deletes ServiceMonitors."""

    def __init__(self, context: Context) -> None:
        self._objects = context.objects
        self._cache = context.caches.monitors
        self._states = context.states(CONTROLLERS, _State)

    async def apply(
        self, controller: Controller, cluster: ClusterInputs, events: Events
    ) -> list[Finding]:
        """Apply or delete the ServiceMonitor, and return its condition; Ready ignores it."""
        state = self._states.of(controller)
        state.has_no_metrics = False
        if controller.spec.metrics.enabled and not has_metrics(cluster):
            state.has_no_metrics = True
            message = (
                f"spec.metrics: slurmctld {release.running(cluster)} has no metrics; use an image "
                f"of Slurm {METRICS_SINCE} or later"
            )
            return [
                Finding(
                    True, ObjectReason.METRICS_UNSUPPORTED, message, type=MONITORED, inverted=True
                )
            ]
        if render.requested(controller) is None:
            name = names.controller_monitor(controller)
            await self._objects.remove(controller, events, "ServiceMonitor", name)
            return []
        if why := self._cache.absent:
            message = (
                "spec.metrics.serviceMonitor: there is no ServiceMonitor in this cluster "
                f"({why}). Install the definitions of the Prometheus operator"
            )
            return [
                Finding(
                    True,
                    ObjectReason.SERVICE_MONITOR_UNKNOWN,
                    message,
                    type=MONITORED,
                    inverted=True,
                )
            ]
        await self._objects.apply(controller, events, render.objects(cluster))
        return [Finding(True, ObjectReason.SERVICE_MONITOR_MADE, type=MONITORED)]

    def requeue_after(self, controller: Controller) -> float | None:
        """Return the seconds until the next check for the CRD; None when none is needed."""
        waits = render.requested(controller) is not None and self._cache.absent
        return AGAIN_S if waits else None

    def outdated(self, controller: Controller) -> frozenset[str]:
        """Return the condition to remove once spec does not request a ServiceMonitor."""
        unserved = self._states.of(controller).has_no_metrics
        applies = render.requested(controller) is not None or unserved
        return frozenset() if applies else frozenset({MONITORED})
