"""Controller: keys, configuration and slurmctld of one cluster."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
)
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.partition import PARTITIONS
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.token import TOKENS
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.auth.generated_keys import GeneratedKeys
from penstock.controllers.auth.key_rotation import KeyRotation
from penstock.controllers.auth.munge_rotation import MungeRotation
from penstock.controllers.observed.members import (
    cluster_keys,
    clusters_following_nodes,
    clusters_selecting_node,
    clusters_selecting_worker,
)
from penstock.controllers.observed.references import (
    controllers_accepting_token,
    controllers_recording_in,
    controllers_using_accounting,
    controllers_using_config_map,
    controllers_using_secret,
    controllers_using_sssd_conf,
)
from penstock.controllers.observed.watching import (
    any_of,
    instance_of,
    labels_or_node_changed,
    own_key,
    owner_of,
    same_key,
    spec_changed,
)
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.runtime.reconciler import Reconciler, soonest
from penstock.controllers.runtime.signals import (
    PARTITION_DRIFT,
    PARTITIONS_PENDING,
    REGISTRATION,
    SLURM,
)
from penstock.controllers.slinky import missing
from penstock.controllers.slinky.controller_services import ControllerServices, has_worked
from penstock.controllers.slinky.external_slurmctld import ExternalSlurmctld
from penstock.controllers.slinky.internal_slurmctld import InternalSlurmctld
from penstock.controllers.slinky.key_source import ControllerKeys
from penstock.decide.accounting import conditions as accounting
from penstock.decide.accounting.registration import REGISTERED
from penstock.decide.cluster import release
from penstock.decide.config import conditions as config_findings
from penstock.decide.drift import DRIFTED
from penstock.decide.partition.retention import DRAINING
from penstock.kube import Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.render.slinky.cluster import release as of_release
from penstock.render.slinky.config.config_maps import config_hash, files
from penstock.translate.slinky.cluster import cluster as translated

_OF_OURS = frozenset({config_findings.VALID, config_findings.APPLIED, DRIFTED})


def _spec_or_size_changed(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether more than the status changed, or a NodeSet in DaemonSet mode has other nodes."""
    if spec_changed(old, new) or old is None or new is None:
        return True
    return new.spec.scaling_mode == "DaemonSet" and old.status.desired != new.status.desired


def _spec_or_conditions_changed(old: Accounting | None, new: Accounting | None) -> bool:
    """Whether the spec or the status of a condition changed."""
    if spec_changed(old, new) or old is None or new is None:
        return True
    before, after = ({one.type: one.status for one in obj.status.conditions} for obj in (old, new))
    return before != after


