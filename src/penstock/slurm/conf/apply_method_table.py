"""Which key of Slurm's configuration files needs what, for each release of Slurm.

Source: the manual pages of section 5 of Slurm 26.05, named in each row with their section; which
keys an older release does not know is in `SINCE`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from penstock.slurm.conf.apply_method import Force, Need, Row, Table
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.slurm.versions import NEWEST, PARTITION_CALLS_SINCE, V25_05, V25_11, V26_05, Version

_RECONFIGURE = Need(Force.RECONFIGURE)
_CONTROLLER = Need(Force.RESTART, ("slurmctld",))
_WORKERS = Need(Force.RESTART, ("slurmd",))
_DESCRIPTION = "slurm.conf(5), DESCRIPTION: takes effect upon reconfigure unless otherwise noted"
_LISTENING = "slurm.conf(5), DESCRIPTION: TCP listening settings require a daemon restart"
_NODE_FILES = "slurmd has to be restarted while no job runs on its node"

SINCE: dict[str, tuple[tuple[Version, str], ...]] = {
    SLURM_CONF: (
        (
            V25_05,
            "CertgenParameters CertgenType CliFilterParameters EpilogTimeout JobCompPassScript "
            "PrologTimeout",
        ),
        (V25_11, "HttpParserType MetricsType NamespaceType UrlParserType"),
        (
            V26_05,
            "HealthCheckTimeout LicenseParameters MetricsAuthUsers MetricsParameters "
            "SlurmctldHttpAuthParameters SlurmdHttpAuthParameters",
        ),
    ),
    "cgroup.conf": ((V25_05, "CgroupSlice EnableExtraControllers"),),
}
"""Keys by the release that knows them first, of those that 24.11 does not know.

