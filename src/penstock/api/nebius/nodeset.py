"""NodeSet: workers of a SlurmCluster, one Slurm node for each pod."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.pvc_spec import Quantity
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    DEFAULT,
    INT32,
    UNSTORED,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.common import (
    GROUP,
    TEXT_DEFAULT,
    UNCONFINED,
    VERSION,
    Affinity,
    AppArmorProfile,
    Env,
    Image,
    InitContainers,
    NodeSelector,
    PriorityClass,
    Probe,
    ProcMount,
    PullSecrets,
    SecurityLimits,
    Tolerations,
)
from penstock.api.nebius.volumes import JailSource, SpoolSource, VolumeMount
from penstock.api.nebius.worker import CgroupVersion
from penstock.api.nebius.worker_counts import WorkerCounts

MOST_UNAVAILABLE = 500
MAX_UNAVAILABLE = "maxUnavailable must resolve to no more than 500 workers"
_Mounts = tuple[Annotated[VolumeMount, about("One mount.")], ...]
_Keep = Literal["Retain", "Delete"]


class Security(KubeStruct, frozen=True):
    """Security of a container."""

    limits_config: SecurityLimits = ""
    app_armor_profile: AppArmorProfile = UNCONFINED
    proc_mount: ProcMount = None


class WorkerContainer(KubeStruct, frozen=True, kw_only=True):
    """A container of a worker."""

    image: Annotated[Image, about("The image.")]
    resources: Annotated[
        dict[str, Quantity], about("Requests of the container, by resource. Limits follow.")
    ]
    liveness_probe: Probe = None
    readiness_probe: Probe = None
    security: Annotated[Security, about("Security of the container.")] = Security()


class PvcRetentionPolicy(KubeStruct, frozen=True):
    """When PVCs of workers are deleted."""

    when_deleted: Annotated[_Keep, about("When the NodeSet is deleted.")] = "Delete"
    when_scaled: Annotated[_Keep, about("When a worker is scaled in.")] = "Delete"


class SlurmdVolumes(KubeStruct, frozen=True, kw_only=True):
    """Volumes of a worker."""

    spool: Annotated[SpoolSource, about("Volume of slurmd's state.")]
    jail: Annotated[JailSource, about("Volume of the jail.")] = JailSource()
    jail_sub_mounts: Annotated[_Mounts, about("Mounts inside the jail.")] = ()
    custom_volume_mounts: Annotated[_Mounts, about("Mounts of the container.")] = ()
    shared_memory_size: Annotated[Quantity, about("Size of /dev/shm.")] = "64Gi"
    persistent_volume_claim_retention_policy: Annotated[
        PvcRetentionPolicy, about("When PVCs of workers are deleted.", {DEFAULT: {}})
    ] = PvcRetentionPolicy()


class Slurmd(WorkerContainer, frozen=True, kw_only=True):
    """The slurmd container."""

    port: Annotated[int, about("Port of slurmd.", INT32)] = 6818
    custom_env: Env = ()
    volumes: Annotated[SlurmdVolumes, about("Volumes of the worker.")]
    cgroup_version: Annotated[
        CgroupVersion, about("Version of cgroups, up to version 1.23.", UNSTORED)
    ] = "v2"


class NodeConfig(KubeStruct, frozen=True):
    """Values of the Slurm nodes."""

    features: Annotated[
        tuple[Annotated[str, about("A feature.")], ...], about("Features of the Slurm nodes.")
    ] = ()
    static: Annotated[str, about("Other keys of the NodeName lines.", TEXT_DEFAULT)] = ""
    dynamic: Annotated[str, about("Extra of the Slurm nodes.", TEXT_DEFAULT)] = ""
    auto_resume: Annotated[bool, about("Whether jobs power up ephemeral nodes.")] = True
    gres_config: Annotated[
        tuple[Annotated[str, about("A line.")], ...], about("Lines of gres.conf.")
    ] = ()


class NodeAttributes(KubeStruct, frozen=True):
    """Values of the Slurm nodes, up to version 1.22."""

    extra: Annotated[str, about("Extra of the Slurm nodes.")] = ""
    features: Annotated[
        tuple[Annotated[str, about("A feature.")], ...], about("Features of the Slurm nodes.")
    ] = ()


class Nvidia(KubeStruct, frozen=True):
    """Settings of NVIDIA GPUs."""

    gdr_copy_enabled: Annotated[bool, about("Whether GDRCopy is enabled.")] = False


class Gpu(KubeStruct, frozen=True):
    """GPUs of the workers."""

    enabled: Annotated[bool, about("Whether the workers have GPUs.")] = False
    nvidia: Annotated[Nvidia, about("Settings of NVIDIA GPUs.")] = Nvidia()


class Docker(KubeStruct, frozen=True):
    """Docker in the workers."""

    enabled: Annotated[bool, about("Whether jobs may use docker.")] = True


class Fabric(KubeStruct, frozen=True):
    """Place of the workers in the topology."""

    fabric: Annotated[str, about("Name of the root switch.")] = "root"


class NodeSetSpec(KubeStruct, frozen=True, kw_only=True):
    """What a set of Slurm nodes should be."""

    cluster_name: Annotated[str, about("SlurmCluster of the same namespace.")] = ""
    replicas: Annotated[int, about("Number of Slurm nodes.", INT32)] = 1
    max_unavailable: Annotated[
        int | str,
        about("Most workers that an update makes unavailable: a number or a percentage."),
    ] = MOST_UNAVAILABLE
    update_strategy: Annotated[
        Literal["rollingUpdate", "slurmAwareRollingUpdate"],
        about("Both mean the same: a worker is drained before it is replaced."),
    ] = "rollingUpdate"
    ephemeral_nodes: Annotated[
        bool, about("Whether jobs power the nodes up, and idle nodes are powered down.")
    ] = False
    initial_number_ephemeral_nodes: Annotated[
        int, about("Ephemeral nodes at the start.", INT32, {"minimum": 0})
    ] = 1
    ephemeral_topology_wait_timeout: Annotated[
        int,
        about("Seconds that an ephemeral node waits for its place.", INT32, {"minimum": 60}),
    ] = 180
    worker_init_random_delay_seconds: Annotated[
        int, about("Most seconds by which a start is delayed.", INT32, {"minimum": 0})
    ] = 0
    enable_host_user_namespace: Annotated[bool, about("hostUsers of the pods.")] = False
    node_selector: NodeSelector = None
    affinity: Affinity = None
    tolerations: Tolerations = ()
    priority_class: PriorityClass = ""
    worker_annotations: Annotated[dict[str, str] | None, about("Annotations of the pods.")] = None
    custom_init_containers: InitContainers = ()
    image_pull_secrets: PullSecrets = ()
    slurmd: Annotated[Slurmd, about("The slurmd container.")]
    munge: Annotated[WorkerContainer, about("The munge container.")]
    sssd: Annotated[WorkerContainer | None, about("The sssd container.")] = None
    sssd_debug_level: Annotated[int, about("Debug level of sssd.", INT32, {"minimum": 0})] = 0
    sssd_conf_secret_ref_name: Annotated[
        str, about("Secret with sssd.conf; generated when empty.")
    ] = ""
    sssd_ldap_ca_config_map_ref_name: Annotated[
        str, about("ConfigMap with CA certificates for LDAP.")
    ] = field(default="", name="sssdLdapCAConfigMapRefName")
    node_config: Annotated[NodeConfig, about("Values of the Slurm nodes.")] = NodeConfig()
    gpu: Annotated[Gpu, about("GPUs of the workers.")] = Gpu()
    docker: Annotated[Docker | None, about("Docker in the workers.")] = None
    topology: Annotated[Fabric, about("Place of the workers in the topology.")] = Fabric()
    config_map_ref_sshd: Annotated[str, about("ConfigMap with sshd_config.")] = ""
    config_map_ref_supervisord: Annotated[str, about("ConfigMap with supervisord.conf.")] = ""
    node_attributes: Annotated[
        NodeAttributes | None, about("Up to version 1.22; nodeConfig since.")
    ] = None
    sshd: Annotated[str, about("In version 1.19; configMapRefSshd since.")] = ""
    supervisord: Annotated[str, about("In version 1.19; configMapRefSupervisord since.")] = ""


class NodeSetStatus(Status, frozen=True, omit_defaults=False):
    """What a set of Slurm nodes is. A count of zero is written, not left out."""

    phase: Annotated[
        str, about("Pending, Configuring, Provisioning, Ready, Degraded or Terminating.")
    ] = "Pending"
    replicas: Annotated[int, about("Workers that are available.", INT32)] = 0
    label_selector: Annotated[str, about("Label selector of the pods, for autoscalers.")] = ""
    workers: Annotated[WorkerCounts | None, about("Counts of pods and Slurm nodes.")] = None


def _absent() -> NodeSetSpec:
    """The spec of an object that was stored without one; its rules report what is missing."""
    image = Image(repository="")
    volumes = SlurmdVolumes(spool=SpoolSource(), jail=JailSource())
    return NodeSetSpec(
        slurmd=Slurmd(image=image, resources={}, volumes=volumes),
        munge=WorkerContainer(image=image, resources={}),
    )


class NodeSet(KubeObject, frozen=True):
    """Workers of a SlurmCluster, each a pod with slurmd."""

    spec: Annotated[
        NodeSetSpec,
        about(
            "What the Slurm nodes should be.",
            rule(
                "!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? "
                f"(self.maxUnavailable >= 1 && self.maxUnavailable <= {MOST_UNAVAILABLE}) : "
                "(self.maxUnavailable.matches('^[1-9][0-9]*%$') && "
                "int(self.maxUnavailable.find('^[0-9]+')) * self.replicas / 100 <= "
                f"{MOST_UNAVAILABLE}))",
                MAX_UNAVAILABLE,
            ),
        ),
    ] = _absent()
    status: Annotated[NodeSetStatus, about("What they are.", {"required": ["replicas"]})] = (
        NodeSetStatus()
    )


NODE_SETS = Resource(GROUP, VERSION, "NodeSet", "nodesets", NodeSet, optional=True)
INFO = KindInfo(
    NODE_SETS,
    (),
    (
        Column("Status", ".status.phase"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Ready", ".status.replicas", "integer"),
        Column("Ephemeral", ".spec.ephemeralNodes", "boolean"),
    ),
    scale_selector=".status.labelSelector",
)
