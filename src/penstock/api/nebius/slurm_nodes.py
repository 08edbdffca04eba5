"""The daemons of a SlurmCluster beside its workers and its accounting."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.kubernetes.pvc_spec import Quantity
from penstock.api.kubernetes.schema import (
    DEFAULT,
    INT32,
    INT64,
    OPAQUE,
    PROMETHEUS_DURATION,
    UNSTORED,
    about,
    rule,
)
from penstock.api.nebius.accounting import AccountingNode
from penstock.api.nebius.common import NodeContainer, SlurmNode, SssdNode
from penstock.api.nebius.volumes import (
    CustomMounts,
    JailSubMounts,
    JailVolume,
    NodeVolume,
    SpoolVolume,
)
from penstock.api.nebius.worker import WorkerNode

MEMORY_ORDER = "memoryHigh must not exceed memoryMax"
LOOKBACK = "accountingJobsLookback must be greater than zero"
SERVICE_TYPES = ("LoadBalancer", "NodePort")
_Duration = Annotated[str, about("A Prometheus duration, such as 30s.", PROMETHEUS_DURATION)]
_Relabel = Annotated[
    tuple[Annotated[Json, about("A RelabelConfig of Prometheus.", OPAQUE)], ...],
    about("Rules for labels."),
]


class OpenMetricsMonitor(KubeStruct, frozen=True):
    """The ServiceMonitor of slurmctld."""

    interval: _Duration = "30s"
    scrape_timeout: _Duration = "28s"
    endpoints: Annotated[
        tuple[
            Annotated[
                Literal["jobs", "jobs-users-accts", "nodes", "partitions", "scheduler"],
                about("A path below /metrics."),
            ],
            ...,
        ],
        about("Paths that are read; all of them when empty."),
    ] = ()


class OpenMetrics(KubeStruct, frozen=True):
    """slurmctld's own metrics."""

    enabled: Annotated[bool, about("Whether slurmctld serves metrics.")] = True
    service_monitor: Annotated[
        OpenMetricsMonitor, about("The ServiceMonitor of slurmctld.", {DEFAULT: {}})
    ] = OpenMetricsMonitor()


class ControllerVolumes(KubeStruct, frozen=True, kw_only=True):
    """Volumes of slurmctld's pod."""

    spool: SpoolVolume
    jail: JailVolume = NodeVolume()
    custom_mounts: CustomMounts = ()


class ControllerNode(SssdNode, frozen=True, kw_only=True):
    """slurmctld."""

    size: Annotated[int | None, about("Not used: there is one slurmctld.", INT32)] = None
    slurmctld: Annotated[NodeContainer, about("The slurmctld container.")]
    munge: Annotated[NodeContainer, about("The munge container.")]
    volumes: Annotated[ControllerVolumes, about("Volumes of the pod.")]
    service_account_name: Annotated[str, about("ServiceAccount of the pod.")] = ""
    open_metrics: Annotated[
        OpenMetrics | None,
        about("slurmctld's own metrics: on when absent, off with spec.slurmNodes.worker."),
    ] = None


class LoginVolumes(KubeStruct, frozen=True, kw_only=True):
    """Volumes of login pods."""

    jail: JailVolume = NodeVolume()
    jail_sub_mounts: JailSubMounts = ()
    custom_mounts: CustomMounts = ()


class UserIsolation(KubeStruct, frozen=True):
    """A cgroup for each user of a login pod."""

    enabled: Annotated[bool, about("Whether each user has a cgroup.")] = False
    memory_high: Annotated[
        Quantity | None, about("memory.high of a user; 80 % of sshd's memory when absent.")
    ] = None
    memory_max: Annotated[
        Quantity | None, about("memory.max of a user; 90 % of sshd's memory when absent.")
    ] = None
    cpu_weight: Annotated[
        int, about("cpu.weight of a user.", INT64, {"minimum": 1, "maximum": 10000})
    ] = 100