Of which of the two releases between 24.11 and 26.05 a key is was read, not tried: the earlier one
where that was not certain, so that nothing is rejected that Slurm takes. Source: scontrol 24.11.5,
asked for each key of the table; Slurm's release notes.
"""
_SINCE_OF_LINES = {
    ("partitionname", "exclusive"): V25_05,
    ("partitionname", "topology"): V25_05,
    ("nodename", "topology"): V25_05,
    ("nodename", "parameters"): V25_05,
}
"""As `SINCE`, of the keys of lines that have a name."""
_FILES_SINCE = {"topology.yaml": V25_05, "resources.yaml": V25_05, "namespace.yaml": V25_11}

_PLAIN = """
AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
AccountingStorageHost AccountingStorageParameters AccountingStoragePass AccountingStoragePort
AccountingStorageTRES AccountingStorageType AccountingStoreFlags AcctGatherEnergyType
AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo BatchStartTimeout BcastExclude
BcastParameters BurstBufferType CertgenParameters CertgenType CertmgrParameters CertmgrType
CliFilterParameters CliFilterPlugins ClusterName CompleteWait CpuFreqDef CpuFreqGovernors CredType
DataParserParameters DebugFlags DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode
DependencyParameters DisableRootJobs EioTimeout EnforcePartLimits Epilog EpilogMsgTime
EpilogSlurmctld EpilogTimeout FairShareDampeningFactor FederationParameters FirstJobId GpuFreqDef
GresTypes GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval HealthCheckNodeState
HealthCheckProgram HealthCheckTimeout HttpParserType InactiveLimit InteractiveStepOptions
JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams
JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser JobContainerType JobFileAppend
JobRequeue
JobSubmitPlugins KillOnBadExit KillWait LaunchParameters LicenseParameters Licenses LogTimeFormat
MCSPlugin MailDomain MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId
MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MessageTimeout
MetricsAuthUsers MetricsParameters MetricsType MinJobAge MpiDefault MpiParams NamespaceType
NodeFeaturesPlugins OverTimeLimit PlugStackConfig PluginDir PrEpParameters PrEpPlugins
PreemptExemptTime PreemptMode PreemptParameters PreemptType PriorityCalcPeriod
PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters
PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod
PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType Prolog
PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess
PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit
RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun
ResvProlog ReturnToService SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters
SelectTypeParameters SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SlurmctldAddr SlurmctldDebug
SlurmctldHttpAuthParameters SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug
SlurmdHttpAuthParameters SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdSpoolDir
SlurmdSyslogDebug SlurmdTimeout SlurmdUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime
SuspendTimeout SwitchParameters TCPTimeout TLSParameters TLSType TaskEpilog TaskPlugin
TaskPluginParam TaskProlog TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth
UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM VSizeFactor WaitTime X11Parameters
"""

_CGROUP = """
AllowedRAMSpace AllowedSwapSpace CgroupMountpoint CgroupPlugin ConstrainCores ConstrainDevices
ConstrainRAMSpace ConstrainSwapSpace EnableControllers EnableExtraControllers IgnoreSystemd
IgnoreSystemdOnFailure MaxRAMPercent MaxSwapPercent MemorySwappiness MinRAMSpace
SignalChildrenProcesses SystemdTimeout
"""


def _row(
    file: str,
    keys: str,
    need: Need,
    source: str,
    options: tuple[tuple[str, Need], ...] = (),
) -> Row:
    return Row(file, tuple(sorted(keys.split())), need, source, options)


_ROWS: tuple[Row, ...] = (
    _row(
        SLURM_CONF,
        "PartitionName",
        Need(Force.REST),
        "slurmrestd's OpenAPI v0.0.45 (partitions), Release Notes of 26.05",
    ),
    _row(
        SLURM_CONF,
        "AuthType",
        Need(
            Force.RESTART,
            ("sackd", "slurmctld", "slurmd", "slurmdbd", "slurmrestd"),
            "no job may run while AuthType changes: steps are interrupted",
        ),
        "slurm.conf(5), AuthType",
    ),
    _row(SLURM_CONF, "SlurmctldPort", _CONTROLLER, _LISTENING),
    _row(SLURM_CONF, "SlurmdPort", _WORKERS, _LISTENING),
    _row(
        SLURM_CONF,
        "CommunicationParameters",
        _RECONFIGURE,
        f"{_LISTENING}; CommunicationParameters",
        (
            ("NoCtldInAddrAny", _CONTROLLER),
            ("NoInAddrAny", _WORKERS),
            ("DisableIPv4", Need(Force.RESTART, ("slurmctld", "slurmd"))),
            ("EnableIPv6", Need(Force.RESTART, ("slurmctld", "slurmd"))),
        ),
    ),
    _row(
        SLURM_CONF,
        "SelectType",
        Need(Force.RECONFIGURE, beware="a changed SelectType loses the state of all jobs"),
        "slurm.conf(5), SelectType",
    ),
    _row(
        SLURM_CONF,
        "SwitchType",
        Need(Force.RECONFIGURE, beware="a changed SwitchType may lose the records of all jobs"),
        "slurm.conf(5), SwitchType",
    ),
    _row(SLURM_CONF, "SlurmctldHost", _RECONFIGURE, "slurm.conf(5), SlurmctldHost"),
    _row(SLURM_CONF, "MCSParameters", _RECONFIGURE, "slurm.conf(5), MCSParameters"),
    _row(
        SLURM_CONF,
        "NodeName NodeSet DownNodes",
        _RECONFIGURE,
        "slurm.conf(5), NODE CONFIGURATION, NODESET CONFIGURATION, DOWN NODE CONFIGURATION",
    ),
    _row(SLURM_CONF, _PLAIN, _RECONFIGURE, _DESCRIPTION),
    _row("cgroup.conf", "CgroupSlice", _WORKERS, "cgroup.conf(5), CgroupSlice"),
    _row("cgroup.conf", _CGROUP, _RECONFIGURE, "cgroup.conf(5), DESCRIPTION"),
    _row("gres.conf", "Cores", _CONTROLLER, "gres.conf(5), Cores"),
    _row(
        "gres.conf",
        "File MultipleFiles",
        Need(Force.RECONFIGURE, beware="drain a node before the number of its devices changes"),
        "gres.conf(5), File, MultipleFiles",
    ),
    _row(
        "gres.conf",
        "Type",
        Need(Force.RECONFIGURE, beware="slurmd must answer on all nodes whose GRES type changes"),
        "gres.conf(5), Type",
    ),
    _row(
        "gres.conf",
        "AutoDetect Count Flags Links Name NodeName",
        _RECONFIGURE,
        "gres.conf(5), DESCRIPTION",
    ),
    _row("acct_gather.conf", "", _RECONFIGURE, "acct_gather.conf(5), DESCRIPTION"),
    _row("burst_buffer.conf", "", _RECONFIGURE, "burst_buffer.conf(5), DESCRIPTION"),
    _row("helpers.conf", "", _RECONFIGURE, "helpers.conf(5), DESCRIPTION"),
    _row("mpi.conf", "", _RECONFIGURE, "mpi.conf(5), DESCRIPTION"),
    _row("topology.conf", "", _RECONFIGURE, "topology.conf(5), DESCRIPTION"),
    _row("topology.yaml", "", _RECONFIGURE, "slurm.conf(5), TopologyPlugin, and DESCRIPTION"),
    _row("resources.yaml", "", _RECONFIGURE, "slurm.conf(5), Licenses, and DESCRIPTION"),
    _row("plugstack.conf", "", _RECONFIGURE, "slurm.conf(5), PlugStackConfig, enable_configless"),
    _row("job_submit.lua", "", _RECONFIGURE, "slurm.conf(5), JobSubmitPlugins, and DESCRIPTION"),
    _row("cli_filter.lua", "", _RECONFIGURE, "slurm.conf(5), enable_configless"),
    _row(
        "job_container.conf",
        "",
        replace(_WORKERS, beware=_NODE_FILES),
        "job_container.conf(5), NOTES",
    ),
    _row("namespace.yaml", "", replace(_WORKERS, beware=_NODE_FILES), "namespace.yaml(5), NOTES"),
    _row("oci.conf", "", _WORKERS, "oci.conf(5), DESCRIPTION"),
)


_CAME = {
    (file, key.lower()): version
    for file, groups in SINCE.items()
    for version, keys in groups
    for key in keys.split()
}


def since(file: str, key: str, line: str = "") -> Version | None:
    """The release that knows a key first; None where every supported one does.

    `line` is the key that a line begins with, for the keys after it.
    """
    low = key.lower()
    return _SINCE_OF_LINES.get((line.lower(), low)) if line else _CAME.get((file, low))


def _row_for(row: Row, version: Version, *, calls: bool) -> Row | None:
    """A row as a release has it; None when it has nothing of it."""
    if row.keys == ("PartitionName",) and not calls:
        source = "slurm.conf(5), PARTITION CONFIGURATION, and DESCRIPTION"
        return replace(row, need=replace(row.need, force=Force.RECONFIGURE), source=source)
    if not row.keys:
        return row if version >= _FILES_SINCE.get(row.file, version) else None
    keys = tuple(k for k in row.keys if version >= (since(row.file, k) or version))
    return replace(row, keys=keys) if keys else None


@lru_cache(maxsize=16)
def table(version: Version | None = None, parser: Version | None = None) -> Table:
    """The table of a slurmctld of that release, the newest where that is not known.

    `parser` is the release whose REST calls slurmrestd has, that of slurmctld where not known.
    """
    known = version or NEWEST
    calls = min(known, parser or known) >= PARTITION_CALLS_SINCE
    rows = (_row_for(row, known, calls=calls) for row in _ROWS)
    return Table(tuple(row for row in rows if row is not None))


TABLE = table()


def page(table: Table = TABLE) -> str:
    """The table in Markdown, for people."""
    lines = ["| File | Key | What it needs | Where that is written |", "| --- | --- | --- | --- |"]
    for row in table.rows:
        keys = ", ".join(f"`{key}`" for key in row.keys) or "all of it"
        for option, need in row.options:
            message = f"| `{row.file}` | `{row.keys[0]}`, option `{option}` | {_words(need)} |"
            lines.append(f"{message} {row.source} |")
        lines.append(f"| `{row.file}` | {keys} | {_words(row.need)} | {row.source} |")
    lines.append(f"| any | what is not named above | {_words(table.otherwise)} | {_DESCRIPTION} |")
    return "\n".join(lines) + "\n"


def _words(need: Need) -> str:
    what = "REST" if need.force is Force.REST else need.force.name.lower()
    message = f"{what} of {', '.join(need.daemons)}" if need.daemons else what
    return f"{message} ({need.beware})" if need.beware else message
