"""SlurmCluster: the jail, keys, configuration, daemons, logins and own workers of one cluster."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_MONITORS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    Node,
    Pod,
)
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius import names
from penstock.api.nebius.active_check import ACTIVE_CHECKS
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.mariadb_objects import GRANTS, MARIADBS
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.restore import RESTORES
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.auth.key_rotation import KeyRotation
from penstock.controllers.auth.munge_rotation import MungeRotation
from penstock.controllers.cluster import claim_templates
from penstock.controllers.nebius import workloads
from penstock.controllers.nebius.accounting import ClusterAccounting
from penstock.controllers.nebius.adoption import ADOPTED, Adoption, AdoptionReport
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.exporter import ClusterExporter
from penstock.controllers.nebius.jail import JailPopulation
from penstock.controllers.nebius.key_source import ClusterKeys
from penstock.controllers.nebius.named_pvcs import NamedPvcs
from penstock.controllers.nebius.nodeset import cluster_of_worker
from penstock.controllers.nebius.own_workers import OwnWorkers
from penstock.controllers.nebius.power_rights import PowerRights
from penstock.controllers.nebius.secrets import ClusterSecrets
from penstock.controllers.nebius.slurmctld import ClusterSlurmctld
from penstock.controllers.nebius.sssd import ClusterSssd, clusters_using
from penstock.controllers.nebius.topology import (
    ClusterTopology,
    clusters_with_file,
    clusters_with_worker_on,
    labels_changed,
)
from penstock.controllers.nodeset.engine import Outcome, node_matters
from penstock.controllers.observed.nebius_caches import (
    CLUSTERS_BY_NAMESPACE,
    cluster_keys,
    cluster_of_jailed_config,
    cluster_of_restore,
    component_of,
)
from penstock.controllers.observed.watching import (
    PODS_BY_NODE,
    keys,
    own_key,
    owner_of,
    same_key,
    spec_changed,
)
from penstock.controllers.runtime.reconciler import Reconciler, soonest
from penstock.controllers.runtime.signals import (
    PARTITION_DRIFT,
    PARTITIONS_PENDING,
    REGISTRATION,
    SLURM,
)
from penstock.decide.drift import choice
from penstock.decide.drift import findings as drift_finding
from penstock.kube import Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.check import nccl_benchmark
from penstock.render.nebius.cluster import (
    file_maps,
    login,
    sconfigcontroller,
    services,
    slurmrestd,
)
from penstock.render.nebius.cluster.worker_budget import worker_budget
from penstock.render.nebius.inputs import ClusterInputs
from penstock.translate.nebius import availability
from penstock.translate.nebius.availability import Availability
from penstock.translate.nebius.worker_counts import versions
from penstock.translate.nebius.worker_set import cluster_status

_WITH_MUNGED = ("worker", "nodeset", "login", "accounting")
"""Components whose pods have munged, beside slurmctld's."""
_LOGIN_VOLUMES = "spec.slurmNodes.login.volumes"


def cluster_of_pod(pod: Pod, _: Lookup) -> list[str]:
    """Key of the SlurmCluster of a pod, by its labels."""
    return [value.rpartition("/")[0] for value in component_of(pod)]


