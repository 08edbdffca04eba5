"""The workers that a SlurmCluster declares itself, in spec.slurmNodes.worker."""

from __future__ import annotations

from dataclasses import replace

from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.auth.rejected_munge_key import RejectedMungeKeyDetector
from penstock.controllers.nebius.cluster_waiting import jail_wait
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.nodeset import PVCS_BY_CLUSTER, worker_caches
from penstock.controllers.nebius.worker_adoption import REQUEUE_S, WorkerAdoption
from penstock.controllers.nebius.worker_roots import WorkerRoots
from penstock.controllers.nebius.worker_source import ClusterWorkers
from penstock.controllers.nodeset.engine import Outcome, WorkerSetEngine
from penstock.controllers.runtime.report import Events
from penstock.translate.nebius.worker_set import cluster_workers


class OwnWorkers:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._context = context
        self._keys = RejectedMungeKeyDetector(context, SLURM_CLUSTERS)
        self._roots = WorkerRoots(context, SLURM_CLUSTERS)
        self._events = events
        caches = worker_caches(context.caches, context.caches.store.index(PVCS_BY_CLUSTER))
        self._engine = WorkerSetEngine(context, SLURM_CLUSTERS, caches, events, context.connections)
        self._adoption = WorkerAdoption(context, caches, events)

    def outdated(self, cluster: SlurmCluster) -> frozenset[str]:
        """Types of conditions that describe its workers no longer."""
        return self._roots.outdated(cluster)

    async def run(self, cluster: SlurmCluster) -> Outcome:
        """Bring them closer to the spec; nothing where NodeSets declare the workers.

        A cluster that is deleted keeps its slurmctld until its workers are drained. Raises
        KubeError.
        """
        workers = cluster_workers(cluster, self._context.clusters.prefix(cluster))
        if workers is None:
            return Outcome()
        source = ClusterWorkers(
            self._context,
            self._events,
            SLURM_CLUSTERS,
            cluster,
            workers,
            cluster,
            jail_wait(cluster),
            self._keys,
            self._roots,
        )
        if (waiting := await self._adoption.run(source)) is not None:
            return Outcome([waiting], requeue_after=REQUEUE_S)
        outcome = await self._engine.run(source)
        # The same object's own faults are reported once, with the rest of it.
        problems = set(source.problems)
        return replace(outcome, findings=[one for one in outcome.findings if one not in problems])