class LoginNode(SssdNode, frozen=True, kw_only=True):
    """Login pods."""

    sshd: Annotated[NodeContainer, about("The sshd container.")]
    munge: Annotated[NodeContainer, about("The munge container.")]
    volumes: Annotated[LoginVolumes, about("Volumes of the pods.")]
    ssh_root_public_keys: Annotated[
        tuple[Annotated[str, about("A public key.")], ...], about("Public keys of root.")
    ]
    sshd_service_type: Annotated[str, about("Type of the Service: LoadBalancer or NodePort.")]
    sshd_service_annotations: Annotated[
        dict[str, str] | None, about("Annotations of the Service.")
    ] = None
    sshd_service_load_balancer_ip: Annotated[str, about("loadBalancerIP of the Service.")] = field(
        default="", name="sshdServiceLoadBalancerIP"
    )
    sshd_service_load_balancer_source_ranges: Annotated[
        tuple[Annotated[str, about("A CIDR.")], ...],
        about("loadBalancerSourceRanges of the Service."),
    ] = ()
    sshd_service_node_port: Annotated[int, about("nodePort of the Service.", INT32)] = 0
    sshd_config_map_ref_name: Annotated[
        str, about("ConfigMap with sshd_config; generated when empty.")
    ] = ""
    user_isolation: Annotated[
        UserIsolation | None,
        about(
            "Limits for each user.",
            rule(
                "!has(self.memoryHigh) || !has(self.memoryMax) || "
                "quantity(string(self.memoryHigh))"
                ".compareTo(quantity(string(self.memoryMax))) <= 0",
                MEMORY_ORDER,
            ),
        ),
    ] = None


class RestNode(SlurmNode, frozen=True, kw_only=True):
    """slurmrestd."""

    enabled: Annotated[bool, about("Whether users may reach slurmrestd.")] = False
    thread_count: Annotated[
        int, about("Threads of slurmrestd.", INT32, {"minimum": 2, "maximum": 1024})
    ] = 3
    max_connections: Annotated[
        int, about("Connections of slurmrestd at a time.", INT32, {"minimum": 2})
    ] = 10
    rest: Annotated[
        NodeContainer | None, about("The slurmrestd container; absent: the image of Penstock.")
    ] = None


class PodMonitorConfig(KubeStruct, frozen=True):
    """The PodMonitor of the exporter."""

    job_label: Annotated[str, about("jobLabel.")] = ""
    interval: _Duration = ""
    scrape_timeout: _Duration = ""
    relabel_config: _Relabel = ()
    metric_relabel_configs: _Relabel = ()


class OlderExporterContainer(NodeContainer, frozen=True):
    """The exporter's container up to version 1.20."""

    pod_template_name_ref: Annotated[str, about("A PodTemplate.")] = ""


class ExporterVolumes(KubeStruct, frozen=True):
    """Volumes of the exporter up to version 1.20."""

    jail: JailVolume


POD_MONITOR = {"interval": "30s", "jobLabel": "slurm-exporter", "scrapeTimeout": "20s"}


class ExporterNode(SlurmNode, frozen=True, kw_only=True):
    """The exporter of Slurm's metrics."""

    size: Annotated[int | None, about("Not used: there is one exporter.", INT32)] = None
    enabled: Annotated[bool, about("Whether the cluster has an exporter.")] = False
    exporter_container: Annotated[NodeContainer | None, about("The exporter's container.")] = None
    pod_monitor_config: Annotated[
        PodMonitorConfig, about("The PodMonitor.", {DEFAULT: POD_MONITOR})
    ] = PodMonitorConfig(job_label="slurm-exporter", interval="30s", scrape_timeout="20s")
    collection_interval: _Duration = "30s"
    max_collector_inflight: Annotated[
        int, about("Collections at a time.", INT32, {"minimum": 1}, UNSTORED)
    ] = 1
    job_source: Annotated[
        Literal["controller", "accounting"], about("Daemon that is queried for jobs.", UNSTORED)
    ] = "controller"
    accounting_jobs_lookback: Annotated[
        str,
        about(
            "Age of the oldest jobs of accounting, as a Prometheus duration.",
            PROMETHEUS_DURATION,
            UNSTORED,
            rule("self.matches('[1-9]')", LOOKBACK),
        ),
    ] = "1h"
    service_account_name: Annotated[str, about("ServiceAccount of the pod.")] = ""
    exporter: Annotated[
        OlderExporterContainer | None, about("The exporter's container up to version 1.20.")
    ] = None
    munge: Annotated[NodeContainer | None, about("The munge container up to version 1.20.")] = None
    volumes: Annotated[ExporterVolumes | None, about("Volumes up to version 1.20.")] = None


class SlurmNodes(KubeStruct, frozen=True, kw_only=True):
    """The daemons of a cluster."""

    accounting: Annotated[AccountingNode, about("slurmdbd and its database.")]
    controller: Annotated[ControllerNode, about("slurmctld.")]
    exporter: Annotated[ExporterNode, about("The exporter of Slurm's metrics.")]
    login: Annotated[LoginNode, about("Login pods.")]
    rest: Annotated[RestNode, about("slurmrestd.")]
    worker: Annotated[WorkerNode | None, about("Workers, up to version 2.0; NodeSets since.")] = (
        None
    )
