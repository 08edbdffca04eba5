"""Configuration files of a SlurmCluster: slurm.conf, mpi.conf, plugstack.conf, partitions."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import DEFAULT, INT32, INT64, UNSTORED, about, rule
from penstock.api.nebius.common import NOT_EMPTY, TEXT_DEFAULT

PMIX_ENV = "OMPI_MCA_btl_tcp_if_include=eth0"
DEBUG_FLAGS = (
    "Accrue|Agent|AuditRPCs|Backfill|BackfillMap|BurstBuffer|Cgroup|ConMgr|CPU_Bind|CpuFrequency|"
    "Data|DBD_Agent|Dependency|Elasticsearch|Energy|Federation|FrontEnd|Gres|Hetjob|Gang|"
    "GLOB_SILENCE|JobAccountGather|JobComp|JobContainer|License|Network|NetworkRaw|NodeFeatures|"
    "NO_CONF_HASH|Power|Priority|Profile|Protocol|Reservation|Route|Script|SelectType|Steps|"
    "Switch|TLS|TraceJobs|Triggers"
)
STRUCTURED = "Structured partition configuration requires at least one partition"


class SlurmConfig(KubeStruct, frozen=True):
    """Values of slurm.conf. Source: slurm.conf(5)."""

    def_mem_per_node: Annotated[int, about("DefMemPerNode, in MiB.", INT32)] = 0
    def_cpu_per_gpu: Annotated[int, about("DefCpuPerGPU.", INT32)] = field(
        default=4, name="defCpuPerGPU"
    )
    complete_wait: Annotated[int, about("CompleteWait, in seconds.", INT32)] = 5
    epilog: Annotated[str, about("Epilog.", TEXT_DEFAULT)] = ""
    prolog: Annotated[str, about("Prolog.", TEXT_DEFAULT)] = ""
    task_prolog: Annotated[str, about("TaskProlog.")] = ""
    task_plugin_param: Annotated[str, about("TaskPluginParam.", TEXT_DEFAULT)] = ""
    max_job_count: Annotated[int, about("MaxJobCount.", INT32)] = 20000
    min_job_age: Annotated[
        int | None,
        about("MinJobAge, in seconds: 1800 when absent, 28800 with spec.slurmNodes.worker.", INT32),
    ] = None
    message_timeout: Annotated[int, about("MessageTimeout, in seconds.", INT32)] = 60
    topology_plugin: Annotated[str, about("TopologyPlugin.")] = "topology/tree"
    topology_param: Annotated[str, about("TopologyParam.")] = "SwitchAsNodeRank"
    suspend_time: Annotated[
        int, about("SuspendTime, in seconds; below 0 it is off.", INT32, UNSTORED)
    ] = 1_000_000_000
    resume_timeout: Annotated[
        int, about("ResumeTimeout, in seconds.", INT32, {"minimum": 1}, UNSTORED)
    ] = 1800
    debug_flags: Annotated[
        str,
        about("DebugFlags, up to version 1.21.", {"pattern": f"^(({DEBUG_FLAGS})(,)?)+$"}),
    ] = ""
    topology_block_size: Annotated[
        int | None, about("BlockSizes, in version 1.23; spec.topology.blockSize since.")
    ] = None


class MpiConfig(KubeStruct, frozen=True):
    """Values of mpi.conf."""

    pmix_env: Annotated[str, about("PMIxEnv; left out when empty.")] = PMIX_ENV


class Topology(KubeStruct, frozen=True):
    """Settings of topology/block."""

    block_size: Annotated[int, about("BlockSizes of topology.conf.")] = 18


class PartitionSpec(KubeStruct, frozen=True):
    """One partition of a structured configuration."""

    name: Annotated[str, about("Name of the partition.", NOT_EMPTY)]
    is_all: Annotated[bool, about("Whether it has all nodes, whatever nodeSetRefs names.")] = False
    node_set_refs: Annotated[
        tuple[Annotated[str, about("Name of a NodeSet.")], ...], about("NodeSets of the partition.")
    ] = ()
    config: Annotated[str, about("Other keys of the PartitionName line.")] = ""


class PartitionConfiguration(KubeStruct, frozen=True):
    """Partitions of the cluster."""

    config_type: Annotated[
        Literal["default", "custom", "structured"],
        about("One partition of all nodes, lines of slurm.conf, or partitions of NodeSets."),
    ] = "default"
    raw_config: Annotated[
        tuple[Annotated[str, about("A PartitionName line.")], ...],
        about("Lines of slurm.conf, for configType custom."),
    ] = ()
    partitions: Annotated[
        tuple[Annotated[PartitionSpec, about("One partition.")], ...],
        about("Partitions, for configType structured."),
    ] = ()


Partitions = Annotated[
    PartitionConfiguration,
    about(
        "Partitions of the cluster.",
        rule(
            "!has(self.configType) || self.configType != 'structured' || "
            "(has(self.partitions) && size(self.partitions) > 0)",
            STRUCTURED,
        ),
    ),
]


class HealthCheckNodeState(KubeStruct, frozen=True):
    """A state of Slurm nodes."""

    state: Annotated[
        Literal["ALLOC", "ANY", "CYCLE", "IDLE", "NONDRAINED_IDLE", "MIXED"],
        about("State, as HealthCheckNodeState of slurm.conf has it."),
    ]


class HealthCheckConfig(KubeStruct, frozen=True):
    """HealthCheck keys of slurm.conf."""

    health_check_interval: Annotated[int, about("HealthCheckInterval, in seconds.", INT32)]
    health_check_program: Annotated[str, about("HealthCheckProgram.")]
    health_check_node_state: Annotated[
        tuple[Annotated[HealthCheckNodeState, about("One state.")], ...],
        about("HealthCheckNodeState.", {"minItems": 1}),
    ]


class WorkerFeature(KubeStruct, frozen=True):
    """A feature of workers, with spec.slurmNodes.worker."""

    name: Annotated[str, about("The feature.", NOT_EMPTY)]
    hostlist_expr: Annotated[str, about("Workers that have it, as a host list.", NOT_EMPTY)]
    nodeset_name: Annotated[str, about("Name of a NodeSet line of slurm.conf.")] = ""


class Pyxis(KubeStruct, frozen=True):
    """The SPANK plug-in pyxis, which runs jobs in containers."""

    required: Annotated[bool, about("Whether jobs fail without the plug-in.")] = True
    use_squashfuse: Annotated[
        bool, about("Whether images are mounted by squashfuse.", UNSTORED)
    ] = False
    importer_path: Annotated[
        str | None, about("Script that imports images, as importer= of pyxis.")
    ] = None
    container_image_save: Annotated[
        str | None, about("Folder for imported images, with spec.slurmNodes.worker.")
    ] = None


class NcclDebug(KubeStruct, frozen=True):
    """The SPANK plug-in that collects debug output of NCCL."""

    required: Annotated[bool, about("Whether jobs fail without the plug-in.")] = False
    enabled: Annotated[bool, about("Whether it is on for each job.")] = False
    log_level: Annotated[
        Literal["VERSION", "WARN", "INFO", "TRACE"], about("Level of the output.")
    ] = "INFO"
    output_to_file: Annotated[bool, about("Whether it writes files.")] = True
    output_to_std_out: Annotated[bool, about("Whether it writes to the job's output.")] = False
    output_directory: Annotated[str | None, about("Folder of the files.")] = None


class NcclInspector(KubeStruct, frozen=True):
    """The SPANK plug-in that prepares the profiler of NCCL."""

    required: Annotated[bool, about("Whether jobs fail without the plug-in.")] = False
    enabled: Annotated[bool, about("Whether it is on for each job.")] = True
    profiler_plugin: Annotated[str, about("Path of NCCL's profiler plug-in.")] = (
        "/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so"
    )
    dump_dir: Annotated[str, about("Folder of the profiles.")] = (
        "/opt/soperator-outputs/shared/nccl_profiles/%j/%s"
    )
    dump_verbose: Annotated[bool, about("Whether profiles are verbose.")] = False
    dump_thread_interval_microseconds: Annotated[
        int, about("Microseconds between two dumps.", INT64)
    ] = 1_000_000


class CustomPlugin(KubeStruct, frozen=True):
    """One more SPANK plug-in."""

    path: Annotated[str, about("Path of the plug-in.")]
    required: Annotated[bool, about("Whether jobs fail without the plug-in.")] = False
    arguments: Annotated[dict[str, str], about("Arguments, as key=value.", {DEFAULT: {}})] = field(
        default_factory=dict[str, str]
    )


class PlugStackConfig(KubeStruct, frozen=True):
    """Lines of plugstack.conf."""

    pyxis: Annotated[Pyxis, about("Containers in jobs.", {DEFAULT: {}})] = Pyxis()
    nccl_debug: Annotated[
        NcclDebug,
        about("Debug output of NCCL.", {DEFAULT: {}}),
    ] = NcclDebug()
    nccl_inspector_pre_conf: Annotated[
        NcclInspector | None, about("Profiler of NCCL; off when absent.")
    ] = None
    custom_plugins: Annotated[
        tuple[Annotated[CustomPlugin, about("One plug-in.")], ...],
        about("More plug-ins.", {DEFAULT: []}),
    ] = ()
