"""One form for the workers that a NodeSet and a SlurmCluster declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, KubeObject, LocalObjectReference
from penstock.api.kubernetes.quantity import is_quantity, quantity
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.nebius.worker import WorkerNode
from penstock.model.worker_set import WorkerSet
from penstock.render.nebius.container import worker_container
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.job_mounts import job_mounts
from penstock.render.nebius.pod import filter_place, place
from penstock.render.nebius.sssd import Sssd, beside_workers
from penstock.render.nebius.volumes import (
    Mount,
    Volume,
    cluster_mounts,
    cluster_volume,
    node_set_mounts,
    node_set_volume,
    root_volume,
    shared_beside,
    slurm_configs,
    sub_mounts,
)
from penstock.slurm import daemons

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTemplate:
    """The declared fields from which the pods of a worker set are made.

    `beside` are mounts of the container, `inside` those of the jail, `per_job` those that each job
    has there. `jail` is the volume of Slurm's configuration where there is no jail. `shared` is the
    jail of the logins where each worker has a root of its own. `limits` names the part of the
    cluster in the name of the ConfigMap with limits.conf.
    """

    declared_by: KubeObject
    component: str
    labels: Mapping[str, str]
    slurmd: NodeContainer
    munge: NodeContainer
    sssd: tuple[Sssd, ...] = ()
    port: int
    extra: str
    spool: Volume
    jail: Volume
    shared: Volume | None
    inside: tuple[Mount, ...]
    per_job: tuple[Mount, ...]
    beside: tuple[Mount, ...]
    shared_memory: int | str
    place: Json
    priority_class: str
    host_users: bool | None
    annotations: Mapping[str, str]
    init_containers: tuple[Json, ...]
    pull_secrets: tuple[tuple[LocalObjectReference, ...], ...]
    limits: str
    service: str
    ssh_configs: str
    supervisord: str

    @property
    def memory(self) -> int | str | None:
        """Memory of the slurmd container."""
        return (self.slurmd.resources or {}).get("memory")

    @property
    def memory_mib(self) -> int:
        """Whole MiB of the slurmd container's memory; 0 without a request."""
        memory = self.memory
        return int(quantity(memory) // _MIB) if memory is not None and is_quantity(memory) else 0

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """Volumes that the user declares."""
        mounts = (one.volume for one in (*self.inside, *self.per_job, *self.beside))
        shared = () if self.shared is None else (self.shared,)
        return (self.spool, self.jail, *shared, *mounts)


def node_set_template(cluster: ClusterInputs, node_set: NodeSet) -> WorkerTemplate:
    """The template of a NodeSet."""
    spec, meta = node_set.spec, node_set.metadata
    volumes, slurmd = spec.slurmd.volumes, spec.slurmd
    jail = (
        node_set_volume(names.JAIL, volumes.jail)
        if cluster.spec.has_jail
        else slurm_configs(cluster.name)
    )
    spool, shared = node_set_volume(names.SPOOL, volumes.spool), shared_beside(cluster.spec)
    inside = node_set_mounts(volumes.jail_sub_mounts)
    is_aware = spec.update_strategy == "slurmAwareRollingUpdate"
    return WorkerTemplate(
        declared_by=node_set,
        component="nodeset",
        labels={
            **labels.object_labels("nodeset", cluster.name),
            labels.NODE_SET: meta.name,
            labels.WORKER: app_labels.TRUE,
            labels.ROLLING_UPDATE: str(is_aware).lower(),
        },
        slurmd=worker_container(slurmd, slurmd.custom_env),
        munge=worker_container(spec.munge),
        sssd=beside_workers(node_set),
        port=slurmd.port or daemons.SLURMD_PORT,
        extra=spec.node_config.dynamic,
        spool=spool,
        jail=jail,
        shared=shared,
        inside=tuple(sub_mounts(jail, inside)),
        per_job=job_mounts(filter(None, (jail, spool, shared)), inside),
        beside=tuple(node_set_mounts(volumes.custom_volume_mounts)),
        shared_memory=volumes.shared_memory_size,
        place=place(spec.node_selector, spec.affinity, spec.tolerations),
        priority_class=spec.priority_class,
        # The field is hostUsers of the pod, in spite of its name.
        host_users=spec.enable_host_user_namespace if cluster.has_user_namespaces else None,
        annotations=spec.worker_annotations or {},
        init_containers=spec.custom_init_containers,
        pull_secrets=(spec.image_pull_secrets,),
        limits=f"nodeset-{meta.name}",
        service=names.service(cluster.name, "nodeset"),
        ssh_configs=names.worker_ssh_configs(cluster.name, spec.config_map_ref_sshd),
        supervisord=names.supervisord(cluster.name, spec.config_map_ref_supervisord),
    )


def cluster_template(cluster: ClusterInputs, worker: WorkerNode) -> WorkerTemplate:
    """The template of the workers that a SlurmCluster declares itself."""
    spec, volumes = cluster.spec, worker.volumes
    jail = root_volume(cluster.cluster, volumes.jail)
    spool, shared = cluster_volume(spec, names.SPOOL, volumes.spool), shared_beside(spec)
    inside = cluster_mounts(spec, volumes.jail_sub_mounts)
    return WorkerTemplate(
        declared_by=cluster.cluster,
        component="worker",
        labels={
            **labels.object_labels("worker", cluster.name),
            labels.WORKER: app_labels.TRUE,
        },
        slurmd=worker.slurmd,
        munge=worker.munge,
        port=worker.slurmd.port or daemons.SLURMD_PORT,
        extra=worker.slurm_node_extra,
        spool=spool,
        jail=jail,
        shared=shared,
        inside=tuple(sub_mounts(jail, inside)),
        per_job=job_mounts(filter(None, (jail, spool, shared)), inside),
        beside=tuple(cluster_mounts(spec, volumes.custom_mounts)),
        shared_memory=volumes.shared_memory_size,
        place=filter_place(spec, worker.k8s_node_filter_name),
        priority_class=worker.priority_class,
        # False is the default of the field, and in the original the pod has none.
        host_users=True if worker.host_users else None,
        annotations=worker.worker_annotations or {},
        init_containers=worker.custom_init_containers,
        pull_secrets=(worker.slurmd.image_pull_secrets, worker.munge.image_pull_secrets),
        limits="worker",
        service=names.service(cluster.name, "worker"),
        ssh_configs=names.worker_ssh_configs(cluster.name, worker.sshd_config_map_ref_name),
        supervisord=names.supervisord(cluster.name, worker.supervisord_config_map_ref_name),
    )


def worker_template(cluster: ClusterInputs, workers: WorkerSet) -> WorkerTemplate:
    """The template of one of a cluster's worker sets. Raises LookupError for that of another."""
    worker = cluster.spec.slurm_nodes.worker
    if workers.kind == SLURM_CLUSTERS.kind and worker is not None:
        return cluster_template(cluster, worker)
    for one in cluster.node_sets:
        if workers.kind == NODE_SETS.kind and one.metadata.name == workers.metadata.name:
            return node_set_template(cluster, one)
    name = workers.metadata.name
    raise LookupError(f"{workers.kind} {name} declares no workers of SlurmCluster {cluster.name}")
