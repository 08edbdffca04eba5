"""slurmctld's pods: what they wait for, and how a changed sssd.conf comes to them."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.controller import Controller
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.slinky.controller_services import ControllerServices, has_worked
from penstock.controllers.slinky.prerequisites import sssd_conf_hash
from penstock.decide.accounting import conditions as accounting
from penstock.decide.pod.workload import workload
from penstock.render.slinky.inputs import ClusterInputs
from penstock.translate.slinky.cluster import accounting_link
from penstock.translate.slinky.image_sources import image_sources


class SlurmctldPods:
    """Those of all Controllers."""

    def __init__(self, services: ControllerServices) -> None:
        context = services.context
        self._client = context.client
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._events = services.events
        self._backups = services.backups
        self._restarter = PodRestarter(context.client)

    async def observe(
        self, obj: Controller, cluster: ClusterInputs
    ) -> tuple[tuple[Pod, ...], Finding, list[Finding]]:
        """Slurmctld's pods, the one that works first; whether all run, and what they wait for."""
        pods = self._clusters.slurmctld_pods(obj)
        runs = workload("slurmctld", obj.spec.replicas, pods, image_sources(obj))
        late = await self._late_slurmdbd(obj, cluster, pods) if not runs.ok else []
        if obj.spec.replicas > 1:
            await self._backups.reconcile(obj, cluster, self._events)
            pods = self._clusters.slurmctld_pods(obj)
            late += [] if runs.ok else await self._backups.check_pvc(obj)
        return pods, runs, late

    async def _late_slurmdbd(
        self, controller: Controller, cluster: ClusterInputs, pods: tuple[Pod, ...]
    ) -> list[Finding]:
        """Findings about slurmdbd; a slurmctld that ended while it waited for it is restarted."""
        found = accounting_link(controller, cluster.accounting)
        if found is None or not found.exists:
            return []
        pod = accounting.in_vain(found, pods, self._client.clock.time())
        if pod is not None and not _has_state_in_pod(controller):
            note = f"Recreating pod {pod.metadata.name}: slurmdbd, for which it waited, is up"
            await self._restarter.restart(controller, self._events, pod, note)
        return accounting.waits(found)

    async def deliver_sssd_conf(self, obj: Controller, pods: tuple[Pod, ...]) -> list[Finding]:
        """Have the kubelet refresh a changed sssd.conf at once; a finding while it is absent."""
        found = sssd_conf_hash(self._secrets, obj.metadata.namespace, obj.spec.sssd_conf_ref)
        if isinstance(found, Finding):
            return [found]
        for pod in pods if found else ():
            await self._restarter.annotate(pod, found, slinky_labels.SSSD_CONF_HASH)
        return []


def _has_state_in_pod(controller: Controller) -> bool:
    """Whether slurmctld has worked and keeps its state, with all jobs, where its pod ends."""
    return has_worked(controller) and not controller.spec.persistent
