"""The ServiceMonitor of a Controller, where the cluster knows such a thing."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.render.slinky.cluster import metrics_monitor as render
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.slurm_conf import has_metrics
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.versions import METRICS_SINCE

MONITORED = "Monitored"
AGAIN_S = 30.0
"""How often it is looked whether the definition came."""


@dataclass(slots=True)
class _State:
    has_no_metrics: bool = False
    """Whether its slurmctld is of a release without metrics."""


class ServiceMonitors:
    """Makes it, and takes it away again."""

    def __init__(self, context: Context) -> None:
        self._objects = context.objects
        self._cache = context.caches.monitors
        self._states = context.states(CONTROLLERS, _State)

    async def apply(
        self, controller: Controller, cluster: ClusterInputs, events: Events
    ) -> list[Finding]:
        """What is to be told of it: a cluster without the definition runs all the same."""
        state = self._states.of(controller)
        state.has_no_metrics = False
        if controller.spec.metrics.enabled and not has_metrics(cluster):
            state.has_no_metrics = True
            told = (
                f"spec.metrics: slurmctld {release.running(cluster)} has no metrics; use an image "
                f"of Slurm {METRICS_SINCE} or later"
            )
            return [Finding(True, "MetricsUnsupported", told, type=MONITORED, inverted=True)]
        if render.requested(controller) is None:
            name = names.controller_monitor(controller)
            await self._objects.remove(controller, events, "ServiceMonitor", name)
            return []
        if why := self._cache.absent:
            told = (
                "spec.metrics.serviceMonitor: there is no ServiceMonitor in this cluster "
                f"({why}). Install the definitions of the Prometheus operator"
            )
            return [Finding(True, "ServiceMonitorUnknown", told, type=MONITORED, inverted=True)]
        await self._objects.apply(controller, events, render.objects(cluster))
        return [Finding(True, "ServiceMonitorMade", type=MONITORED)]

    def requeue_after(self, controller: Controller) -> float | None:
        """Seconds until it is looked again for the definition."""
        waits = render.requested(controller) is not None and self._cache.absent
        return AGAIN_S if waits else None

    def outdated(self, controller: Controller) -> frozenset[str]:
        """The condition goes with the wish."""
        unserved = self._states.of(controller).has_no_metrics
        told = render.requested(controller) is not None or unserved
        return frozenset() if told else frozenset({MONITORED})
