"""SlurmCluster: one Slurm cluster with its shared root, in the shape of 1.19 to 2.0 and of 5.0.

Both shapes are one schema. Where a default differs between the versions, the API server stores
none: `penstock.api.nebius.version_defaults` has the one that applies.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.cluster.slurmctld_status import SlurmctldStatus
from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    DEFAULT,
    INT32,
    INT64,
    UNSTORED,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.nebius.accounting import AccountingNode
from penstock.api.nebius.common import (
    CLUSTER_VERSION,
    GROUP,
    NOT_EMPTY,
    UNCONFINED,
    Affinity,
    AppArmorProfile,
    FilterName,
    HostUsers,
    ImagePullPolicy,
    NodeContainer,
    NodeSelector,
    PriorityClass,
    PullSecrets,
    SlurmNode,
    Tolerations,
)
from penstock.api.nebius.configuration import (
    HealthCheckConfig,
    MpiConfig,
    PartitionConfiguration,
    Partitions,
    PlugStackConfig,
    SlurmConfig,
    Topology,
    WorkerFeature,
)
from penstock.api.nebius.older_fields import NcclSettings, PeriodicChecks, Telemetry
from penstock.api.nebius.slurm_nodes import (
    ControllerNode,
    ControllerVolumes,
    ExporterNode,
    LoginNode,
    LoginVolumes,
    RestNode,
    SlurmNodes,
)
from penstock.api.nebius.volumes import NamedVolumeSource, NodeVolume
from penstock.api.nebius.worker import CgroupVersion
from penstock.api.nebius.worker_counts import WorkerCounts

WORKERS_BESIDE_NODE_SETS = (
    "Worker size must be zero when NodeSetRefs are used in partition configuration"
)
JAIL_MODE_KEPT = "spec.jailMode cannot change: create another SlurmCluster with the other mode"
POPULATE_JAIL_NEEDED = "spec.populateJail: Required value, unless spec.jailMode is None"
JailMode = Literal["Shared", "PerWorker", "None"]
JobIsolation = Literal["None", "PerJob"]
INTERFACE_PATTERN = "^[A-Za-z][A-Za-z0-9._-]{0,14}$"
"""Names of Linux (at most 15 characters) that Open MPI does not take for an address."""
NO_INTERFACE = (
    "is no name of a network interface: write a letter, then at most 14 letters, digits, dots, "
    "underscores or hyphens, such as eth0"
)
MOST_INTERFACES = 8
AUTH_TYPE_KEPT = (
    "spec.authType cannot change, as all daemons and jobs would have to change at once: create "
    "another SlurmCluster with the other type, and move users there"
)
AuthType = Literal["auth/munge", "auth/slurm"]
AUTH_SLURM: AuthType = "auth/slurm"
_JAIL_MODE = "(has({0}.jailMode) ? {0}.jailMode : 'Shared')"
_AUTH_TYPE = "(has({0}.authType) ? {0}.authType : 'auth/munge')"
WAIT_ABOVE_POLL = "ReconfigureWaitTimeout must be greater than ReconfigurePollInterval"
Maintenance = Literal[
    "none",
    "downscale",
    "downscaleAndDeletePopulateJail",
    "downscaleAndOverwritePopulateJail",
    "skipPopulateJail",
]


class NodeFilter(KubeStruct, frozen=True, kw_only=True):
    """A named placement of pods."""

    name: Annotated[str, about("Name of the filter.", NOT_EMPTY)]
    affinity: Affinity = None
    node_selector: NodeSelector = None
    tolerations: Tolerations = ()


class PopulateJail(KubeStruct, frozen=True, kw_only=True):
    """The Job that fills the jail."""

    image: Annotated[str, about("Image with the content of the jail.")]
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    image_pull_secrets: PullSecrets = ()
    k8s_node_filter_name: FilterName
    jail_snapshot_volume: Annotated[
        NodeVolume | None, about("Volume with a snapshot to fill the jail from.")
    ] = None
    overwrite: Annotated[bool, about("Whether a filled jail is filled again.")] = False
    priority_class: PriorityClass = ""
    app_armor_profile: AppArmorProfile = UNCONFINED
    host_users: HostUsers = None


class Secrets(KubeStruct, frozen=True):
    """Secrets of the cluster."""

    sshd_keys_name: Annotated[
        str, about("Secret with ssh host keys; <cluster>-sshd-keys when empty.")
    ] = ""


class ConfigWriter(KubeStruct, frozen=True, kw_only=True):
    """sconfigcontroller, which writes configuration into the jail."""

    node: Annotated[SlurmNode, about("Placement of its pods.")] = SlurmNode(k8s_node_filter_name="")
    container: Annotated[NodeContainer, about("Its container.")] = NodeContainer(image="")
    run_as_uid: Annotated[int | None, about("User of the pod and of the files.", INT64)] = None
    run_as_gid: Annotated[int | None, about("Group of the pod and of the files.", INT64)] = None
    reconfigure_poll_interval: Annotated[str, about("Time between two checks of the nodes.")] = (
        "20s"
    )
    reconfigure_wait_timeout: Annotated[str, about("Most time for nodes to reconfigure.")] = "5m"
    host_users: Annotated[bool | None, about("Not used: node.hostUsers is.")] = None
    service_account_name: Annotated[str, about("ServiceAccount of the pod.", NOT_EMPTY)] = ""
    jail_slurm_config_path: Annotated[
        str, about("Folder of the files, up to version 1.21.", UNSTORED)
    ] = "/mnt/jail/etc/slurm"


class SlurmClusterSpec(KubeStruct, frozen=True, kw_only=True):
    """What a Slurm cluster should be."""

    cr_version: Annotated[str, about("Version of the chart that made the object.")] = ""
    cluster_type: Annotated[
        Literal["gpu", "cpu"] | None,
        about("Kind of the workers, with spec.slurmNodes.worker: gpu when absent."),
    ] = None
    pause: Annotated[bool | None, about("Up to version 1.16.")] = None
    maintenance: Annotated[Maintenance, about("Maintenance mode.")] = "none"
    jail_mode: Annotated[
        JailMode,
        about(
            "Root of jobs and logins: Shared is one volume for all pods, PerWorker a PVC for each "
            "worker beside the one that logins share, None the root of each container. It cannot "
            "change.",
            UNSTORED,
        ),
    ] = "Shared"
    job_isolation: Annotated[
        JobIsolation,
        about(
            "PerJob: each job has its own /tmp, /var/tmp, /dev/shm and System V shared memory on a "
            "worker, which its steps share and its end removes. None: all jobs of a worker have "
            "the same. It counts for jobs that begin afterwards.",
            UNSTORED,
        ),
    ] = "None"
    job_network_interfaces: Annotated[
        tuple[
            Annotated[
                str,
                about(
                    "Name of an interface.",
                    {"pattern": INTERFACE_PATTERN, "maxLength": 15},
                    rule(f"self.matches('{INTERFACE_PATTERN}')", f"The value {NO_INTERFACE}"),
                ),
            ],
            ...,
        ],
        about(
            "Network interfaces of workers for IP connections between processes of a job, such as "
            "eth0. Each step in the jail has them in the variables of NCCL, Gloo, Open MPI and "
            "PMIx, unless the user set these. RDMA devices are not limited. It counts for jobs "
            "that begin afterwards; without it, each library chooses.",
            {"x-kubernetes-list-type": "set", "maxItems": MOST_INTERFACES},
        ),
    ] = ()
    auth_type: Annotated[
        AuthType,
        about(
            "AuthType of Slurm: auth/munge needs munged in each pod, auth/slurm a key alone. "
            "It cannot change.",
            UNSTORED,
        ),
    ] = "auth/munge"
    populate_jail: Annotated[
        PopulateJail, about("The Job that fills the jail; absent with jailMode None.", UNSTORED)
    ] = PopulateJail(image="", k8s_node_filter_name="")
    k8s_node_filters: Annotated[
        tuple[Annotated[NodeFilter, about("One filter.")], ...],
        about("Named placements of pods.", {"minItems": 1}),
    ]
    volume_sources: Annotated[
        tuple[Annotated[NamedVolumeSource, about("One volume.")], ...],
        about("Named volumes, one of them jail."),
    ] = ()
    secrets: Annotated[Secrets, about("Secrets of the cluster.")]
    slurm_nodes: Annotated[SlurmNodes, about("The daemons of the cluster.")]
    partition_configuration: Partitions = PartitionConfiguration()
    slurm_config: Annotated[SlurmConfig, about("Values of slurm.conf.", {DEFAULT: {}})] = (
        SlurmConfig()
    )
    topology: Annotated[Topology | None, about("Settings of topology/block.")] = None
    custom_slurm_config: Annotated[str, about("Lines added at the end of slurm.conf.")] = ""
    custom_cgroup_config: Annotated[str, about("Lines that replace those of cgroup.conf.")] = ""
    cgroup_version: Annotated[
        CgroupVersion,
        about("Version of cgroups; spec.slurmNodes.worker has a field of its own.", UNSTORED),
    ] = "v2"
    mpi_config: Annotated[MpiConfig, about("Values of mpi.conf.", {DEFAULT: {}})] = MpiConfig()
    plug_stack_config: Annotated[
        PlugStackConfig, about("Lines of plugstack.conf.", {DEFAULT: {}})
    ] = PlugStackConfig()
    sconfig_controller: Annotated[
        ConfigWriter,
        about(
            "Writer of configuration into the jail.",
            rule(
                "!has(self.reconfigureWaitTimeout) || !has(self.reconfigurePollInterval) || "
                "duration(self.reconfigureWaitTimeout) > duration(self.reconfigurePollInterval)",
                WAIT_ABOVE_POLL,
            ),
        ),
    ] = field(default=ConfigWriter(), name="sConfigController")
    use_default_app_armor_profile: Annotated[
        bool, about("Whether the security profiles operator makes an AppArmor profile.")
    ] = False
    health_check_config: Annotated[
        HealthCheckConfig | None, about("HealthCheck keys of slurm.conf.")
    ] = None
    worker_features: Annotated[
        tuple[Annotated[WorkerFeature, about("One feature.")], ...],
        about("Features of workers, with spec.slurmNodes.worker."),
    ] = ()
    slurm_topology_config_map_ref_name: Annotated[
        str, about("ConfigMap with topology.conf, up to version 1.21.")
    ] = ""
    nccl_settings: Annotated[NcclSettings | None, about("Up to version 1.21.")] = None
    periodic_checks: Annotated[PeriodicChecks | None, about("Up to version 1.21.")] = None
    telemetry: Annotated[Telemetry | None, about("Up to version 1.21.")] = None

    @property
    def has_jail(self) -> bool:
        """Whether jobs and logins have a root other than that of their container."""
        return self.jail_mode != "None"

    @property
    def has_own_roots(self) -> bool:
        """Whether each worker has a root of its own, beside the jail that logins share."""
        return self.jail_mode == "PerWorker"

    @property
    def has_munge(self) -> bool:
        """Whether daemons and clients sign their messages with munge."""
        return self.auth_type != AUTH_SLURM


class SlurmClusterStatus(SlurmctldStatus, frozen=True):
    """What a Slurm cluster is."""

    phase: Annotated[str, about("Pending, Reconciling, Not available or Available.")] = ""
    ready_login: Annotated[int | None, about("Login pods that are available.", INT32)] = None
    ready_workers: Annotated[int | None, about("Workers that are ready.", INT32)] = None
    ready_sconfig_controller: Annotated[
        int | None, about("Pods of sconfigcontroller that are available.", INT32)
    ] = field(default=None, name="readySConfigController")
    workers: Annotated[
        WorkerCounts | None, about("Counts of spec.slurmNodes.worker's pods and Slurm nodes.")
    ] = None


def _absent() -> SlurmClusterSpec:
    """The spec of an object that was stored without one; its rules report what is missing."""
    container, volume = NodeContainer(image=""), NodeVolume()
    return SlurmClusterSpec(
        k8s_node_filters=(),
        secrets=Secrets(),
        slurm_nodes=SlurmNodes(
            accounting=AccountingNode(k8s_node_filter_name=""),
            controller=ControllerNode(
                slurmctld=container,
                munge=container,
                volumes=ControllerVolumes(spool=volume, jail=volume),
                k8s_node_filter_name="",
            ),
            exporter=ExporterNode(k8s_node_filter_name=""),
            login=LoginNode(
                sshd=container,
                munge=container,
                volumes=LoginVolumes(jail=volume),
                ssh_root_public_keys=(),
                sshd_service_type="",
                k8s_node_filter_name="",
            ),
            rest=RestNode(k8s_node_filter_name=""),
        ),
    )


class SlurmCluster(KubeObject, frozen=True):
    """One Slurm cluster with a root that its users share."""

    spec: Annotated[
        SlurmClusterSpec,
        about(
            "What the Slurm cluster should be.",
            rule(
                "!has(self.slurmNodes.worker) || !has(self.slurmNodes.worker.size) || "
                "self.slurmNodes.worker.size == 0 || !has(self.partitionConfiguration) || "
                "!has(self.partitionConfiguration.partitions) || "
                "!self.partitionConfiguration.partitions.exists(p, "
                "has(p.nodeSetRefs) && size(p.nodeSetRefs) > 0)",
                WORKERS_BESIDE_NODE_SETS,
            ),
            rule(
                f"{_JAIL_MODE.format('self')} == {_JAIL_MODE.format('oldSelf')}",
                JAIL_MODE_KEPT,
            ),
            rule(
                f"{_AUTH_TYPE.format('self')} == {_AUTH_TYPE.format('oldSelf')}",
                AUTH_TYPE_KEPT,
            ),
            rule(
                f"has(self.populateJail) || {_JAIL_MODE.format('self')} == 'None'",
                POPULATE_JAIL_NEEDED,
            ),
        ),
    ] = _absent()
    status: Annotated[SlurmClusterStatus, about("What it is.")] = SlurmClusterStatus()


def _condition(type_: str, part: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{part}'


SLURM_CLUSTERS = Resource(
    GROUP, CLUSTER_VERSION, "SlurmCluster", "slurmclusters", SlurmCluster, optional=True
)
INFO = KindInfo(
    SLURM_CLUSTERS,
    (),
    (
        Column("Status", ".status.phase"),
        Column("Controllers", _condition("ControllersAvailable")),
        Column("Workers", ".status.readyWorkers", "integer"),
        Column("Login", ".status.readyLogin", "integer"),
        Column("SConfigCtrl", _condition("SConfigControllerAvailable")),
        Column("Accounting", _condition("AccountingAvailable")),
    ),
)
