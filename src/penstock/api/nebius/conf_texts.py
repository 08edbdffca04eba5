"""Texts of a SlurmCluster and its NodeSets that become lines of configuration files.

Renderings keep each text on its line, so an object that was stored with such a fault still works,
but not as its user meant it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from penstock.api.admission import Problem
from penstock.api.nebius.accounting import AccountingSlurmConfig
from penstock.api.nebius.configuration import PlugStackConfig
from penstock.api.nebius.names import IMPLICIT_NODE_SET
from penstock.api.nebius.nodeset import NodeSetSpec
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.slurm.conf.document import Document

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_LINES: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PARTITION: Final = re.compile(r"[^\s,=#\"\\\[\]]+")
_PARTITION_KEY: Final = re.compile(r"(?:^|\s)PartitionName\s*=", re.IGNORECASE)
_FEATURE: Final = re.compile(r"[^\s=#\"'\\]+")
_MOST_PROBLEMS: Final = 20


def cluster_texts(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Faults in texts of a SlurmCluster."""
    yield from islice(_cluster_lines(spec), _MOST_PROBLEMS)
    for path, text in (
        ("spec.customSlurmConfig", spec.custom_slurm_config),
        ("spec.customCgroupConfig", spec.custom_cgroup_config),
    ):
        yield from islice(_lines(path, text), _MOST_PROBLEMS)
    path = "spec.partitionConfiguration.partitions"
    for index, one in enumerate(spec.partition_configuration.partitions):
        if not _PARTITION.fullmatch(one.name):
            yield Problem(
                f"{path}[{index}].name",
                f"{one.name[:60]!r} is no name of a partition: write it without blanks, commas, "
                "quotes and brackets",
            )
        if _PARTITION_KEY.search(one.config):
            yield Problem(f"{path}[{index}].config", "names a partition: remove PartitionName")
    for index, one in enumerate(spec.worker_features):
        here = f"spec.workerFeatures[{index}]"
        yield from _feature(f"{here}.name", one.name)
        if one.nodeset_name:
            yield from _feature(f"{here}.nodesetName", one.nodeset_name)
        if one.nodeset_name == IMPLICIT_NODE_SET:
            yield Problem(
                f"{here}.nodesetName",
                f"{one.nodeset_name!r} is the node set of all workers: write another name",
            )


def nodeset_texts(spec: NodeSetSpec) -> Iterator[Problem]:
    """Faults in texts of a NodeSet."""
    config = spec.node_config
    texts = [
        ("spec.nodeConfig.static", config.static),
        *((f"spec.nodeConfig.features[{i}]", one) for i, one in enumerate(config.features)),
        *((f"spec.nodeConfig.gresConfig[{i}]", one) for i, one in enumerate(config.gres_config)),
    ]
    for path, text in texts:
        yield from _single(path, text)
    yield from _words("spec.nodeConfig.static", config.static)
    for index, one in enumerate(config.features):
        if one.strip() and not _CONTROL.search(one):
            yield from _feature(f"spec.nodeConfig.features[{index}]", one)
    for index, one in enumerate(config.gres_config):
        yield from _words(f"spec.nodeConfig.gresConfig[{index}]", one)


