"""Accounting of a SlurmCluster: slurmdbd, its database, and the registration of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from penstock.api.cluster.embedded_database import DATABASE
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.controllers.cluster.accounting_registration import Registrations, RegistrationTarget
from penstock.controllers.cluster.embedded_database import EmbeddedDatabases
from penstock.controllers.cluster.slurmdbd_delivery import SlurmdbdDelivery
from penstock.controllers.nebius.accounting_files import AccountingFiles
from penstock.controllers.nebius.adoption import Adoption, AdoptionReport
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.key_source import ClusterKeys
from penstock.controllers.nebius.mariadb import OperatedDatabases
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import soonest
from penstock.controllers.runtime.report import Events
from penstock.decide.accounting.registration import REGISTERED
from penstock.decide.accounting.slurmdbd import REACHABLE, waited_in_vain
from penstock.decide.config.conditions import has_worked
from penstock.decide.pod.workload import workload
from penstock.model.image_sources import ImageSources
from penstock.render.nebius import accounting as render
from penstock.render.nebius import accounting_database as render_database
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.config import slurmdbd_conf
from penstock.render.nebius.inputs import ClusterInputs
from penstock.translate.nebius.database import Database, database

_PATH: Final = "spec.slurmNodes.accounting"
_KINDS = ("Deployment", "Service", "Secret")


class ClusterAccounting:
    """That of all SlurmClusters."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._objects = context.objects
        self._secrets = context.secrets
        self._events = events
        self._keys = ClusterKeys(context)
        self._files = AccountingFiles(context)
        self._adoption = Adoption(context, events)
        self._embedded = EmbeddedDatabases(context, events)
        self._operated = OperatedDatabases(context, events)
        self._restarter = PodRestarter(context.client)
        self._delivery = SlurmdbdDelivery(context, SLURM_CLUSTERS, events, render.CONTAINER)
        self._registrations = Registrations(context, SLURM_CLUSTERS, context.connections)

    def outdated(self, obj: SlurmCluster) -> frozenset[str]:
        """Types of conditions that an object without slurmdbd does not have."""
        if self._clusters.has_slurmdbd(obj):
            return frozenset()
        return frozenset({REGISTERED, REACHABLE})

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Soon while an answer of slurmdbd's container, a registration or a kind is waited for."""
        return soonest(
            self._delivery.requeue_after(obj),
            self._registrations.requeue_after(obj),
            self._operated.requeue_after(obj),
        )

    async def reconcile(
        self,
        obj: SlurmCluster,
        cluster: ClusterInputs,
        images: ImageSources,
        report: AdoptionReport,
    ) -> list[Finding]:
        """Make slurmdbd and its database, or remove them; the first finding is about the whole.

        None are returned without accounting. Raises KubeError.
        """
        self._delivery.begin(obj)
        self._operated.begin(obj)
        declared = obj.spec.slurm_nodes.accounting
        own = await self._database(obj, cluster)
        if not self._clusters.has_slurmdbd(obj):
            await self._remove(obj, cluster)
            return own[:1]
        where = database(obj, self._operated.password(obj))
        found = self._files.read(obj, where)
        if isinstance(found, Finding):
            waits = next((one for one in own if not one.ok), None)
            return [waits or found]
        cluster = replace(cluster, clients_key=self._keys.clients_key(obj))
        *files, deployment = render.objects(cluster, found.conf, found.conf_hash)
        inspected = await self._adoption.inspect(obj, deployment, adopted.slurmdbd(cluster))
        report.note(inspected)
        if inspected.keeps_pods:
            # Its pod reads its file when it starts, by the user of its own image.
            files = [one for one in files if one["kind"] != "Secret"]
        await self._objects.apply(obj, self._events, [*files, inspected.apply()])
        pods = self._clusters.pods(obj, render.COMPONENT)
        runs = workload(render.CONTAINER, 1, pods, images)
        if inspected.keeps_pods:
            # The original's slurmdbd has its database, whatever becomes of the objects of it.
            return [runs]
        if not render.has_own_entrypoint(declared) or self._clusters.is_resting(obj):
            return [runs, *own]
        pod = next((one for one in pods if not one.metadata.deleting), None)
        observed = await self._delivery.reconcile(obj, pod, runs, found.conf_hash, _words(where))
        # A database that answers is one, whatever is reported about its object.
        waiting = [] if runs.ok else [one for one in own if not one.ok]
        failing = next((one for one in (*observed, *waiting) if not one.ok), None)
        remarks = [one for one in own if one.ok]
        parts = [one for one in observed if one is not runs]
        return [_part(runs, failing, waiting), *parts, *remarks]

    async def _database(self, obj: SlurmCluster, cluster: ClusterInputs) -> list[Finding]:
        """Make the database that the SlurmCluster declares; findings while it is not ready."""
        declared, name = obj.spec.slurm_nodes.accounting, names.accounting_database(cluster.name)
        if not (declared.enabled and declared.has_embedded):
            if not self._clusters.slurmdbd_in_force(obj) or declared.enabled:
                await self._embedded.remove(obj, name)
            if not (declared.enabled and declared.has_mariadb_operator):
                return []
            found = await self._operated.reconcile(obj, cluster)
            return [found] if found is not None else []
        key = SecretKeySelector(name=names.jwt_secret(cluster.name), key=names.JWT_KEY)
        salt = self._secrets.value(cluster.namespace, key) or b""
        pods = self._clusters.pods(obj, render_database.COMPONENT)
        given, field = render_database.inputs(cluster), f"{_PATH}.embeddedDB"
        return await self._embedded.reconcile(obj, given, field, salt, pods)

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
        if not self._clusters.has_slurmdbd(obj) or workload("slurmctld", 1, pods).ok:
            return []
        serves = any(pod.ready for pod in self._clusters.pods(obj, render.COMPONENT))
        pod = waited_in_vain(pods, serves=serves, now=self._client.clock.time())
        if pod is not None and (persistent or not has_worked(obj.status.conditions)):
            note = f"Recreating pod {pod.metadata.name}: slurmdbd, for which it waited, serves"
            await self._restarter.restart(obj, self._events, pod, note)
        if serves or has_worked(obj.status.conditions):
            return []
        message = "slurmctld waits for slurmdbd at its first start; see AccountingAvailable"
        return [Finding(None, AccountingReason.WAITING, message)]

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
        if not self._clusters.has_slurmdbd(obj):
            return None
        host = f"{names.service(meta.name, render.COMPONENT)}.{meta.namespace}"
        slurmdbd = f"{host}:{slurmdbd_conf.port(declared)}"
        return RegistrationTarget(meta.name, slurmdbd, external=False)


def _part(runs: Finding, failing: Finding | None, waiting: Sequence[Finding]) -> Finding:
    """The finding of slurmdbd as a whole: its pod, its database and its file."""
    if failing is None or not failing.message:
        return runs
    more = [one.message for one in waiting if one is not failing]
    return Finding(failing.ok, failing.reason, "; ".join((failing.message, *more)))


def _words(where: Database) -> str:
    return f"{DATABASE} at {where.host}:{where.port}"
