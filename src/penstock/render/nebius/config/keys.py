"""Keys of slurm.conf that a SlurmCluster declares by its fields, and those that both shapes share.

Source: slurm.conf(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.api.cluster.marks import MAX_DRAINED
from penstock.api.nebius import names
from penstock.api.nebius.rule_parts import is_share
from penstock.api.nebius.version_defaults import VersionedValues, versioned_values
from penstock.base.recent_results import RecentResults
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import given, pair
from penstock.render.nebius.config.node_lines import has_gpus
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved
from penstock.slurm.daemons import SLURMDBD_PORT
from penstock.slurm.versions import METRICS_SINCE

ROOT: Final = "root"
STATE_FOLDER: Final = "/var/spool/slurmctld"
SHARE_REMARK: Final = "# Checks may drain: "
"""Begin of the line by which the checks of workers find how many nodes they may drain."""
REQUIRED: Final = {
    "AuthAltTypes": "auth/jwt",
    "AuthAltParameters": f"jwt_key={STATE_FOLDER}/jwt_hs256.key",
}
"""Options that the operator needs for slurmrestd, whatever `rest.enabled` and accounting are."""


def values_of(inputs: ConfigInputs) -> VersionedValues:
    """Values whose default depends on the shape of the SlurmCluster."""
    return versioned_values(inputs.cluster.spec)


def general(inputs: ConfigInputs) -> list[str]:
    """The names of cluster and slurmctld, and the authentication."""
    host, auth = names.controller_pod(inputs.prefix), inputs.cluster.spec.auth_type
    return [
        pair("ClusterName", inputs.name),
        pair("SlurmctldHost", f"{host}({names.service(inputs.name, 'controller')})"),
        f"AuthType={auth}",
        f"CredType={auth.replace('auth/', 'cred/')}",
        *(f"{key}={value}" for key, value in REQUIRED.items()),
    ]


def declared(inputs: ConfigInputs) -> list[str]:
    """Those of spec.slurmConfig but for power saving and logging."""
    spec = inputs.cluster.spec.slurm_config
    return given(
        ("DefMemPerNode", spec.def_mem_per_node),
        ("DefCpuPerGPU", spec.def_cpu_per_gpu),
        ("CompleteWait", spec.complete_wait),
        ("Epilog", spec.epilog),
        ("Prolog", spec.prolog),
        ("TaskProlog", spec.task_prolog),
        ("TaskPluginParam", spec.task_plugin_param),
        ("MaxJobCount", spec.max_job_count),
        ("MinJobAge", values_of(inputs).min_job_age),
        ("MessageTimeout", spec.message_timeout),
        *(_topology(inputs) if inputs.topology_conf else ()),
    )


def _topology(inputs: ConfigInputs) -> tuple[tuple[str, str], ...]:
    """The topology, which needs topology.conf.

    Without that file slurmctld does not start with topology/tree, and with one that has no node it
    rejects each job of several nodes. Seen with Slurm 26.05.
    """
    spec = inputs.cluster.spec.slurm_config
    return ("TopologyPlugin", spec.topology_plugin), ("TopologyParam", spec.topology_param)


def plugins(inputs: ConfigInputs) -> list[str]:
    """Plug-ins of jobs and nodes. Each image has its plug-in folder, so no PluginDir is named."""
    gpus = has_gpus(inputs) or values_of(inputs).cluster_type == "gpu"
    return [
        *(["GresTypes=gpu"] if gpus else []),
        f"MpiDefault={mpi_default(inputs)}",
        "MailProg=/usr/bin/true",
        "ProctrackType=proctrack/cgroup",
        "ReturnToService=2",
        "TaskPlugin=task/cgroup,task/affinity",
        "CliFilterPlugins=cli_filter/user_defaults",
        "LaunchParameters=use_interactive_step",
        "ScronParameters=enable,explicit_scancel",
        "PropagateResourceLimits=NONE",
    ]


def mpi_default(inputs: ConfigInputs) -> str:
    """The MPI plug-in of steps that name none.

    Each `srun` fails where its image lacks that plug-in, as those of Debian's packages lack PMIx.
    """
    known = inputs.mpi_plugins
    return next((one for one in ("pmix", "pmi2") if not known or one in known), "none")


def daemons(inputs: ConfigInputs, slurmd_port: int | None) -> list[str]:
    """Users, ports and folders of the daemons."""
    port = inputs.cluster.spec.slurm_nodes.controller.slurmctld.port or names.SLURMCTLD_PORT
    metrics = "metrics/openmetrics" if has_metrics(inputs) else ""
    return given(
        # The folder is slurm's: /var/run itself is not.
        ("SlurmctldPidFile", "/var/run/slurmctld/slurmctld.pid"),
        ("SlurmctldPort", port),
        ("MetricsType", metrics),
        ("SlurmdPidFile", "/var/run/slurmd.pid"),
        ("SlurmdPort", slurmd_port),
        ("SlurmdSpoolDir", "/var/spool/slurmd"),
        ("SlurmUser", slurm_user(inputs.published)),
        ("StateSaveLocation", STATE_FOLDER),
    )


def slurm_user(published: Mapping[str, str]) -> str:
    """SlurmUser of the next files: root if it is root in the files in force, as in the original's.

    Each slurmd, and the original's slurmdbd, reject another user until they read other files, and
    slurmctld would lose their nodes with all jobs. They accept root in any case.
    """
    return _recent_user(resolved(published))


def _user(text: str) -> str:
    return ROOT if Document.parse(text).get("SlurmUser") == ROOT else "slurm"


_recent_user: Final = RecentResults(_user, 8)


def has_metrics(inputs: ConfigInputs) -> bool:
    """Whether slurmctld serves metrics: they are declared, and its release has them."""
    knows = inputs.version is None or inputs.version >= METRICS_SINCE
    return knows and values_of(inputs).open_metrics.enabled


def health_checks(inputs: ConfigInputs) -> list[str]:
    """Those of spec.healthCheckConfig, after a remark with a declared share, if there are any."""
    share = inputs.cluster.metadata.annotations.get(MAX_DRAINED, "")
    remarks = [f"{SHARE_REMARK}{share}"] if is_share(share) else []
    spec = inputs.cluster.spec.health_check_config
    if spec is None:
        return remarks
    states = ",".join(one.state for one in spec.health_check_node_state)
    keys = given(
        ("HealthCheckInterval", spec.health_check_interval),
        ("HealthCheckProgram", spec.health_check_program),
        ("HealthCheckNodeState", states),
    )
    return [*remarks, *keys]


def timeouts() -> list[str]:
    """Timeouts of jobs and daemons, in seconds."""
    return given(
        ("InactiveLimit", 0),
        ("KillOnBadExit", 1),
        ("KillWait", 180),
        ("UnkillableStepTimeout", 600),
        ("SlurmctldTimeout", 180),
        ("SlurmdTimeout", 180),
        ("TCPTimeout", 15),
        ("WaitTime", 0),
    )


def selection() -> list[str]:
    """How nodes are selected for jobs."""
    return [
        "SchedulerType=sched/backfill",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK",
    ]


def logging(inputs: ConfigInputs, level: str, flags: str) -> list[str]:
    """Levels of the logs. Daemons log to their standard error, which the container shows."""
    return given(
        ("SlurmctldDebug", level),
        ("SlurmctldLogFile", "/dev/null"),
        ("SlurmdDebug", level),
        ("SlurmdLogFile", "/dev/null"),
        ("DebugFlags", inputs.cluster.spec.slurm_config.debug_flags or flags),
    )


def preemption() -> list[str]:
    """What becomes of jobs that others displace."""
    return ["JobRequeue=1", "PreemptMode=REQUEUE", "PreemptType=preempt/partition_prio"]


def accounting(inputs: ConfigInputs) -> list[str]:
    """Those of accounting; none without slurmdbd."""
    link, node = inputs.accounting, inputs.cluster.spec.slurm_nodes.accounting
    if link is None:
        return []
    spec, port = node.slurm_config, node.slurmdbd.port if node.slurmdbd is not None else None
    return given(
        ("AccountingStorageType", "accounting_storage/slurmdbd"),
        ("AccountingStorageHost", f"{names.service(link.name, 'accounting')}.{link.namespace}"),
        ("AccountingStoragePort", port or SLURMDBD_PORT),
        ("JobCompType", "jobcomp/none"),
        ("AccountingStorageTRES", spec.accounting_storage_tres if inputs.has_database else None),
        ("AccountingStoreFlags", spec.accounting_store_flags),
        ("AcctGatherInterconnectType", spec.acct_gather_interconnect_type),
        ("AcctGatherFilesystemType", spec.acct_gather_filesystem_type),
        ("AcctGatherProfileType", spec.acct_gather_profile_type),
        ("JobAcctGatherType", values_of(inputs).job_acct_gather_type),
        ("JobAcctGatherFrequency", spec.job_acct_gather_frequency),
        ("JobAcctGatherParams", spec.job_acct_gather_params),
        ("PriorityWeightAge", spec.priority_weight_age),
        ("PriorityWeightFairshare", spec.priority_weight_fairshare),
        ("PriorityWeightQOS", spec.priority_weight_qos),
        ("PriorityWeightTRES", spec.priority_weight_tres),
    )