def _cluster_lines(spec: SlurmClusterSpec) -> Iterator[Problem]:
    declared, slurm = spec.partition_configuration, spec.slurm_config
    plugins, path = spec.plug_stack_config.custom_plugins, "spec.plugStackConfig.customPlugins"
    keys = spec.slurm_nodes.login.ssh_root_public_keys
    texts = [
        *(
            (f"spec.partitionConfiguration.rawConfig[{i}]", one)
            for i, one in enumerate(declared.raw_config)
        ),
        *(
            (f"spec.partitionConfiguration.partitions[{i}].config", one.config)
            for i, one in enumerate(declared.partitions)
        ),
        ("spec.slurmConfig.epilog", slurm.epilog),
        ("spec.slurmConfig.prolog", slurm.prolog),
        ("spec.slurmConfig.taskProlog", slurm.task_prolog),
        ("spec.slurmConfig.taskPluginParam", slurm.task_plugin_param),
        ("spec.slurmConfig.topologyPlugin", slurm.topology_plugin),
        ("spec.slurmConfig.topologyParam", slurm.topology_param),
        ("spec.mpiConfig.pmixEnv", spec.mpi_config.pmix_env),
        *_plug_ins(spec.plug_stack_config),
        *_accounting(spec.slurm_nodes.accounting.slurm_config),
        *(
            [("spec.healthCheckConfig.healthCheckProgram", health.health_check_program)]
            if (health := spec.health_check_config) is not None
            else []
        ),
        *((f"{path}[{i}].path", one.path) for i, one in enumerate(plugins)),
        *(
            (f"{path}[{i}].arguments", f"{key}={value}")
            for i, one in enumerate(plugins)
            for key, value in one.arguments.items()
        ),
        *((f"spec.slurmNodes.login.sshRootPublicKeys[{i}]", one) for i, one in enumerate(keys)),
    ]
    for place, text in texts:
        yield from _single(place, text)


def _plug_ins(declared: PlugStackConfig) -> Iterator[tuple[str, str]]:
    path, inspector = "spec.plugStackConfig", declared.nccl_inspector_pre_conf
    yield f"{path}.pyxis.importerPath", declared.pyxis.importer_path or ""
    yield f"{path}.pyxis.containerImageSave", declared.pyxis.container_image_save or ""
    yield f"{path}.ncclDebug.outputDirectory", declared.nccl_debug.output_directory or ""
    if inspector is not None:
        yield f"{path}.ncclInspectorPreConf.profilerPlugin", inspector.profiler_plugin
        yield f"{path}.ncclInspectorPreConf.dumpDir", inspector.dump_dir


def _accounting(declared: AccountingSlurmConfig) -> Iterator[tuple[str, str]]:
    path = "spec.slurmNodes.accounting.slurmConfig"
    yield f"{path}.accountingStoreFlags", declared.accounting_store_flags
    yield f"{path}.acctGatherInterconnectType", declared.acct_gather_interconnect_type
    yield f"{path}.acctGatherFilesystemType", declared.acct_gather_filesystem_type
    yield f"{path}.acctGatherProfileType", declared.acct_gather_profile_type
    yield f"{path}.priorityWeightTRES", declared.priority_weight_tres


def _words(path: str, text: str) -> Iterator[Problem]:
    """Words of a node as slurmd reads them."""
    if text.count('"') % 2:
        yield Problem(path, 'has a " without another one: close it')
    for word in text.split():
        if word.lower().startswith("nodename="):
            yield Problem(path, f"{word[:60]!r}: remove it, each node has the name of its pod")


def _feature(path: str, text: str) -> Iterator[Problem]:
    if not _FEATURE.fullmatch(text.strip()):
        yield Problem(
            path,
            f"{text[:60]!r} is no feature or node set: write it without blanks, quotes and =",
        )


def _single(path: str, text: str) -> Iterator[Problem]:
    """A text of one line: what is around it does not count, as block texts of YAML end in one."""
    line = text.strip()
    if found := _CONTROL.search(line):
        yield Problem(path, f"has the control character {found[0]!r}: write one line")
    elif (len(line) - len(line.rstrip("\\"))) % 2:
        yield Problem(path, "ends in a backslash, which would continue the line: remove it")


def _lines(path: str, text: str) -> Iterator[Problem]:
    """Lines of a file of their own, which Slurm reads."""
    if found := _CONTROL_IN_LINES.search(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Problem(path, f"line {line} has the control character {found[0]!r}: remove it")
    else:
        for one in Document.parse(text).problems():
            yield Problem(path, f"line {one.line} is {one.message}")
