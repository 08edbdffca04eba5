"""Restarts of the daemons of a SlurmCluster that follow from its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.api.nebius import labels
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.nebius.config_source import ClusterConfig
from penstock.preview.effect import Files, How, Restart
from penstock.preview.restarts import cure, pods_with, restarted_daemons, slurmctld_restart
from penstock.preview.state import ClusterCopy, SimulatedRun

DAEMONS = {
    "controller": "slurmctld",
    "worker": "slurmd",
    "nodeset": "slurmd",
    "accounting": "slurmdbd",
    "rest": "slurmrestd",
    "login": "login",
    "sconfigcontroller": "sconfigcontroller",
    "exporter": "exporter",
}
"""By app.kubernetes.io/component the daemon of a pod, or its name in reports."""
_WORKLOADS = {
    "slurmrestd": ("Deployment", "rest", "rest"),
    "slurmdbd": ("Deployment", "accounting", "accounting"),
    "sackd": ("StatefulSet", "login", "login"),
}
"""By daemon the kind of its workload, the workload's name without prefix, and its component."""


def of_configuration(
    live: ClusterCopy, run: SimulatedRun[NebiusClusters], changed: Sequence[Files]
) -> Iterator[Restart]:
    """Restarts for keys and files that take effect by one only."""
    for files in changed:
        cluster = run.clusters.caches.clusters.get("/".join(files.key))
        if cluster is None:
            continue
        for daemon, why in restarted_daemons(files.plan).items():
            match daemon:
                case "slurmctld":
                    yield _slurmctld(live, run.clusters, cluster, files, why)
                case "slurmd":
                    yield from _workers(live, run.clusters, cluster, why)
                case _:
                    yield _other(live, run.clusters, cluster, daemon, why)


def _slurmctld(
    live: ClusterCopy,
    clusters: NebiusClusters,
    cluster: SlurmCluster,
    files: Files,
    why: tuple[str, ...],
) -> Restart:
    source = ClusterConfig(cluster, clusters.config(cluster), clusters)
    space, name = files.key
    return slurmctld_restart(
        ("slurmcluster", files.key),
        pods_with(live, space, labels.selector_labels("controller", name)),
        source.workload,
        why,
        ours=files.ours,
        persistent=source.persistent,
    )


def _workers(
    live: ClusterCopy, clusters: NebiusClusters, cluster: SlurmCluster, why: tuple[str, ...]
) -> Iterator[Restart]:
    space, name = cluster.metadata.namespace, cluster.metadata.name
    if cluster.spec.slurm_nodes.worker is not None:
        pods = pods_with(live, space, labels.selector_labels("worker", name))
        words = "drain each in Slurm, and delete its pod when its jobs have ended"
        yield Restart(How.YOURS, space, pods, "slurmd", f"SlurmCluster {space}/{name}", why, words)
    for node_set in clusters.node_sets(cluster):
        own = node_set.metadata.name
        pods = pods_with(live, space, labels.node_set_selector(own, name))
        message = f"change an annotation of spec.workerAnnotations of NodeSet {own}"
        words = f"{message}, and each is replaced once it is drained"
        yield Restart(How.YOURS, space, pods, "slurmd", f"NodeSet {space}/{own}", why, words)


def _other(
    live: ClusterCopy,
    clusters: NebiusClusters,
    cluster: SlurmCluster,
    daemon: str,
    why: tuple[str, ...],
) -> Restart:
    space = cluster.metadata.namespace
    kind, name, component = _WORKLOADS[daemon]
    name = f"{clusters.prefix(cluster)}{name}"
    pods = pods_with(live, space, labels.selector_labels(component, cluster.metadata.name))
    words = cure(kind, space, name)
    return Restart(How.YOURS, space, pods, DAEMONS[component], f"{kind} {space}/{name}", why, words)
