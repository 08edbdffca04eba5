"""External slurmctld: slurm.conf for its clients here, and the condition of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.base.times import write
from penstock.controllers.auth.rejected_key import RejectedKeyDetector
from penstock.controllers.auth.worker_log import AGAIN_S
from penstock.controllers.config.triggers import emit_results
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnections
from penstock.decide.accounting import conditions as accounting
from penstock.decide.auth import rejected_key
from penstock.decide.cluster import external as conditions
from penstock.decide.cluster.connectivity import End
from penstock.decide.config.triggers import TriggerStep
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.known import Fact, Unknown
from penstock.translate.slinky.cluster import cluster as translated


@dataclass(slots=True)
class _State:
    waits: bool = False
    """Whether something is wrong whose end no watch reports."""


class ExternalCluster:
    """Applies the objects of a cluster with an external slurmctld, and returns its conditions."""

    def __init__(self, context: SlinkyContext, connections: SlurmConnections) -> None:
        self._client = context.client
        self._objects = context.objects
        self._connections = connections
        self._caches = context.caches
        self._secrets = context.secrets
        self._port_probe = context.port_probe
        self.keys = RejectedKeyDetector(context, CONTROLLERS)
        self._states = context.states(CONTROLLERS, _State)

    def has_answered(self, controller: Controller) -> bool:
        """Return whether slurmctld was queried, or why it cannot be is known."""
        link = self._connections.get(controller.metadata.key)
        return link is not None and link.has_answered

    async def reconcile(
        self, controller: Controller, cluster: ClusterInputs, events: Events
    ) -> list[Finding]:
        """Apply slurm.conf for slurmrestd, and delete objects of a former slurmctld in a pod."""
        await self._objects.apply(controller, events, render.objects(cluster))
        for kind, name in (
            ("StatefulSet", names.controller_workload(controller)),
            ("Service", names.controller_service(controller)),
            ("Service", names.controller_service_alias(controller)),
            ("Service", names.controller_headless_service(controller)),
            ("ConfigMap", names.config_candidate(controller)),
        ):
            await self._objects.remove(controller, events, kind, name)
        link = self._connections.get(controller.metadata.key)
        # Jobs, since the mirror does not accept an answer without any node.
        snapshot = link.mirror.snapshot if link is not None else None
        jobs = snapshot.jobs if snapshot is not None else UNCONNECTED
        pods = self._workers(controller)
        starts = rejected_key.starting(pods)
        rejected = await self.keys.observe(controller, starts)
        if rejected is not None:
            ref = names.slurm_key_ref(controller)
            found = self._secrets.hash(controller.metadata.namespace, ref)
            await self.keys.refresh(pods, found)
        declared = translated(controller, cluster.accounting)
        works = conditions.answers(declared, jobs, await self._way(controller, jobs), rejected)
        self._states.of(controller).waits = not works.ok or starts is not None
        return [
            works,
            *(conditions.unreached(declared, pods, snapshot.nodes) if snapshot is not None else ()),
            *accounting.findings(declared.accounting, has_worked=True),
        ]

    def requeue_after(self, controller: Controller) -> float | None:
        """Return the seconds until the next check while a fault lasts; no watch reports its end."""
        return AGAIN_S if self._states.of(controller).waits else None

    def _workers(self, controller: Controller) -> list[Pod]:
        found: list[Pod] = []
        for nodeset in self._caches.nodesets_of.get(controller.metadata.key):
            found += self._caches.workers_of(nodeset)
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def _way(self, controller: Controller, jobs: Fact[object]) -> End:
        """Return the result of a connection; tried only while slurmctld does not answer."""
        external = controller.spec.external_config
        if external is None or not isinstance(jobs, Unknown) or jobs.denied:
            return End.OPEN
        port = names.slurmctld_port(controller)
        return await self._port_probe.probe(controller.metadata.namespace, external.host, port)

    def triggers(self, controller: Controller, events: Events) -> TriggerStep:
        """Reject reconfigures and restarts that annotations request."""
        before, now = controller.status.triggers, write(self._client.clock.time())
        found = conditions.triggers(controller.metadata.annotations, before, now)
        emit_results(controller, before, events, found)
        return found
