"""Parts of a SlurmCluster up to version 1.21 that later versions do not have."""

from __future__ import annotations

from typing import Annotated, Literal

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import INT32, INT64, about, rule
from penstock.api.nebius.common import UNCONFINED, AppArmorProfile, FilterName, ImagePullPolicy

OTEL_HOSTS = "Both OtelCollectorGrpcHost and OtelCollectorHttpHost cannot be set at the same time."


class NcclSettings(KubeStruct, frozen=True):
    """Topology for NCCL."""

    topology_type: Annotated[Literal["auto", "custom"], about("Source of the topology.")] = "auto"
    topology_data: Annotated[str, about("The topology, for type custom.")] = ""


class NcclArguments(KubeStruct, frozen=True):
    """Arguments of the benchmark."""

    min_bytes: Annotated[str, about("Smallest message.")] = "512Mb"
    max_bytes: Annotated[str, about("Largest message.")] = "8Gb"
    step_factor: Annotated[str, about("Factor between two sizes.")] = "2"
    timeout: Annotated[str, about("Time limit.")] = "20:00"
    threshold_more_than: Annotated[str, about("Bandwidth below which the check fails.")] = "0"
    use_infiniband: Annotated[bool, about("Whether InfiniBand is used.")] = True


class FailureActions(KubeStruct, frozen=True):
    """Consequences of a failed benchmark."""

    set_slurm_node_drain_state: Annotated[bool, about("Whether the Slurm node is drained.")] = False


class NcclBenchmark(KubeStruct, frozen=True, kw_only=True):
    """A benchmark of NCCL in a CronJob."""

    enabled: Annotated[bool, about("Whether it runs.")] = False
    image: Annotated[str, about("The image.")]
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    k8s_node_filter_name: FilterName
    schedule: Annotated[str, about("Schedule of the CronJob.")] = "0 */3 * * *"
    active_deadline_seconds: Annotated[int, about("Time limit of the Job.", INT64)] = 1800
    successful_jobs_history_limit: Annotated[int, about("Finished Jobs to keep.", INT32)] = 3
    failed_jobs_history_limit: Annotated[int, about("Failed Jobs to keep.", INT32)] = 16
    app_armor_profile: AppArmorProfile = UNCONFINED
    nccl_arguments: Annotated[NcclArguments | None, about("Arguments.")] = None
    failure_actions: Annotated[FailureActions | None, about("Consequences of a failure.")] = None


class PeriodicChecks(KubeStruct, frozen=True):
    """Checks by CronJobs; ActiveChecks since version 1.20."""

    nccl_benchmark: Annotated[NcclBenchmark, about("The benchmark of NCCL.")]


class JobsTelemetry(KubeStruct, frozen=True):
    """Telemetry of jobs."""

    otel_collector_grpc_host: Annotated[str, about("Host of a collector, by gRPC.")] = ""
    otel_collector_http_host: Annotated[str, about("Host of a collector, by HTTP.")] = ""
    otel_collector_path: Annotated[str, about("Path of the collector.")] = "/v1/metrics"
    otel_collector_port: Annotated[int, about("Port of the collector.", INT32)] = 4317
    send_jobs_events: Annotated[bool, about("Whether events of jobs are sent.")] = False
    send_otel_metrics: Annotated[bool, about("Whether metrics are sent.")] = False


class OpenTelemetryCollector(KubeStruct, frozen=True):
    """A collector in the cluster."""

    enabled: Annotated[bool, about("Whether there is one.")] = False
    otel_collector_port: Annotated[int, about("Its port.", INT32)] = 4317
    pod_template_name_ref: Annotated[str, about("A PodTemplate.")] = ""
    replicas_otel_collector: Annotated[int, about("Its pods.", INT32)] = 1


class Telemetry(KubeStruct, frozen=True):
    """Telemetry of the cluster."""

    jobs_telemetry: Annotated[
        JobsTelemetry | None,
        about(
            "Telemetry of jobs.",
            rule(
                "!(has(self.otelCollectorGrpcHost) && has(self.otelCollectorHttpHost))", OTEL_HOSTS
            ),
        ),
    ] = None
    open_telemetry_collector: Annotated[
        OpenTelemetryCollector | None, about("A collector in the cluster.")
    ] = None
