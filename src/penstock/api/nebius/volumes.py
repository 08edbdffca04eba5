"""Volumes of SlurmClusters and NodeSets: sources, and the mounts that name them."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.kubernetes.schema import OPAQUE, about
from penstock.api.nebius.common import NOT_EMPTY, TEXT_DEFAULT

JAIL_SOURCE = "jail"
"""The entry of spec.volumeSources that accounting, slurmrestd and the populate Job use."""

SHARED_JAIL: Final = "penstock-shared-jail"
"""Volume with the jail that logins share, in the pod of a worker with a root of its own."""
JOB_ID: Final = "${SLURM_JOB_ID}"
"""In a sub-mount's subPath: each job has the folder of its id, mounted for its steps alone."""
SLURM_CONFIGS = "slurm-etc"
"""Volume with Slurm's configuration, in the pods of a SlurmCluster without a jail."""

POD_VOLUMES = frozenset(
    {
        *("munge-key", "munge-socket", "security-limits", "rest-jwt-key", "sshd-keys"),
        *("slurm-auth-key", "slurm-auth-socket"),
        *(
            "ssh-root-keys",
            "in-memory",
            "tmp-disk",
            "ssh-configs",
            "ssh-configs-worker",
            "user-isolation",
        ),
        *("runtime", "boot", "hostlog-journal", "soperator-outputs", "dev-shm", "sysctl"),
        *("supervisord-config", "nvidia", "nvidia-imex-cli", "nvidia-imex-cli-jail"),
        *("nvidia-imex-config", "nvidia-imex-config-jail"),
        *("slurm-candidate", "trial-spool", "reconfigure", SHARED_JAIL),
    }
)
"""Names of volumes that the operator adds to pods of any daemon."""
SSSD_VOLUMES: Final = ("sssd-socket", "sssd-conf", "sssd-ldap-ca")
"""Those that it adds where sssd runs beside the daemon: sockets, sssd.conf, certificates."""

_Source = Annotated[Json | None, about("A Kubernetes volume source of this type.", OPAQUE)]
ClaimTemplate = Annotated[PvcSpec | None, about("Spec of a PVC for each pod.")]
SourceName = Annotated[str, about("Name of an entry of spec.volumeSources.")]


class VolumeSource(KubeStruct, frozen=True):
    """A Kubernetes VolumeSource: exactly one type. Source: Kubernetes API reference, Volume v1."""

    aws_elastic_block_store: _Source = field(default=None, name="awsElasticBlockStore")
    azure_disk: _Source = None
    azure_file: _Source = None
    cephfs: _Source = None
    cinder: _Source = None
    config_map: _Source = None
    csi: _Source = None
    downward_api: _Source = field(default=None, name="downwardAPI")
    empty_dir: _Source = None
    ephemeral: _Source = None
    fc: _Source = None
    flex_volume: _Source = None
    flocker: _Source = None
    gce_persistent_disk: _Source = None
    git_repo: _Source = None
    glusterfs: _Source = None
    host_path: _Source = None
    image: _Source = None
    iscsi: _Source = None
    nfs: _Source = None
    persistent_volume_claim: _Source = None
    photon_persistent_disk: _Source = None
    portworx_volume: _Source = None
    projected: _Source = None
    quobyte: _Source = None
    rbd: _Source = None
    scale_io: _Source = field(default=None, name="scaleIO")
    secret: _Source = None
    storageos: _Source = None
    vsphere_volume: _Source = None


class NamedVolumeSource(VolumeSource, frozen=True, kw_only=True):
    """One entry of spec.volumeSources."""

    name: Annotated[str, about("Name of the source.", NOT_EMPTY)]


class SpoolSource(VolumeSource, frozen=True):
    """Where slurmd keeps its state: a volume, or a PVC for each pod."""

    volume_claim_template_spec: ClaimTemplate = None


class JailSource(VolumeSource, frozen=True):
    """The jail: a volume that all workers share, or a PVC for each pod."""

    volume_claim_template_spec: Annotated[
        PvcSpec | None,
        about("Spec of a PVC for each pod, with jailMode PerWorker of the SlurmCluster."),
    ] = None


class NodeVolume(KubeStruct, frozen=True):
    """A volume of a SlurmCluster's daemon: exactly one of its fields."""

    volume_source_name: SourceName = ""
    volume_claim_template_spec: ClaimTemplate = None


class NodeVolumeMount(NodeVolume, frozen=True, kw_only=True):
    """A volume of a SlurmCluster's daemon, and where it is mounted."""

    name: Annotated[str, about("Name of the volume in the pod.")]
    mount_path: Annotated[str, about("Where the volume is mounted.")]
    sub_path: Annotated[str, about("Path within the volume.", TEXT_DEFAULT)] = ""
    read_only: Annotated[bool, about("Whether the mount is read-only.")] = False


class VolumeMount(KubeStruct, frozen=True, kw_only=True):
    """A volume of a NodeSet's workers: exactly one source, and where it is mounted."""

    name: Annotated[str, about("Name of the volume in the pod.")]
    mount_path: Annotated[str, about("Where the volume is mounted.")]
    sub_path: Annotated[str, about("Path within the volume.")] = ""
    read_only: Annotated[bool | None, about("Whether the mount is read-only.")] = None
    volume_source: Annotated[VolumeSource | None, about("The volume itself.")] = None
    volume_claim_template_spec: ClaimTemplate = None


CustomMounts = Annotated[
    tuple[Annotated[NodeVolumeMount, about("One mount.")], ...], about("Mounts of the container.")
]
JailSubMounts = Annotated[
    tuple[Annotated[NodeVolumeMount, about("One mount.")], ...], about("Mounts inside the jail.")
]
JailVolume = Annotated[NodeVolume, about("Volume of the jail.")]
SpoolVolume = Annotated[NodeVolume, about("Volume of the daemon's state.")]
