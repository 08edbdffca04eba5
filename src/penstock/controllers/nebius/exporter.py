"""The exporter of a SlurmCluster, and what Prometheus' operator finds it and slurmctld by.

The cluster runs without it: what keeps an object of it from being written is a condition.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nebius.adoption import Adoption, AdoptionReport
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.reconciler import REFUSED
from penstock.controllers.runtime.report import Events
from penstock.kube import KubeError, NotLeaderError
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.cluster import exporter, metrics_monitor
from penstock.render.nebius.inputs import ClusterInputs

MONITORED = ConditionType.MONITORED
"""Type of the condition while an object of the exporter, or a monitor, cannot be written."""
ABSENT_S = 300.0
"""Seconds until the next check whether the kinds of monitors are installed."""
RETRY_S = 30.0


@dataclass(slots=True)
class _State:
    requeue_s: float | None = None
    is_incomplete: bool = False


class ClusterExporter:
    """That of all SlurmClusters."""

    def __init__(self, context: NebiusContext, adoption: Adoption, events: Events) -> None:
        self._caches = context.caches
        self._objects = context.objects
        self._adoption = adoption
        self._events = events
        self._states = context.states(SLURM_CLUSTERS, _State)

    async def reconcile(
        self, obj: SlurmCluster, cluster: ClusterInputs, report: AdoptionReport, *, may_start: bool
    ) -> list[Finding]:
        """Apply all objects, or remove them; a finding about one that cannot be written.

        A new Deployment waits until the cluster `may_start`.
        """
        state = self._states.of(obj)
        state.requeue_s, state.is_incomplete = None, False
        try:
            await self._apply(obj, cluster, report, may_start=may_start)
            await self._monitors(obj, cluster)
        except NotLeaderError:
            raise
        except KubeError as error:
            state.requeue_s, state.is_incomplete = RETRY_S, True
            message = f"Metrics of the cluster are not complete: {error}"
            ok = False if isinstance(error, REFUSED) else None
            return [
                Finding(
                    ok,
                    ObjectReason.METRICS_INCOMPLETE,
                    message,
                    type=MONITORED,
                    excluded_from_ready=True,
                )
            ]
        return []

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Seconds until a write is repeated, or the kinds are looked for; None for neither."""
        return self._states.of(obj).requeue_s

    def outdated(self, obj: SlurmCluster) -> frozenset[str]:
        """The condition, once all is written."""
        return frozenset() if self._states.of(obj).is_incomplete else frozenset({MONITORED})

    async def _apply(
        self, obj: SlurmCluster, cluster: ClusterInputs, report: AdoptionReport, *, may_start: bool
    ) -> None:
        wanted = exporter.objects(cluster)
        if not wanted:
            for kind, name in exporter.removed(cluster):
                await self._objects.remove(obj, self._events, kind, name)
            return
        *others, deployment = wanted
        if self._objects.live(deployment) is None and not may_start:
            return
        await self._objects.apply(obj, self._events, others)
        found = await self._adoption.inspect(obj, deployment, adopted.exporter(cluster))
        report.note(found)
        await self._objects.apply(obj, self._events, [found.apply()])

    async def _monitors(self, obj: SlurmCluster, cluster: ClusterInputs) -> None:
        """Apply or remove the monitors of slurmctld and of the exporter, where the kinds exist."""
        name = obj.metadata.name
        for kind, absent, wanted, unwanted in (
            (
                "ServiceMonitor",
                self._caches.monitors.absent,
                metrics_monitor.objects(cluster),
                names.controller_monitor(name),
            ),
            (
                "PodMonitor",
                self._caches.pod_monitors.absent,
                exporter.pod_monitor(cluster),
                names.exporter_monitor(name),
            ),
        ):
            await self._monitor(obj, kind, absent, wanted, unwanted)

    async def _monitor(
        self, obj: SlurmCluster, kind: str, absent: str, wanted: list[Json], unwanted: str
    ) -> None:
        if absent:
            if wanted:
                self._states.of(obj).requeue_s = ABSENT_S
        elif wanted:
            await self._objects.apply(obj, self._events, wanted)
        else:
            await self._objects.remove(obj, self._events, kind, unwanted)
