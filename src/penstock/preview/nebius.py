"""SlurmClusters in a plan, with their NodeSets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import labels as nebius_labels
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.nebius.config_source import ClusterConfig
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.operator import Operator
from penstock.controllers.runtime.apis import NEBIUS
from penstock.controllers.workers.caches import owner_of
from penstock.decide.slurm_node import parameters as live_conf
from penstock.model.worker_set import WorkerSet
from penstock.preview import nebius_restarts
from penstock.preview.effect import Files, Restart, WorkerPods
from penstock.preview.nebius_restarts import DAEMONS
from penstock.preview.previewed_api import Find, PreviewedApi
from penstock.preview.state import ClusterCopy, Objects, SimulatedRun, SlurmService
from penstock.render.nebius.cluster.services import rest_port
from penstock.render.nebius.config.keys import slurm_user
from penstock.render.nebius.worker.revision import declared_revision, recorded_revision
from penstock.slurm.conf.apply_method import needs
from penstock.slurm.conf.apply_method_table import table
from penstock.translate.nebius.worker_set import cluster_workers

_CLUSTERS = f"{SLURM_CLUSTERS.group}/{SLURM_CLUSTERS.plural}"


class NebiusPreview(PreviewedApi[NebiusClusters]):
    """SlurmClusters, whichever way they declare their workers."""

    group = NEBIUS
    cluster_kind = SLURM_CLUSTERS
    prefixes = (f"{NEBIUS}/",)

    def watch(self, store: CacheStore) -> None:
        """As its reconcilers do."""
        NebiusCaches(store)

    def services(self, objects: Objects) -> Mapping[str, SlurmService | str]:
        """The slurmrestd that each SlurmCluster has."""
        found: dict[str, SlurmService | str] = {}
        for (space, name), obj in objects.get(_CLUSTERS, {}).items():
            cluster = msgspec.convert(obj, SlurmCluster)
            config_map = objects.get("/configmaps", {}).get((space, names.slurm_configs(name)))
            found[f"{space}/{name}"] = SlurmService(
                space,
                f"{names.service(name, 'rest')}:{rest_port(cluster.spec)}",
                SecretKeySelector(name=names.jwt_secret(name), key=names.JWT_KEY),
                slurm_user((config_map or {}).get("data") or {}),
            )
        return found

    def files(self, find: Find, key: str) -> Mapping[str, str]:
        """The files in force."""
        space, _, name = key.partition("/")
        return (find("/configmaps", space, names.slurm_configs(name)) or {}).get("data") or {}

    def etc(self, find: Find, pod: Json) -> Mapping[str, str] | None:
        """The files in force: in a simulated run they are in the jail at once."""
        meta = pod["metadata"]
        labels: Mapping[str, str] = meta.get("labels") or {}
        instance = labels.get(app_labels.APP_INSTANCE, "")
        return self.files(find, f"{meta['namespace']}/{instance}")

    def cluster_of(self, declares_slurmrestd: SlurmCluster) -> str:
        """The SlurmCluster itself."""
        return declares_slurmrestd.metadata.key

    def clusters(self, operator: Operator) -> NebiusClusters:
        """As the Operator has them."""
        return operator.slurm_clusters

    def changed_files(
        self, live: ClusterCopy, run: SimulatedRun[NebiusClusters]
    ) -> Iterator[Files]:
        """All files are the operator's."""
        for one in _ordered(run.clusters):
            meta = one.metadata
            key = meta.namespace, names.slurm_configs(meta.name)
            there = live.objects.get("/configmaps", {}).get(key)
            if there is None:
                # A cluster that is new has none.
                continue
            source = ClusterConfig(one, run.clusters.config(one), run.clusters)
            wanted = source.candidate().data
            plan = needs(there.get("data") or {}, wanted, table(source.release()))
            if plan.items:
                yield Files((meta.namespace, meta.name), plan, plan)

    def workers(self, run: SimulatedRun[NebiusClusters]) -> Iterator[WorkerPods]:
        """Those of SlurmClusters and of NodeSets."""
        for cluster, workers in _worker_sets(run.clusters):
            yield _pods(run.clusters, cluster, workers)

    def daemon(self, labels: Mapping[str, str]) -> str:
        """By app.kubernetes.io/component of the pods of a SlurmCluster."""
        if labels.get(app_labels.APP_NAME) != nebius_labels.NAME:
            return ""
        return DAEMONS.get(labels.get(app_labels.APP_COMPONENT, ""), "")

    def has_state(
        self, run: SimulatedRun[NebiusClusters], namespace: str, labels: Mapping[str, str]
    ) -> bool:
        """That of a SlurmCluster whose slurmctld has an emptyDir."""
        key = f"{namespace}/{labels.get(app_labels.APP_INSTANCE, '')}"
        cluster = run.clusters.caches.clusters.get(key)
        if cluster is None or self.daemon(labels) != "slurmctld":
            return False
        return not ClusterConfig(cluster, run.clusters.config(cluster), run.clusters).persistent

    def restarts(
        self, live: ClusterCopy, run: SimulatedRun[NebiusClusters], changed: Sequence[Files]
    ) -> Iterator[Restart]:
        """For keys and files."""
        return nebius_restarts.of_configuration(live, run, changed)


def _ordered(clusters: NebiusClusters) -> list[SlurmCluster]:
    return sorted(clusters.caches.clusters, key=lambda one: one.metadata.key)


def _worker_sets(clusters: NebiusClusters) -> Iterable[tuple[SlurmCluster, WorkerSet]]:
    for cluster in _ordered(clusters):
        own = cluster_workers(cluster, clusters.prefix(cluster))
        if own is not None:
            yield cluster, own
        for node_set in clusters.node_sets(cluster):
            yield cluster, clusters.worker_set(node_set)


def _pods(clusters: NebiusClusters, cluster: SlurmCluster, workers: WorkerSet) -> WorkerPods:
    revision = declared_revision(clusters.inputs(cluster), workers)
    records = clusters.caches.revisions_of.get(owner_of(workers))
    known = live_conf.equal_revisions(
        revision, (recorded_revision(workers, one) for one in records)
    )
    pods = sorted(_selected(clusters, workers), key=lambda pod: pod.metadata.name)
    meta = workers.metadata
    return WorkerPods(
        (meta.namespace, meta.name),
        cluster.metadata.key,
        tuple(pods),
        {p.metadata.name: workers.marks.revision_of(p.metadata.labels) for p in pods},
        frozenset({revision.hash, *known}),
        workers.update.type,
    )


def _selected(clusters: NebiusClusters, workers: WorkerSet) -> Iterator[Pod]:
    space, labels = workers.metadata.namespace, workers.selector.items()
    for pod in clusters.caches.pods:
        if pod.metadata.namespace == space and labels <= pod.metadata.labels.items():
            yield pod
