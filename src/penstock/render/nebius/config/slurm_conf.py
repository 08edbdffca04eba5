"""slurm.conf of a SlurmCluster: the operator's own keys, then the user's lines in a file apart.

Options without which the operator cannot reach Slurm are joined to the user's once more, last.
The files have the names of the original, which differ between its versions: scripts and users read
them in the jail. slurm.conf(5): of a key given twice the last value counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from penstock.api.nebius.configuration import SlurmConfig
from penstock.base.recent_results import RecentResults
from penstock.render.nebius.config import keys, node_lines, partition_lines, worker_names
from penstock.render.nebius.config.accepted_lines import with_accepted_keys, with_accepted_lines
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import BANNER, given
from penstock.slurm.conf.document import Document, joined
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF, resolved
from penstock.slurm.conf.lines import text_of
from penstock.slurm.daemons import SLURMD_PORT
from penstock.slurm.partition.declaration import copy_partitions
from penstock.slurm.partition.declaration import partition_lines as partition_lines_of
from penstock.slurm.partition.retention import removed_partitions, retained_lines

_PARTITIONS: Final = "PARTITIONS"
_Sections = list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names of the files: `own` has the operator's keys, `user` the user's lines."""

    own: str
    user: str


CURRENT: Final = FileNames("slurm_base.conf.noedit", "slurm_k8s_extra.conf.noedit")
OLDER: Final = FileNames(SLURM_CONF, "custom_slurm.conf")


def file_names(inputs: ConfigInputs) -> FileNames:
    """The names in the shape of the SlurmCluster."""
    return OLDER if inputs.is_older else CURRENT


def slurm_conf_files(inputs: ConfigInputs) -> dict[str, str]:
    """The files by name; `includes.resolved` makes one text of them.

    Equal inputs give equal bytes, in whatever order the NodeSets are.
    """
    return dict(_recent(inputs))


def _rendered(inputs: ConfigInputs) -> Mapping[str, str]:
    found = _files(inputs, ())
    if retained := retained_lines(inputs.in_effect, resolved(found), inputs.freed):
        found = _files(inputs, retained)
    return _with_rejected(inputs, found) if inputs.rejected_partitions else found


_recent: Final = RecentResults(_rendered, 8)
"""A reconcile asks for the files of up to four variants of a cluster, several times each."""


def _with_rejected(inputs: ConfigInputs, files: Mapping[str, str]) -> dict[str, str]:
    """The files with rejected partitions as slurmctld has them, each in the file where it was.

    One that was in no file is where it is declared now.
    """
    text = inputs.slurm_conf or resolved(inputs.published)
    before = {file: partition_lines_of(inputs.published.get(file, "")) for file in files}
    now = {file: partition_lines_of(one) for file, one in files.items()}
    homes = {
        name: next((file for at in (before, now) for file in files if name in at[file]), "")
        for name in inputs.rejected_partitions
    }
    found: dict[str, str] = {}
    for file, one in files.items():
        here = {name for name, home in homes.items() if home == file}
        rest = copy_partitions("", one, homes.keys() - here)
        found[file] = copy_partitions(text, rest, here)
    return found


def retained_partitions(inputs: ConfigInputs) -> frozenset[str]:
    """Partitions that nobody declares and that stay, as jobs may be in them."""
    return _recent_retained(inputs) if inputs.in_effect else frozenset()


def _retained(inputs: ConfigInputs) -> frozenset[str]:
    bare = replace(inputs, in_effect="", rejected_partitions=frozenset[str]())
    wanted = resolved(slurm_conf_files(bare))
    gone = removed_partitions(inputs.in_effect, wanted)
    return gone - inputs.freed - inputs.rejected_partitions


_recent_retained: Final = RecentResults(_retained, 8)


def slurmdbd_in(published: Mapping[str, str]) -> str:
    """Host and port of slurmdbd in these files; empty where slurmctld writes no records."""
    return _recent_slurmdbd(resolved(published))


