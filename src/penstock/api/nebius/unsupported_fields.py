"""Fields of `slurm.nebius.ai` that this version does not serve: reported, never ignored in silence.

A row leaves its table in the commit that brings what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from penstock.api.nebius.active_check import ActiveCheck, ActiveCheckSpec, CheckContainer, Reactions
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.node_configurator import (
    ConfiguratorContainer,
    NodeConfigurator,
    NodeConfiguratorSpec,
)
from penstock.api.nebius.nodeset import NodeSet, NodeSetSpec
from penstock.api.nebius.slurmcluster import ConfigWriter, SlurmCluster, SlurmClusterSpec
from penstock.api.nebius.worker import WorkerNode

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """A field, whether a spec uses it, and what happens instead."""

    path: str
    used: Callable[[S], bool]
    words: str


_NOT_YET: Final = "not served yet"
_OWN_PROC: Final = "not used: /proc is unmasked where the pods have a user namespace, only there"
_NODE: Final = "spec.slurmNodes"


CLUSTER: tuple[Row[SlurmClusterSpec], ...] = (
    Row("spec.pause", lambda s: bool(s.pause), "not used: spec.maintenance is"),
    Row(
        "spec.maintenance",
        lambda s: s.maintenance.startswith("downscale"),
        f"{_NOT_YET}, the cluster keeps its pods",
    ),
    Row(
        "spec.useDefaultAppArmorProfile",
        lambda s: s.use_default_app_armor_profile,
        f"{_NOT_YET}, each container has its own appArmorProfile",
    ),
    Row("spec.telemetry", lambda s: s.telemetry is not None, f"{_NOT_YET}, nothing is sent"),
    Row(
        "spec.ncclSettings",
        lambda s: s.nccl_settings is not None,
        "not used: NCCL finds its topology itself",
    ),
    Row(
        "spec.periodicChecks.ncclBenchmark.image",
        lambda s: (
            s.periodic_checks is not None
            and s.periodic_checks.nccl_benchmark.enabled
            and bool(s.periodic_checks.nccl_benchmark.image)
        ),
        "not used: the image of the logins submits the jobs, and all_reduce_perf is the jail's",
    ),
    Row(
        "spec.plugStackConfig.ncclDebug.enabled",
        lambda s: s.plug_stack_config.nccl_debug.enabled,
        f"{_NOT_YET}, the images have no such plug-in",
    ),
    Row(
        "spec.plugStackConfig.ncclInspectorPreConf.enabled",
        lambda s: (
            s.plug_stack_config.nccl_inspector_pre_conf is not None
            and s.plug_stack_config.nccl_inspector_pre_conf.enabled
        ),
        f"{_NOT_YET}, the images have no such plug-in",
    ),
    Row(
        "spec.sConfigController.hostUsers",
        lambda s: s.sconfig_controller.host_users is not None,
        "not used: spec.sConfigController.node.hostUsers is",
    ),
    Row(
        "spec.sConfigController.jailSlurmConfigPath",
        lambda s: (
            s.sconfig_controller.jail_slurm_config_path != ConfigWriter().jail_slurm_config_path
        ),
        "not used: files are in etc/slurm of the jail",
    ),
    Row(
        f"{_NODE}.controller.size",
        lambda s: (s.slurm_nodes.controller.size or 1) != 1,
        "not used: a SlurmCluster has one slurmctld",
    ),
    Row(
        f"{_NODE}.login.userIsolation",
        lambda s: (
            s.slurm_nodes.login.user_isolation is not None
            and s.slurm_nodes.login.user_isolation.enabled
        ),
        f"{_NOT_YET}, users of a login pod share its memory",
    ),
    Row(
        f"{_NODE}.accounting.size",
        lambda s: s.slurm_nodes.accounting.enabled and (s.slurm_nodes.accounting.size or 1) != 1,
        "not used: a SlurmCluster has one slurmdbd",
    ),
    Row(
        f"{_NODE}.exporter.size",
        lambda s: (s.slurm_nodes.exporter.size or 1) != 1,
        "not used: a SlurmCluster has one exporter",
    ),
    Row(
        f"{_NODE}.exporter.exporter",
        lambda s: s.slurm_nodes.exporter.exporter is not None,
        "not used: exporterContainer is",
    ),
    Row(
        f"{_NODE}.exporter.munge",
        lambda s: s.slurm_nodes.exporter.munge is not None,
        "not used: the exporter reads slurmrestd",
    ),
    Row(
        f"{_NODE}.exporter.volumes",
        lambda s: s.slurm_nodes.exporter.volumes is not None,
        "not used: the exporter reads slurmrestd",
    ),
)
WORKER: tuple[Row[WorkerNode], ...] = (
    Row(
        f"{_NODE}.worker.supervisordConfigMapRefName",
        lambda w: bool(w.supervisord_config_map_ref_name),
        "not used: workers have no supervisord",
    ),
    Row(
        f"{_NODE}.worker.slurmd.procMount",
        lambda w: w.slurmd.proc_mount == "Unmasked",
        _OWN_PROC,
    ),
    Row(
        f"{_NODE}.worker.waitForController",
        lambda w: w.wait_for_controller,
        "not used: slurmd registers once slurmctld answers",
    ),
    Row(
        f"{_NODE}.worker.rebooter",
        lambda w: w.rebooter is not None and w.rebooter.enabled,
        "not used: a NodeConfigurator has the rebooter",
    ),
    Row(
        f"{_NODE}.worker.enableGDRCopy",
        lambda w: w.enable_gdr_copy,
        f"{_NOT_YET}, the images have no GDRCopy",
    ),
)
NODES: tuple[Row[NodeSetSpec], ...] = (
    Row(
        "spec.docker",
        lambda s: s.docker is not None and s.docker.enabled,
        f"{_NOT_YET}, jobs run containers by pyxis",
    ),
    Row(
        "spec.gpu.nvidia.gdrCopyEnabled",
        lambda s: s.gpu.nvidia.gdr_copy_enabled,
        f"{_NOT_YET}, the images have no GDRCopy",
    ),
    Row(
        "spec.slurmd.security.procMount",
        lambda s: s.slurmd.security.proc_mount == "Unmasked" and s.enable_host_user_namespace,
        _OWN_PROC,
    ),
    Row(
        "spec.munge.security.limitsConfig",
        lambda s: bool(s.munge.security.limits_config),
        "not used, munged starts no processes of users",
    ),
    Row(
        "spec.munge.security.procMount",
        lambda s: s.munge.security.proc_mount == "Unmasked",
        "not used, only slurmd has one",
    ),
    Row(
        "spec.sssd.security.limitsConfig",
        lambda s: s.sssd is not None and bool(s.sssd.security.limits_config),
        "not used, sssd starts no processes of users",
    ),
    Row(
        "spec.sssd.security.procMount",
        lambda s: s.sssd is not None and s.sssd.security.proc_mount == "Unmasked",
        "not used, only slurmd has one",
    ),
    Row(
        "spec.workerInitRandomDelaySeconds",
        lambda s: s.worker_init_random_delay_seconds > 0,
        "not used: slurmctld takes all registrations at once",
    ),
    Row(
        "spec.configMapRefSupervisord",
        lambda s: bool(s.config_map_ref_supervisord or s.supervisord),
        "not used: workers have no supervisord",
    ),
    Row("spec.sshd", lambda s: bool(s.sshd), "not used: spec.configMapRefSshd is"),
    Row(
        "spec.nodeAttributes",
        lambda s: s.node_attributes is not None,
        "not used: spec.nodeConfig is",
    ),
    Row(
        "spec.slurmd.cgroupVersion",
        lambda s: s.slurmd.cgroup_version != "v2",
        "not used: spec.cgroupVersion of the SlurmCluster is",
    ),
)


def cluster_fields(obj: SlurmCluster) -> list[str]:
    """Those of a SlurmCluster."""
    spec, worker = obj.spec, obj.spec.slurm_nodes.worker
    found = _rows(CLUSTER, spec)
    if worker is not None:
        return [*found, *_rows(WORKER, worker), *_containers(spec)]
    pyxis, older = spec.plug_stack_config.pyxis, "not used without spec.slurmNodes.worker"
    if pyxis.container_image_save:
        found.append(f"spec.plugStackConfig.pyxis.containerImageSave: {older}")
    if spec.cluster_type is not None:
        found.append(f"spec.clusterType: {older}, NodeSets have spec.gpu")
    if spec.worker_features:
        found.append(f"spec.workerFeatures: {older}, NodeSets have spec.nodeConfig.features")
    return [*found, *_containers(spec)]


def nodeset_fields(obj: NodeSet) -> list[str]:
    """Those of a NodeSet."""
    return _rows(NODES, obj.spec)


def _munge_of(spec: ActiveCheckSpec) -> CheckContainer | None:
    if spec.check_type == "slurmJob":
        return spec.slurm_job_spec.munge_container if spec.slurm_job_spec is not None else None
    return spec.k8s_job_spec.munge_container if spec.k8s_job_spec is not None else None


def _reactions_of(spec: ActiveCheckSpec) -> list[Reactions]:
    return [one for one in (spec.failure_reactions, spec.success_reactions) if one is not None]


CHECK: tuple[Row[ActiveCheckSpec], ...] = (
    Row(
        "spec.reactions",
        lambda s: s.reactions is not None,
        "not used: spec.failureReactions is",
    ),
    Row(
        "spec.failureReactions, spec.successReactions",
        lambda s: s.check_type == "k8sJob" and bool(_reactions_of(s)),
        "not used for checkType k8sJob, which has no Slurm nodes",
    ),
    Row(
        "mungeContainer",
        lambda s: (
            (found := _munge_of(s)) is not None
            and bool(
                found.args or found.env or found.volumes or found.volume_mounts or found.working_dir
            )
        ),
        "image, command and appArmorProfile are used, its other fields are not",
    ),
)


def active_check_fields(obj: ActiveCheck) -> list[str]:
    """Fields of an ActiveCheck: of reactions, of the munge container, and of its pod."""
    return [f"{row.path}: {row.words}" for row in CHECK if row.used(obj.spec)]


_OTHER_CONTAINER: Final = "not used while another container is enabled: there is one DaemonSet"
CONFIGURATOR: tuple[Row[NodeConfiguratorSpec], ...] = (
    Row(
        "spec.rebooter.command",
        lambda s: s.rebooter.enabled and bool(s.rebooter.command),
        "not used: the program is /usr/bin/rebooter",
    ),
    Row(
        "spec.rebooter.name",
        lambda s: s.rebooter.enabled and bool(s.rebooter.name),
        "not used: the container is rebooter",
    ),
    Row(
        "spec.customContainer",
        lambda s: _is_enabled(s.custom_container) and s.rebooter.enabled,
        _OTHER_CONTAINER,
    ),
    Row(
        "spec.nodeConfigurator",
        lambda s: (
            _is_enabled(s.node_configurator)
            and (s.rebooter.enabled or _is_enabled(s.custom_container))
        ),
        _OTHER_CONTAINER,
    ),
)


def _is_enabled(container: ConfiguratorContainer | None) -> bool:
    return container is not None and container.enabled


def node_configurator_fields(obj: NodeConfigurator) -> list[str]:
    """Those of a NodeConfigurator."""
    return _rows(CONFIGURATOR, obj.spec)


def _containers(spec: SlurmClusterSpec) -> Iterator[str]:
    """Fields that only some containers have a use for."""
    nodes = spec.slurm_nodes
    munges = [("controller", nodes.controller.munge), ("login", nodes.login.munge)]
    if nodes.worker is not None:
        munges.append(("worker", nodes.worker.munge))
    accounting = nodes.accounting
    if accounting.enabled and accounting.munge is not None:
        munges.append(("accounting", accounting.munge))
    for name, container in munges:
        path = f"{_NODE}.{name}.munge"
        if container.port:
            yield f"{path}.port: not used, munged has a socket"
        if container.security_limits_config:
            yield f"{path}.securityLimitsConfig: not used, munged starts no processes of users"
    others = [(f"{_NODE}.controller.slurmctld", nodes.controller.slurmctld)]
    others.append((f"{_NODE}.login.sshd", nodes.login.sshd))
    others += [(f"{_NODE}.{name}.munge", container) for name, container in munges]
    for name, container in (("controller", nodes.controller.sssd), ("login", nodes.login.sssd)):
        if container is None:
            continue
        path = f"{_NODE}.{name}.sssd"
        others.append((path, container))
        if container.port:
            yield f"{path}.port: not used, sssd has sockets"
        if container.security_limits_config:
            yield f"{path}.securityLimitsConfig: not used, sssd starts no processes of users"
    writer = spec.sconfig_controller.container
    if writer.port:
        yield "spec.sConfigController.container.port: not used, its metrics have a fixed one"
    daemons = [("spec.sConfigController.container", writer)]
    exporter = nodes.exporter
    if exporter.enabled and exporter.exporter_container is not None:
        path = f"{_NODE}.exporter.exporterContainer"
        daemons.append((path, exporter.exporter_container))
        if exporter.exporter_container.port:
            yield f"{path}.port: not used, its metrics have fixed ones"
    if nodes.rest.rest is not None:
        daemons.append((f"{_NODE}.rest.rest", nodes.rest.rest))
    if accounting.enabled and accounting.slurmdbd is not None:
        daemons.append((f"{_NODE}.accounting.slurmdbd", accounting.slurmdbd))
    for path, container in daemons:
        if container.security_limits_config:
            yield f"{path}.securityLimitsConfig: not used, it starts no processes of users"
    for path, container in (*others, *daemons):
        yield from _proc_mount(path, container)
    yield from _mariadb(spec)


def _mariadb(spec: SlurmClusterSpec) -> Iterator[str]:
    """Fields that a MariaDB of mariadb-operator has no place for."""
    accounting, path = spec.slurm_nodes.accounting, f"{_NODE}.accounting.mariadbOperator"
    given = accounting.mariadb_operator
    if given is None or not (accounting.enabled and given.enabled):
        return
    lacks = "not used, a MariaDB has no such field"
    if given.security_limits_config:
        yield f"{path}.securityLimitsConfig: {lacks}"
    if given.proc_mount not in (None, "Default"):
        yield f"{path}.procMount: {lacks}"
    if (replication := given.replication) is not None:
        replica = replication.replica
        older = {
            "probesEnabled": replication.probes_enabled is not None,
            "replica.connectionRetries": replica is not None
            and replica.connection_retries is not None,
            "replica.connectionTimeout": replica is not None and bool(replica.connection_timeout),
        }
        for name in (name for name, is_given in older.items() if is_given):
            yield f"{path}.replication.{name}: not used, mariadb-operator lacks it since version 25"
    for one in spec.k8s_node_filters:
        if one.name == accounting.k8s_node_filter_name and (one.affinity or {}).get("podAffinity"):
            yield (
                f"spec.k8sNodeFilters: podAffinity of {one.name} is not used for the MariaDB of "
                "mariadb-operator, which has no such field"
            )


def _proc_mount(path: str, container: NodeContainer) -> Iterator[str]:
    if container.proc_mount not in (None, "Default"):
        yield f"{path}.procMount: not used, only slurmd has one"


def _rows(rows: Sequence[Row[S]], spec: S) -> list[str]:
    return [f"{row.path}: {row.words}" for row in rows if row.used(spec)]
