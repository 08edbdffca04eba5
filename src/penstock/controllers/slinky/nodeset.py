"""NodeSet: the worker pods of one cluster and their Slurm nodes."""

from __future__ import annotations

from penstock.api.cluster.marks import ROLLBACK
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
)
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.nodeset.engine import WorkerSetEngine, node_matters
from penstock.controllers.observed.members import (
    NODESETS_BY_CLUSTER,
    members_of,
    nodesets_on_node,
    nodesets_with_external_partition,
    nodesets_with_partition,
    worker_of,
)
from penstock.controllers.observed.references import (
    controllers_using_config_map,
    controllers_using_secret,
    nodesets_using_sssd_conf,
)
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.watching import (
    indexed,
    own_key,
    owner_of,
    owners_of,
    spec_changed,
)
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.rollout.rollback import ROLLED_BACK
from penstock.controllers.runtime.reconciler import StatusWriter
from penstock.controllers.runtime.signals import (
    PARTITION_DRIFT,
    PARTITIONS_APPLIED,
    PARTITIONS_POLLED,
    SLURM,
)
from penstock.controllers.slinky.worker_source import NodeSetServices, NodeSetSource
from penstock.controllers.workers.caches import WorkerCaches, own_stems, stems
from penstock.decide.advice import cgroups
from penstock.decide.rollout import maintenance
from penstock.kube import Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.translate.slinky.worker_set import nodeset_status, worker_set


class NodeSetReconciler(StatusWriter[NodeSet]):
    """Brings NodeSets to their spec, and ends deleted ones without losing a job."""

    name = "nodeset"
    resource = NODESETS
    watches = (
        Watch(NODESETS, own_key),
        Watch(CONTROLLERS, indexed(NODESETS_BY_CLUSTER, own_key), spec_changed),
        Watch(PODS, owner_of(NODESETS)),
        Watch(NODES, nodesets_on_node, node_matters),
        Watch(CLAIMS, worker_of),
        *(Watch(one, owners_of(NODESETS)) for one in (SERVICES, BUDGETS)),
        Watch(SECRETS, indexed(NODESETS_BY_CLUSTER, controllers_using_secret)),
        Watch(SECRETS, nodesets_using_sssd_conf),
        # gres.conf is compared with the spec of a NodeSet.
        Watch(CONFIG_MAPS, indexed(NODESETS_BY_CLUSTER, controllers_using_config_map)),
    )
    signals = (
        Signal(SLURM, members_of(NODESETS_BY_CLUSTER)),
        Signal(PARTITIONS_APPLIED, nodesets_with_partition),
        Signal(PARTITION_DRIFT, nodesets_with_partition),
        Signal(PARTITIONS_POLLED, nodesets_with_external_partition),
    )

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        OverriddenFieldDetector(context, self.resource)
        caches = worker_caches(context.caches)
        self._engine = WorkerSetEngine(context, NODESETS, caches, self.events, context.connections)
        self._services = NodeSetServices(context, self.events)

    async def reconcile(self, key: str) -> Result:
        """Reconcile one NodeSet; a deleted one is drained before it goes."""
        nodeset = self._caches.nodesets.get(key)
        if nodeset is None:
            return Result()
        outcome = await self._engine.run(NodeSetSource(nodeset, self._services))
        if outcome.status is not None:
            status = nodeset_status(nodeset.status, outcome.status)
            await self.write(nodeset, outcome.findings, status)
        if outcome.rejected is not None:
            raise outcome.rejected
        return Result(requeue_after=outcome.requeue_after)

    def outdated(self, obj: NodeSet) -> frozenset[str]:
        """Conditions about something that is no longer declared."""
        goes = {
            cgroups.SHARED: not self._services.states.of(obj).shares_cgroup_conf,
            maintenance.CREATED: not maintenance.is_scheduled(worker_set(obj)),
            ROLLED_BACK: ROLLBACK not in obj.metadata.annotations,
        }
        return frozenset(name for name, gone in goes.items() if gone)


def worker_caches(caches: SlinkyCaches) -> WorkerCaches:
    """Where the workers of NodeSets are found."""
    return WorkerCaches(
        pods=caches.pods,
        pods_of=caches.pods_of,
        pods_named=caches.pods.index(stems),
        own_pods_named=caches.pods.index(own_stems),
        pvcs=caches.claims,
        pvcs_of=caches.claims_of,
        nodes=caches.nodes,
        revisions_of=caches.revisions_of,
    )