def _slurmdbd(text: str) -> str:
    found = {key: value for key, _, value in (line.partition("=") for line in text.splitlines())}
    if found.get("AccountingStorageType") != "accounting_storage/slurmdbd":
        return ""
    return f"{found.get('AccountingStorageHost', '')}:{found.get('AccountingStoragePort', '')}"


_recent_slurmdbd: Final = RecentResults(_slurmdbd, 8)


def partition_text(inputs: ConfigInputs) -> str:
    """The PartitionName lines that the user declared, before names of workers are replaced."""
    lines = "".join(f"{line}\n" for line in partition_lines.lines(inputs))
    return f"{lines}{inputs.cluster.spec.custom_slurm_config}"


def _files(inputs: ConfigInputs, retained: tuple[str, ...]) -> dict[str, str]:
    named, own = file_names(inputs), _own(inputs, retained)
    given_lines = inputs.cluster.spec.custom_slurm_config
    custom = worker_names.with_node_sets(inputs, given_lines)
    if (accepted := _accepted(inputs)) is not None:
        accepted_own, accepted_user = accepted
        own = with_accepted_keys(own, accepted_own)
        custom = given_lines = with_accepted_lines(custom, accepted_user)
    files = {named.user: f"{BANNER}{custom}"}
    merged = text_of([("MERGED", joined(Document.parse(given_lines), keys.REQUIRED))])
    if named.own == SLURM_CONF:
        return {SLURM_CONF: f"{BANNER}{own}{_include(named)}{merged}", **files}
    includes = "".join(f"include {FOLDER}/{file}\n" for file in (named.own, named.user))
    return {SLURM_CONF: f"{BANNER}{includes}{merged}", named.own: f"{BANNER}{own}", **files}


def _include(named: FileNames) -> str:
    return f"#\ninclude {named.user}\n"


def _accepted(inputs: ConfigInputs) -> tuple[str, str] | None:
    """The operator's and the user's lines of the last known good files.

    None while no others are rejected, and for files of the other shape.
    """
    named, files = file_names(inputs), inputs.accepted
    if named.own not in files or named.user not in files:
        return None
    own, user = (files[one].removeprefix(BANNER) for one in (named.own, named.user))
    return own.partition(_include(named))[0], user


def _own(inputs: ConfigInputs, retained: tuple[str, ...]) -> str:
    found = _older(inputs) if inputs.is_older else _current(inputs)
    return text_of(
        (title, [*lines, *retained] if title == _PARTITIONS else lines) for title, lines in found
    )


def _current(inputs: ConfigInputs) -> _Sections:
    file = CURRENT.own
    most = node_lines.max_node_count(inputs, file)
    ports = node_lines.slurmd_ports(inputs)
    common = ports[0] if len(ports) == 1 and ports != [SLURMD_PORT] else None
    ephemeral = bool(node_lines.ephemeral(inputs))
    return [
        ("GENERAL", keys.general(inputs)),
        ("DECLARED VALUES", keys.declared(inputs)),
        ("PLUG-INS", [*keys.plugins(inputs), "PrologFlags=contain"]),
        ("DAEMONS", [*keys.daemons(inputs, common), _slurmctld_parameters(most, ephemeral)]),
        ("HEALTH CHECKS", keys.health_checks(inputs)),
        ("TIMEOUTS", keys.timeouts()),
        ("POWER SAVING", _power_saving(inputs, ephemeral)),
        ("SCHEDULING", [*keys.selection(), f"SchedulerParameters={','.join(_SCHEDULER)}"]),
        ("LOGGING", keys.logging(inputs, "debug", "Script,Power")),
        ("NODES", [*_limits(most, inputs, file), *keys.preemption()]),
        (_PARTITIONS, _partitions(inputs)),
        ("ACCOUNTING", keys.accounting(inputs)),
    ]


