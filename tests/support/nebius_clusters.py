"""SlurmClusters of both shapes with all that is rendered from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius import accounting
from penstock.render.nebius.check import nccl_benchmark
from penstock.render.nebius.cluster import (
    exporter,
    file_maps,
    login,
    metrics_monitor,
    populate_jail,
    sconfigcontroller,
    secrets,
    services,
    slurmctld,
    slurmrestd,
)
from penstock.render.nebius.cluster.worker_budget import worker_budget
from penstock.render.nebius.inputs import ClusterInputs, Images
from penstock.render.nebius.worker import pod as worker
from penstock.render.nebius.worker import revision
from penstock.render.parts.ssh_host_keys import FILES
from penstock.translate.nebius.worker_set import cluster_workers, node_set_workers
from support import nebius
from support.nebius import ABSENT

OLDER, CURRENT = "1.23", "5.0"
SHAPES = (OLDER, CURRENT)
CLUSTER_UID = "cluster-uid"
IMAGES = Images(operator="penstock/operator", slurmrestd="penstock/slurmrestd")
WITHOUT_JAIL: dict[str, Any] = {
    "spec.jailMode": "None",
    "spec.populateJail": ABSENT,
    "spec.sConfigController": ABSENT,
    "spec.slurmNodes.controller.volumes.jail": ABSENT,
    "spec.slurmNodes.login.volumes.jail": ABSENT,
    "spec.slurmNodes.login.volumes.jailSubMounts": (),
    "spec.slurmNodes.login.volumes.customMounts": (),
}
"""Changes with which a cluster of the current shape has no jail."""
OLDER_WITHOUT_JAIL: dict[str, Any] = {
    **WITHOUT_JAIL,
    "spec.slurmNodes.worker.volumes.jail": ABSENT,
    "spec.slurmNodes.worker.volumes.jailSubMounts": (),
    "spec.slurmNodes.worker.volumes.customMounts": (),
}
"""The same with workers of its own."""
NODES_WITHOUT_JAIL: dict[str, Any] = {
    "spec.slurmd.volumes.jail": ABSENT,
    "spec.slurmd.volumes.jailSubMounts": (),
}
"""Changes of a NodeSet of such a cluster."""
CLAIM: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "20Gi"}},
}
"""A claim template of a worker."""
_NODE_SETS = ("nodesets-5.0-0", "nodesets-5.0-1")


@dataclass(frozen=True)
class Rendered:
    """A cluster, its worker sets, and what is rendered from it."""

    inputs: ClusterInputs
    workers: tuple[WorkerSet, ...]

    def pod(self, number: int = 0, ordinal: int = 1) -> Json:
        """The pod of an ordinal of a worker set."""
        workers = self.workers[number]
        return worker.pod(self.inputs, workers, slot(workers, ordinal))

    def pvcs(self, number: int = 0, ordinal: int = 1) -> list[Json]:
        """The PVCs of an ordinal of a worker set."""
        workers = self.workers[number]
        return worker.pvcs(self.inputs, workers, slot(workers, ordinal))

    def revision_hash(self, number: int = 0) -> str:
        """Hash of the template of a worker set."""
        return revision.revision(self.inputs, self.workers[number]).hash

    def objects(self) -> list[Json]:
        """All objects, with keys that do not change."""
        cluster = self.inputs.cluster
        keys = {name: "key" for file in FILES for name in (file, f"{file}.pub")}
        out = [
            secrets.munge_secret(cluster, b"munge-key")
            if cluster.spec.has_munge
            else secrets.slurm_key_secret(cluster, b"slurm-key"),
            secrets.jwt_secret(cluster, b"jwt-key"),
            secrets.ssh_host_keys(cluster, keys),
            *file_maps.objects(cluster),
            *services.objects(self.inputs),
            worker_budget(self.inputs),
            *metrics_monitor.objects(self.inputs),
            slurmctld.stateful_set(self.inputs),
            login.stateful_set(self.inputs),
            slurmrestd.deployment(self.inputs),
            *sconfigcontroller.objects(self.inputs),
            *accounting.objects(self.inputs, "slurmdbd.conf", "hash"),
            *exporter.objects(self.inputs),
            *exporter.pod_monitor(self.inputs),
            *nccl_benchmark.objects(self.inputs),
        ]
        if cluster.spec.has_jail:
            out.append(populate_jail.job(self.inputs, overwrite=False))
        for one in self.inputs.node_sets:
            out += [
                services.node_set(self.inputs.name, one),
                file_maps.node_set(self.inputs.name, one),
            ]
        for number, one in enumerate(self.workers):
            found = revision.revision(self.inputs, one)
            out += [
                *self.pvcs(number),
                self.pod(number),
                revision.controller_revision(self.inputs, one, found, 1),
            ]
        return out

    def find(self, kind: str, name: str) -> Json:
        """One object."""
        return next(
            one for one in self.objects() if (one["kind"], one["metadata"]["name"]) == (kind, name)
        )


def slot(workers: WorkerSet, ordinal: int) -> WorkerSlot:
    """The slot of an ordinal."""
    return WorkerSlot(workers.names.pod(ordinal), workers.names.host(ordinal), ordinal)


def rendered(
    cluster: SlurmCluster, node_sets: Sequence[NodeSet] = (), prefix: str = "", **inputs: Any
) -> Rendered:
    """What is rendered from objects."""
    given = ClusterInputs(cluster, IMAGES, prefix, node_sets=tuple(node_sets), **inputs)
    own = cluster_workers(cluster, prefix)
    workers = [*([own] if own is not None else []), *map(node_set_workers, node_sets)]
    return Rendered(given, tuple(workers))


def without_jail(shape: str) -> Rendered:
    """What is rendered from the fixtures of a shape for a cluster without a jail."""
    changes = OLDER_WITHOUT_JAIL if shape == OLDER else WITHOUT_JAIL
    cluster = nebius.made(f"slurmcluster-{shape}-0", {"metadata.uid": CLUSTER_UID, **changes})
    sets = [
        cast("NodeSet", nebius.made(name, {"metadata.uid": f"{name}-uid", **NODES_WITHOUT_JAIL}))
        for name in (_NODE_SETS if shape == CURRENT else ())
    ]
    found = cast("SlurmCluster", cluster)
    return rendered(found, sets, f"{found.metadata.name}-" if shape == CURRENT else "")


def with_auth_slurm(shape: str) -> Rendered:
    """What is rendered from the fixtures of a shape for a cluster with auth/slurm."""
    return of_shape(shape, {"spec.authType": "auth/slurm"})


def per_worker(
    shape: str, changes: dict[str, Any] | None = None, node_set: dict[str, Any] | None = None
) -> Rendered:
    """What is rendered from the fixtures of a shape for workers with roots of their own."""
    own = {"volumeClaimTemplateSpec": CLAIM}
    of_cluster: dict[str, Any] = {"spec.jailMode": "PerWorker", **(changes or {})}
    if shape == OLDER:
        of_cluster = {"spec.slurmNodes.worker.volumes.jail": own, **of_cluster}
    return of_shape(shape, of_cluster, {"spec.slurmd.volumes.jail": own, **(node_set or {})})


def of_shape(
    shape: str,
    changes: dict[str, Any] | None = None,
    node_set: dict[str, Any] | None = None,
    **inputs: Any,
) -> Rendered:
    """What is rendered from the fixtures of a shape with changes; those of the first NodeSet."""
    uid = {"metadata.uid": CLUSTER_UID}
    cluster = nebius.made(f"slurmcluster-{shape}-0", {**uid, **(changes or {})})
    sets: list[NodeSet] = []
    for number, name in enumerate(_NODE_SETS if shape == CURRENT else ()):
        own = {"metadata.uid": f"{name}-uid", **((node_set or {}) if number == 0 else {})}
        sets.append(cast("NodeSet", nebius.made(name, own)))
    found = cast("SlurmCluster", cluster)
    prefix = f"{found.metadata.name}-" if shape == CURRENT else ""
    return rendered(found, sets, **{"prefix": prefix, **inputs})