def pod_matters(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change of a pod can change what is decided about its SlurmCluster.

    Of the workers of a NodeSet that is only whether they exist and have ended, and where they are.
    """
    if old is None or new is None or old.status.phase != new.status.phase:
        return True
    if old.spec.node_name != new.spec.node_name:
        return True
    return new.metadata.labels.get(app_labels.APP_COMPONENT) != "nodeset"


def clusters_in_namespace(obj: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the SlurmClusters in an object's namespace."""
    return keys(lookup.by(CLUSTERS_BY_NAMESPACE, obj.metadata.namespace))


def clusters_on_node(node: Node, lookup: Lookup) -> list[str]:
    """Keys of the SlurmClusters with workers of their own on a Kubernetes node."""
    owners, pods = owner_of(SLURM_CLUSTERS), lookup.by(PODS_BY_NODE, node.metadata.name)
    return [key for pod in pods for key in owners(pod, lookup)]


@dataclass(slots=True)
class _State:
    parts: Availability | None = None
    workers: Outcome | None = None
    is_adopted: bool = False


class SlurmClusterReconciler(Reconciler[SlurmCluster]):
    """Brings SlurmClusters about."""

    name = "slurmcluster"
    resource = SLURM_CLUSTERS
    watches = (
        Watch(SLURM_CLUSTERS, own_key),
        # Which cluster of a namespace has names without a prefix is decided among all of them.
        Watch(SLURM_CLUSTERS, clusters_in_namespace, spec_changed),
        Watch(NODE_SETS, cluster_keys, spec_changed),
        Watch(JOBS, owner_of(SLURM_CLUSTERS)),
        Watch(SECRETS, clusters_in_namespace),
        *(
            Watch(one, owner_of(SLURM_CLUSTERS))
            for one in (
                BUDGETS,
                CONFIG_MAPS,
                SERVICES,
                STATEFUL_SETS,
                ADVANCED_STATEFUL_SETS,
                DEPLOYMENTS,
                SERVICE_ACCOUNTS,
                ROLES,
                ROLE_BINDINGS,
                MARIADBS,
                GRANTS,
                SERVICE_MONITORS,
                POD_MONITORS,
            )
        ),
        Watch(ACTIVE_CHECKS, owner_of(SLURM_CLUSTERS), spec_changed),
        Watch(CONFIG_MAPS, clusters_using),
        Watch(CONFIG_MAPS, clusters_with_file),
        Watch(PODS, cluster_of_pod, pod_matters),
        Watch(CLAIMS, cluster_of_worker),
        Watch(JAILED_CONFIGS, cluster_of_jailed_config, spec_changed),
        # Its database does not rest while a Restore loads it.
        Watch(RESTORES, cluster_of_restore),
        Watch(NODES, clusters_on_node, node_matters),
        Watch(NODES, clusters_with_worker_on, labels_changed),
    )
    signals = (
        Signal(SLURM, same_key),
        Signal(PARTITIONS_PENDING, same_key),
        Signal(PARTITION_DRIFT, same_key),
        Signal(REGISTRATION, same_key),
    )

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._clusters = context.clusters
        self._drift = context.drift
        self._states = context.states(SLURM_CLUSTERS, _State)
        self._secrets = ClusterSecrets(context)
        self._keys = context.secrets
        self._rotation = KeyRotation(context, SLURM_CLUSTERS, ClusterKeys(context))
        self._munge = MungeRotation(context, SLURM_CLUSTERS)
        self._jail = JailPopulation(context)
        self._topology = ClusterTopology(context)
        self._slurmctld = ClusterSlurmctld(context, self.events)
        self._accounting = ClusterAccounting(context, self.events)
        self._workers = OwnWorkers(context, self.events)
        self._adoption = Adoption(context, self.events)
        self._sssd = ClusterSssd(context)
        self._pvcs = NamedPvcs(context)
        self._power_rights = PowerRights(context, self.objects, self.events)
        self._exporter = ClusterExporter(context, self._adoption, self.events)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one SlurmCluster; a deleted one is kept until its own workers are drained."""
        obj = self._cache.get(key)
        if obj is None or not obj.metadata.deleting:
            return await super().reconcile(key)
        outcome = await self._workers.run(obj)
        if outcome.status is not None:
            status = cluster_status(obj.status, outcome.status, versions(obj.metadata))
            await self.write(obj, outcome.findings, status)
        if outcome.rejected is not None:
            raise outcome.rejected
        return Result(requeue_after=outcome.requeue_after)

    async def reconcile_object(self, obj: SlurmCluster) -> list[Finding]:
        """Fill the jail, make keys and Services, hand over the configuration, start daemons."""
        state = self._states.of(obj)
        state.parts = state.workers = None
        self._slurmctld.begin(obj)
        self._topology.observe(obj)
        if missing := self._secrets.missing(obj):
            words = f"spec.secrets.sshdKeysName: Secret {missing[0]} does not exist"
            next_step = "Create it with the host keys of sshd"
            found = Finding(None, ObjectReason.SECRET_NOT_FOUND, f"{words}. {next_step}")
            return [found, availability.common(resting=False, waiting=(found,))]
        unusable = self._secrets.unusable(obj)
        # Only a new cluster waits: a cluster of another operator may work by means unknown here.
        is_new = find(obj.status.conditions, availability.CONTROLLERS) is None
        wrong = self._secrets.foreign(obj) or unusable
        if wrong is not None and is_new and not self._clusters.served(obj):
            return [wrong, availability.common(resting=False, waiting=(wrong,))]
        # The jail is filled while keys are generated.
        jail = await self._jail.advance(obj, self.events)
        await self._secrets.apply(obj, self.events)
        of_keys = await self._rotate(obj)
        of_directory = await self._sssd.reconcile(obj, self.events)
        cluster = self._clusters.inputs(obj)
        await self.objects.apply(obj, self.events, self._first(cluster))
        await self._apply_benchmark(obj, cluster)
        await self._power_rights.apply(obj, cluster)
        report = AdoptionReport()
        slurmdbd = await self._accounting.reconcile(obj, cluster, workloads.images(obj), report)
        whole = next(iter(slurmdbd), None)
        parts = state.parts = workloads.availability(self._clusters, obj, jail.finding, whole)
        usable = jail.can_use_jail
        of_config = await self._slurmctld.reconcile(obj, cluster, report, may_start=usable)
        of_records = await self._slurmctld.follow_accounting(obj, self._accounting)
        # Once more: slurmrestd is created with the slurmdbd of the files that were just written.
        of_logins = await self._apply_daemons(
            obj, self._clusters.inputs(obj), report, may_start=usable
        )
        of_exporter = await self._exporter.reconcile(
            obj, self._clusters.inputs(obj), report, may_start=usable
        )
        state.workers = await self._workers.run(obj)
        of_pvcs = await self._pvcs.findings(obj)
        drifted = await self._drifted(obj)
        resolved = availability.node_sets_resolved(
            obj, [one.metadata.name for one in cluster.node_sets]
        )
        resting = self._clusters.is_resting(obj)
        state.is_adopted = bool(report.findings())
        return [
            *availability.conditions(obj, parts),
            *filter(None, [unusable]),
            availability.common(resting=resting, waiting=()),
            *of_keys,
            *of_pvcs,
            *of_config,
            *self._topology.findings(obj),
            *of_logins,
            *of_directory,
            *of_exporter,
            *slurmdbd[1:],
            *of_records,
            *filter(None, [self._undelivered(obj)]),
            *([resolved] if resolved is not None else []),
            *state.workers.findings,
            *report.findings(),
            *drifted,
        ]

    async def _rotate(self, obj: SlurmCluster) -> list[Finding]:
        """Give a changed key to all pods."""
        if not obj.spec.has_munge:
            return await self._rotation.advance(obj, self.events)
        found = self._clusters
        return await self._munge.advance(
            obj,
            obj.status.conditions,
            self._keys.value(obj.metadata.namespace, names.auth_key(obj)),
            [pod for component in _WITH_MUNGED for pod in found.pods(obj, component)],
            found.slurmctld_pods(obj),
            self.events,
        )

    def _undelivered(self, obj: SlurmCluster) -> Finding | None:
        """About JailedConfigs of a cluster without a jail; sconfigcontroller reports the others."""
        if obj.spec.has_jail:
            return None
        found = self._clusters.caches.jailed_configs_of.get(obj.metadata.key)
        return availability.jailed_configs([one.metadata.name for one in found])

    async def _drifted(self, obj: SlurmCluster) -> list[Finding]:
        """What was changed in Slurm of its partitions; its own workers report that with theirs."""
        if obj.spec.slurm_nodes.worker is not None:
            return []
        chosen, wrong = choice(obj.metadata.annotations)
        words = await self._drift.resolve(obj, self._clusters.config(obj), chosen)
        return [*wrong, *drift_finding(words, obj.status.conditions)]

    def _first(self, cluster: ClusterInputs) -> list[Json]:
        """What pods mount or resolve and what protects them, before the pods."""
        return [
            *services.objects(cluster),
            *file_maps.objects(cluster.cluster),
            worker_budget(cluster),
        ]

    async def _apply_benchmark(self, obj: SlurmCluster, cluster: ClusterInputs) -> None:
        """Create the ActiveCheck of spec.periodicChecks, or delete it once it is off."""
        wanted = nccl_benchmark.objects(cluster)
        await self.objects.apply(obj, self.events, wanted)
        if not wanted:
            name = names.nccl_benchmark(obj.metadata.name)
            await self.objects.remove(obj, self.events, "ActiveCheck", name)

    async def _apply_daemons(
        self, obj: SlurmCluster, cluster: ClusterInputs, report: AdoptionReport, *, may_start: bool
    ) -> list[Finding]:
        """Create sconfigcontroller, slurmrestd and logins once the jail is filled.

        One that exists follows its spec whatever is done about the jail.
        """
        kept: list[Finding] = []
        writer = adopted.sconfigcontroller(cluster)
        for manifest, pods in (
            *((one, writer) for one in sconfigcontroller.objects(cluster)),
            (slurmrestd.deployment(cluster), adopted.slurmrestd(cluster)),
            (login.stateful_set(cluster), adopted.login(cluster)),
        ):
            live = self.objects.live(manifest)
            if manifest["kind"] in ("StatefulSet", "Deployment"):
                # Only Penstock's reports to Penstock's slurmctld that all files are in the jail.
                asked = pods is writer and not self._slurmctld.is_adopted(obj)
                found = await self._adoption.inspect(obj, manifest, pods, asked=asked)
                report.note(found)
                if found.is_handed_over:
                    continue
                manifest = found.apply()
            if live is None and not may_start:
                continue
            if manifest["kind"] == "StatefulSet" and "template" in manifest["spec"]:
                # Right before it is applied: the claim templates of one that is deleted meanwhile
                # must not come back with the next one.
                manifest, kept = claim_templates.keep(manifest, live, _LOGIN_VOLUMES)
            await self.objects.apply(obj, self.events, [manifest])
        return kept

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Soon while something is waited for that no watch reports."""
        workers = self._states.of(obj).workers
        return soonest(
            self._slurmctld.requeue_after(obj),
            self._munge.requeue_after(obj),
            self._rotation.requeue_after(obj),
            self._topology.requeue_after(obj),
            self._accounting.requeue_after(obj),
            self._sssd.requeue_after(obj),
            self._pvcs.requeue_after(obj),
            self._exporter.requeue_after(obj),
            workers.requeue_after if workers is not None else None,
        )

    def outdated(self, obj: SlurmCluster) -> frozenset[str]:
        """Those of parts that are gone, of accounting once it is off, and others'."""
        found = self._slurmctld.outdated(obj) | self._accounting.outdated(obj)
        found |= availability.OF_THE_ORIGINAL | self._workers.outdated(obj)
        found |= self._exporter.outdated(obj)
        if not self._undelivered(obj):
            found |= {availability.JAILED_CONFIGS_DELIVERED}
        return found if self._states.of(obj).is_adopted else found | {ADOPTED}

    def status(self, obj: SlurmCluster) -> Status:
        """Phase, counts, and what is known of slurmctld."""
        state = self._states.of(obj)
        ready = self._clusters.ready_pods
        status = replace(
            self._slurmctld.status(obj, obj.status),
            phase=availability.phase(state.parts),
            ready_login=ready(obj, "login"),
            ready_sconfig_controller=ready(obj, "sconfigcontroller"),
        )
        workers = state.workers
        if workers is None or workers.status is None:
            return status
        return cluster_status(status, workers.status, versions(obj.metadata))