class ControllerReconciler(Reconciler[Controller]):
    """Brings Controllers about."""

    name = "controller"
    resource = CONTROLLERS
    watches = (
        Watch(CONTROLLERS, own_key),
        Watch(NODESETS, cluster_keys, _spec_or_size_changed),
        Watch(
            SECRETS,
            any_of(controllers_using_secret, controllers_using_sssd_conf, owner_of(CONTROLLERS)),
        ),
        Watch(CONFIG_MAPS, controllers_using_config_map),
        Watch(CONFIG_MAPS, controllers_recording_in),
        *(
            Watch(one, owner_of(CONTROLLERS))
            for one in (SERVICES, CONFIG_MAPS, STATEFUL_SETS, SERVICE_MONITORS)
        ),
        Watch(PODS, instance_of("slurmctld")),
        # slurm.conf permits tokens that contain their user.
        Watch(TOKENS, controllers_accepting_token, spec_changed),
        Watch(ACCOUNTINGS, controllers_using_accounting, _spec_or_conditions_changed),
        Watch(PARTITIONS, cluster_keys, spec_changed),
        Watch(PODS, clusters_selecting_worker, labels_or_node_changed),
        Watch(NODES, clusters_selecting_node, labels_or_node_changed),
    )
    signals = (
        Signal(SLURM, clusters_following_nodes),
        Signal(REGISTRATION, same_key),
        Signal(PARTITIONS_PENDING, same_key),
        Signal(PARTITION_DRIFT, same_key),
    )

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        OverriddenFieldDetector(context, self.resource)
        self._partitions = context.changes
        self._generated = GeneratedKeys(context)
        self._keys = KeyRotation(context, CONTROLLERS, ControllerKeys(context, context.connections))
        self._munge = MungeRotation(context, CONTROLLERS)
        self._services = ControllerServices(context, self.events)
        self._inside = InternalSlurmctld(self._services)
        self._outside = ExternalSlurmctld(self._services)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one Controller.

        Until this process has queried an external slurmctld, a report would make Ready flap.
        """
        obj = self._caches.controllers.get(key)
        has_status = obj is not None and obj.spec.external and obj.status.observed_generation
        if obj is not None and has_status and not self._outside.has_answered(obj):
            return Result(requeue_after=1.0)
        return await super().reconcile(key)

    async def reconcile_object(self, obj: Controller) -> list[Finding]:
        """Make keys, Services, configuration and slurmctld; hand over what changed."""
        state = self._services.states.of(obj)
        state.decision = state.triggered = None
        if not obj.spec.external:
            await self._generated.apply(obj, self.events)
        cluster = self._clusters.cluster(obj)
        first = accounting.first_waits(translated(obj, cluster.accounting))
        waiting = missing.prerequisite_findings(self._clusters, obj, cluster) or first
        if not waiting and not obj.spec.external and not has_worked(obj):
            version = of_release.of_slurmctld(cluster)
            keys_unknown = release.unknown(files(cluster), version)
            waiting = release.unknown_findings(keys_unknown, version)
        if waiting:
            return waiting
        # Before anything is made of the keys: slurmctld begins with those that the ring knows.
        keys = [] if obj.spec.external else await self._keys.advance(obj, self.events)
        keys += await self._rotate_munge(obj)
        brought = await self._partitions.apply(obj, self.events)
        if not (brought.cluster.slurm_key_hash and brought.cluster.jwt_key_hash):
            # One went meanwhile: a template without its hash would end slurmctld.
            return missing.prerequisite_findings(
                self._clusters, obj, brought.cluster
            ) or await self.reconcile_object(obj)
        if obj.spec.external:
            return await self._outside.reconcile(obj, brought.cluster)
        return await self._inside.reconcile(obj, brought, keys)

    async def _rotate_munge(self, obj: Controller) -> list[Finding]:
        """Give a changed munge key to all pods."""
        ref, caches = obj.spec.munge_key_ref, self._caches
        if ref is None or obj.spec.external:
            return []
        space, key = obj.metadata.namespace, obj.metadata.key
        workloads = [("login", one.metadata.name) for one in caches.loginsets_of.get(key)]
        if obj.spec.accounting_ref is not None:
            workloads.append(("slurmdbd", obj.spec.accounting_ref.name))
        pods = [pod for one in workloads for pod in caches.pods_labelled(space, *one)]
        for nodeset in caches.nodesets_of.get(key):
            pods += caches.workers_of(nodeset)
        return await self._munge.advance(
            obj,
            obj.status.conditions,
            self._secrets.value(space, ref),
            pods,
            self._clusters.slurmctld_pods(obj),
            self.events,
        )

    def requeue_after(self, obj: Controller) -> float | None:
        """Seconds until something is compared again that no watch reports."""
        if obj.spec.external:
            return self._outside.requeue_after(obj)
        return soonest(
            self._inside.requeue_after(obj),
            self._keys.requeue_after(obj),
            self._munge.requeue_after(obj),
        )

    def outdated(self, obj: Controller) -> frozenset[str]:
        """Return the conditions to remove: those of the configuration if slurmctld is external."""
        known = _OF_OURS if obj.spec.external else frozenset[str]()
        held = not obj.spec.external and self._partitions.draining_finding(obj) is not None
        draining = frozenset[str]() if held else frozenset({DRAINING})
        registered = (
            frozenset({REGISTERED}) if obj.spec.accounting_ref is None else frozenset[str]()
        )
        return known | draining | registered | self._services.monitor.outdated(obj)

    def status(self, obj: Controller) -> Status:
        """The hash of the wanted configuration, and what is known of its slurmctld."""
        wanted = config_hash(self._clusters.declared(obj))
        where = self._outside if obj.spec.external else self._inside
        return where.status(obj, wanted)
