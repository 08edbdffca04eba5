"""Workers of a SlurmCluster itself, as up to version 2.0. Later ones are NodeSets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.pvc_spec import Quantity
from penstock.api.kubernetes.schema import UNSTORED, about
from penstock.api.nebius.common import ImagePullPolicy, NodeContainer, Resources, SlurmNode
from penstock.api.nebius.volumes import (
    CustomMounts,
    JailSubMounts,
    JailVolume,
    NodeVolume,
    SpoolVolume,
)

CgroupVersion = Literal["v1", "v2"]


class WorkerVolumes(KubeStruct, frozen=True, kw_only=True):
    """Volumes of workers."""

    spool: SpoolVolume
    jail: JailVolume = NodeVolume()
    jail_sub_mounts: JailSubMounts = ()
    custom_mounts: CustomMounts = ()
    shared_memory_size: Annotated[Quantity, about("Size of /dev/shm.")] = "64Gi"


class WorkerRebooter(KubeStruct, frozen=True):
    """The rebooter of version 1.18."""

    enabled: Annotated[bool, about("Whether Kubernetes nodes are rebooted.")] = False
    eviction_method: Annotated[Literal["evict"], about("How pods leave.")] = "evict"
    image: Annotated[str, about("The image.")] = ""
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    log_level: Annotated[Literal["debug", "info", "warn", "error"], about("Level of the log.")] = (
        "info"
    )
    namespace: Annotated[str, about("Namespace of the DaemonSet.")] = ""
    resources: Resources = None
    service_account_name: Annotated[str, about("ServiceAccount of the pods.")] = ""


class WorkerNode(SlurmNode, frozen=True, kw_only=True):
    """Workers of one kind."""

    host_users: Annotated[
        bool, about("Whether the pod uses the user namespace of its Kubernetes node.")
    ] = False
    slurmd: Annotated[NodeContainer, about("The slurmd container.")]
    munge: Annotated[NodeContainer, about("The munge container.")]
    volumes: Annotated[WorkerVolumes, about("Volumes of the pods.")]
    max_unavailable: Annotated[
        int | str, about("Most workers that an update makes unavailable: a number or a percentage.")
    ] = "20%"
    cgroup_version: Annotated[CgroupVersion, about("Version of cgroups on the workers.")] = "v2"
    enable_gdr_copy: Annotated[bool, about("Whether GDRCopy is enabled.")] = field(
        default=False, name="enableGDRCopy"
    )
    slurm_node_extra: Annotated[str, about("Extra of the Slurm nodes.")] = ""
    sshd_config_map_ref_name: Annotated[str, about("ConfigMap with sshd_config.")] = ""
    supervisord_config_map_ref_name: Annotated[str, about("ConfigMap with supervisord.conf.")] = ""
    worker_annotations: Annotated[dict[str, str] | None, about("Annotations of the pods.")] = None
    wait_for_controller: Annotated[
        bool, about("Whether slurmd waits for slurmctld, up to version 1.21.", UNSTORED)
    ] = False
    rebooter: Annotated[WorkerRebooter | None, about("The rebooter of version 1.18.")] = None