def _older(inputs: ConfigInputs) -> _Sections:
    file, spec = OLDER.own, inputs.cluster.spec.slurm_config
    ports = node_lines.slurmd_ports(inputs)
    # Version 1.23 had no such key, so a cluster without a value keeps Slurm's default.
    suspend = spec.suspend_time if spec.suspend_time != SlurmConfig().suspend_time else None
    return [
        ("GENERAL", keys.general(inputs)),
        ("DECLARED VALUES", keys.declared(inputs)),
        ("PLUG-INS", keys.plugins(inputs)),
        (
            "DAEMONS",
            [
                *keys.daemons(inputs, ports[0]),
                "SlurmctldParameters=conmgr_max_connections=512,conmgr_threads=16",
            ],
        ),
        ("HEALTH CHECKS", keys.health_checks(inputs)),
        ("TIMEOUTS", keys.timeouts()),
        (
            "POWER SAVING",
            given(
                ("RebootProgram", "/opt/bin/slurm/reboot.sh"),
                ("SuspendTime", suspend),
                ("ResumeTimeout", spec.resume_timeout),
            ),
        ),
        (
            "SCHEDULING",
            [*keys.selection(), "SchedulerParameters=nohold_on_prolog_fail,extra_constraints"],
        ),
        ("LOGGING", keys.logging(inputs, "verbose", "Script")),
        (
            "NODES",
            [
                *_limits(node_lines.max_node_count(inputs, file), inputs, file),
                *keys.preemption(),
            ],
        ),
        (_PARTITIONS, _partitions(inputs)),
        ("ACCOUNTING", keys.accounting(inputs)),
    ]


_SCHEDULER: Final = (
    "nohold_on_prolog_fail",
    "extra_constraints",
    "pack_serial_at_end",
    "salloc_wait_nodes",
    "sbatch_wait_nodes",
    "defer_batch",
    "max_rpc_cnt=100",
    "bf_continue",
    "bf_max_time=60",
    "bf_max_job_test=1000",
    "bf_max_job_part=300",
    "bf_running_job_reserve",
)


def _slurmctld_parameters(most: int, ephemeral: bool) -> str:
    options = [
        f"conmgr_max_connections={most}",
        "conmgr_threads=32",
        "validate_nodeaddr_threads=32",
        "enable_stepmgr",
        *(["cloud_dns", "idle_on_node_suspend"] if ephemeral else []),
    ]
    return f"SlurmctldParameters={','.join(options)}"


def _power_saving(inputs: ConfigInputs, ephemeral: bool) -> list[str]:
    """How ephemeral nodes are powered up and down; other nodes are never powered down.

    The programs are only in a slurmctld that has ephemeral nodes: without them it would log errors.
    """
    spec = inputs.cluster.spec.slurm_config
    always = (("RebootProgram", "/opt/bin/slurm/reboot.sh"), ("ResumeTimeout", spec.resume_timeout))
    if not ephemeral:
        return given(*always)
    return given(
        *always,
        ("ResumeProgram", "/opt/soperator/bin/power_resume.sh"),
        ("ResumeFailProgram", "/opt/soperator/bin/power_resume_fail.sh"),
        ("SuspendProgram", "/opt/soperator/bin/power_suspend.sh"),
        ("SuspendTime", spec.suspend_time),
        ("SuspendTimeout", 90),
        ("ResumeRate", 100),
        ("SuspendRate", 100),
        ("ReconfigFlags", "KeepPowerSaveSettings"),
        # Nodes that register themselves. slurmctld ignores their names before they have a record.
        ("SuspendExcStates", "DYNAMIC_NORM"),
    )


def _limits(most: int, inputs: ConfigInputs, file: str) -> list[str]:
    size = node_lines.max_array_size(inputs, file)
    return [f"MaxNodeCount={most}", f"MaxArraySize={size}"]


def _partitions(inputs: ConfigInputs) -> list[str]:
    """Nodes, partitions and node sets; a lost reference is a remark before the partitions."""
    declared = "".join(f"{line}\n" for line in partition_lines.lines(inputs))
    lines = worker_names.with_node_sets(inputs, declared).split("\n")[:-1]
    return [
        *node_lines.cloud_nodes(inputs),
        *(f"# {lost}" for lost in partition_lines.lost_refs(inputs)),
        *lines,
        *node_lines.feature_sets(inputs),
        *node_lines.node_sets(inputs),
        *worker_names.feature_lines(inputs, partition_text(inputs)),
    ]
