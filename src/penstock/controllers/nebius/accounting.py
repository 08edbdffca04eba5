"""Accounting of a SlurmCluster: slurmdbd, its database, and the registration of the cluster."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.accounting import has_slurmdbd
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.cluster.accounting_registration import Registrations, RegistrationTarget
from penstock.controllers.cluster.slurmdbd_delivery import SlurmdbdDelivery
from penstock.controllers.nebius.accounting_files import AccountingFiles
from penstock.controllers.nebius.adoption import Adoption, AdoptionReport
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import soonest
from penstock.controllers.runtime.report import Events
from penstock.decide.accounting.registration import REGISTERED
from penstock.decide.accounting.slurmdbd import REACHABLE, waited_in_vain
from penstock.decide.config.conditions import has_worked
from penstock.decide.pod.workload import workload
from penstock.model.image_sources import ImageSources
from penstock.render.nebius import accounting as render
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.config import slurmdbd_conf
from penstock.render.nebius.inputs import ClusterInputs

_KINDS = ("Deployment", "Service", "Secret")


class ClusterAccounting:
    """That of all SlurmClusters."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._objects = context.objects
        self._events = events
        self._files = AccountingFiles(context)
        self._adoption = Adoption(context, events)
        self._restarter = PodRestarter(context.client)
        self._delivery = SlurmdbdDelivery(context, SLURM_CLUSTERS, events, render.CONTAINER)
        self._registrations = Registrations(context, SLURM_CLUSTERS, context.connections)

    def outdated(self, obj: SlurmCluster) -> frozenset[str]:
        """Types of conditions that an object without slurmdbd does not have."""
        if has_slurmdbd(obj.spec.slurm_nodes.accounting):
            return frozenset()
        return frozenset({REGISTERED, REACHABLE})

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Soon while an answer of slurmdbd's container or a registration is waited for."""
        return soonest(self._delivery.requeue_after(obj), self._registrations.requeue_after(obj))

    async def reconcile(
        self,
        obj: SlurmCluster,
        cluster: ClusterInputs,
        images: ImageSources,
        report: AdoptionReport,
    ) -> list[Finding]:
        """Make slurmdbd, or remove it; the first finding is about the part as a whole.

        None are returned without accounting. Raises KubeError.
        """
        self._delivery.begin(obj)
        declared = obj.spec.slurm_nodes.accounting
        if not has_slurmdbd(declared):
            if declared.enabled and await self._is_left(obj, cluster):
                # That of the original, with a database of mariadb-operator, as long as it is used.
                pods = self._clusters.pods(obj, render.COMPONENT)
                report.kept.append(f"{cluster.prefix}{render.COMPONENT}")
                return [workload(render.CONTAINER, 1, pods, images)]
            await self._remove(obj, cluster)
            return [_without_database()] if declared.enabled else []
        found = self._files.read(obj)
        if isinstance(found, Finding):
            return [found]
        *files, deployment = render.objects(cluster, found.conf, found.conf_hash)
        inspected = await self._adoption.inspect(obj, deployment, adopted.slurmdbd(cluster))
        report.note(inspected)
        if inspected.keeps_pods:
            # Its pod reads its file when it starts, by the user of its own image.
            files = [one for one in files if one["kind"] != "Secret"]
        await self._objects.apply(obj, self._events, [*files, inspected.apply()])
        if inspected.keeps_pods:
            pods = self._clusters.pods(obj, render.COMPONENT)
            return [workload(render.CONTAINER, 1, pods, images)]
        pods = self._clusters.pods(obj, render.COMPONENT)
        runs = workload(render.CONTAINER, 1, pods, images)
        if not render.has_own_entrypoint(declared) or self._clusters.is_resting(obj):
            return [runs]
        pod = next((one for one in pods if not one.metadata.deleting), None)
        observed = await self._delivery.reconcile(obj, pod, runs, found.conf_hash, _database(obj))
        failing = next((one for one in observed if not one.ok), None)
        parts = [one for one in observed if one is not runs]
        return [_part(runs, failing), *parts]

    async def registration(self, obj: SlurmCluster, *, settled: bool) -> list[Finding]:
        """Have the cluster registered; `settled` as in `Registrations.reconcile`."""
        return await self._registrations.reconcile(
            obj, self._target(obj), self._events, settled=settled
        )

    async def release_slurmctld(
        self, obj: SlurmCluster, pods: tuple[Pod, ...], *, persistent: bool
    ) -> list[Finding]:
        """Restart a slurmctld that ended while it waited for slurmdbd; why one waits.

        `persistent` is whether slurmctld's state outlives its pod. Raises KubeError.
        """
        declared = obj.spec.slurm_nodes.accounting
        if not has_slurmdbd(declared) or workload("slurmctld", 1, pods).ok:
            return []
        serves = any(pod.ready for pod in self._clusters.pods(obj, render.COMPONENT))
        pod = waited_in_vain(pods, serves=serves, now=self._client.clock.time())
        if pod is not None and (persistent or not has_worked(obj.status.conditions)):
            note = f"Recreating pod {pod.metadata.name}: slurmdbd, for which it waited, serves"
            await self._restarter.restart(obj, self._events, pod, note)
        if serves or has_worked(obj.status.conditions):
            return []
        message = "slurmctld waits for slurmdbd at its first start; see AccountingAvailable"
        return [Finding(None, "WaitingForAccounting", message)]

    async def _is_left(self, obj: SlurmCluster, cluster: ClusterInputs) -> bool:
        """Whether slurmctld writes to a slurmdbd that the original made."""
        if not self._clusters.slurmdbd_in_force(obj):
            return False
        name, space = f"{cluster.prefix}{render.COMPONENT}", obj.metadata.namespace
        manifest: Json = {"kind": "Deployment", "metadata": {"namespace": space, "name": name}}
        found = await self._adoption.inspect(obj, manifest, adopted.slurmdbd(cluster))
        return found.is_foreign

    async def _remove(self, obj: SlurmCluster, cluster: ClusterInputs) -> None:
        """Remove what ran for accounting, once slurmctld's files do not name it any more."""
        if self._clusters.slurmdbd_in_force(obj):
            return
        by_kind = (
            f"{cluster.prefix}{render.COMPONENT}",
            names.service(cluster.name, render.COMPONENT),
            names.slurmdbd_configs(cluster.name),
        )
        for kind, name in zip(_KINDS, by_kind, strict=True):
            await self._objects.remove(obj, self._events, kind, name)

    def _target(self, obj: SlurmCluster) -> RegistrationTarget | None:
        declared, meta = obj.spec.slurm_nodes.accounting, obj.metadata
        if not has_slurmdbd(declared):
            return None
        host = f"{names.service(meta.name, render.COMPONENT)}.{meta.namespace}"
        slurmdbd = f"{host}:{slurmdbd_conf.port(declared)}"
        return RegistrationTarget(meta.name, slurmdbd, external=False)


def _part(runs: Finding, failing: Finding | None) -> Finding:
    """The finding of slurmdbd as a whole: its pod, its database and its file."""
    if failing is None or not failing.message:
        return runs
    return Finding(failing.ok, failing.reason, failing.message)


def _database(obj: SlurmCluster) -> str:
    found = obj.spec.slurm_nodes.accounting.external_db
    return f"{slurmdbd_conf.DATABASE} at {found.host}:{found.port}"


def _without_database() -> Finding:
    return Finding(
        False,
        "DatabaseNotServed",
        "spec.slurmNodes.accounting.mariadbOperator is not served, so jobs run without records. "
        "Enable externalDB with the address of a MariaDB or MySQL",
    )
