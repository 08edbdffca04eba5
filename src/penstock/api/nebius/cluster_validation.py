"""Faults of a SlurmCluster, beyond what its schema can express.

The API server rejects some of them by the schema already. They are found again here, because an
object may have been stored under an older schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from penstock.api.admission import Problem
from penstock.api.cluster.marks import MAX_DRAINED, REPLACE_NODES
from penstock.api.embedded_database_rules import database_problems
from penstock.api.nebius.benchmark_rules import benchmark_problems
from penstock.api.nebius.common import POD_CONTAINERS, SssdNode, pod_containers
from penstock.api.nebius.conf_texts import cluster_texts
from penstock.api.nebius.configuration import STRUCTURED
from penstock.api.nebius.container_rules import cluster_containers, cluster_counts
from penstock.api.nebius.jail_rules import jail_admission_problems, jail_problems
from penstock.api.nebius.mount_rules import cluster_mount_advice, cluster_mount_faults
from penstock.api.nebius.name_rules import cluster_name
from penstock.api.nebius.rule_parts import (
    ABSENT,
    containers,
    duplicates,
    is_budget,
    is_share,
    known_names,
    pod_fields,
)
from penstock.api.nebius.size_rules import size_problems
from penstock.api.nebius.slurm_nodes import SERVICE_TYPES
from penstock.api.nebius.slurmcluster import (
    INTERFACE_PATTERN,
    MOST_INTERFACES,
    NO_INTERFACE,
    WAIT_ABOVE_POLL,
    WORKERS_BESIDE_NODE_SETS,
    SlurmCluster,
    SlurmClusterSpec,
)
from penstock.api.nebius.user_isolation import user_isolation_problems
from penstock.api.nebius.volume_rules import cluster_volumes, same_sources
from penstock.base import duration
from penstock.base.host import is_host
from penstock.slurm import hostlist

_NO_SPEC: Final = SlurmCluster().spec
_NODES: Final = "spec.slurmNodes"
LOWEST_NODE_PORT: Final = 30000
HIGHEST_NODE_PORT: Final = 32767
_INTERFACE: Final = re.compile(INTERFACE_PATTERN)


def cluster_problems(obj: SlurmCluster) -> Iterator[Problem]:
    """Faults with which the operator cannot create a cluster."""
    spec = obj.spec
    if spec == _NO_SPEC:
        yield Problem("spec", ABSENT)
        return
    if sizes := list(size_problems(spec)):
        yield from sizes
        return
    yield from _filters(spec)
    yield from cluster_name(obj)
    yield from benchmark_problems(obj)
    yield from jail_problems(spec)
    yield from cluster_volumes(spec)
    yield from cluster_mount_faults(spec)
    yield from cluster_containers(spec)
    yield from _partitions(spec)
    yield from _intervals(spec)
    yield from _interfaces(spec.job_network_interfaces)
    yield from _accounting(spec)
    yield from _open_parts(spec)
    if spec.slurm_nodes.login.sshd_service_type not in SERVICE_TYPES:
        yield Problem(
            f"{_NODES}.login.sshdServiceType",
            f"{spec.slurm_nodes.login.sshd_service_type[:60]!r} is no type of Service for logins: "
            f"write {' or '.join(SERVICE_TYPES)}",
        )
    snapshot = spec.populate_jail.jail_snapshot_volume
    if snapshot is not None and snapshot.volume_claim_template_spec is not None:
        yield Problem(
            "spec.populateJail.jailSnapshotVolume.volumeClaimTemplateSpec",
            "a new PVC has no snapshot: name an entry of spec.volumeSources in volumeSourceName",
        )


def cluster_admission_problems(obj: SlurmCluster) -> Iterator[Problem]:
    """Faults for which a write is rejected, and with which a stored cluster still works."""
    spec = obj.spec
    if spec == _NO_SPEC or any(size_problems(spec)):
        return
    yield from _shares(obj)
    yield from same_sources(spec)
    yield from jail_admission_problems(spec)
    yield from cluster_texts(spec)
    yield from cluster_mount_advice(spec)
    yield from cluster_counts(spec)
    yield from user_isolation_problems(spec.slurm_nodes.login)
    exporter = spec.slurm_nodes.exporter
    if exporter.enabled:
        path = f"{_NODES}.exporter.k8sNodeFilterName"
        yield from _filter(path, exporter.k8s_node_filter_name, _filter_names(spec))
    login = spec.slurm_nodes.login
    port = login.sshd_service_node_port
    if (
        login.sshd_service_type == "NodePort"
        and port
        and not LOWEST_NODE_PORT <= port <= HIGHEST_NODE_PORT
    ):
        yield Problem(
            f"{_NODES}.login.sshdServiceNodePort",
            f"{port} is no port of Kubernetes nodes: write one from {LOWEST_NODE_PORT} to "
            f"{HIGHEST_NODE_PORT}",
        )
    worker = spec.slurm_nodes.worker
    if worker is not None and not is_budget(worker.max_unavailable):
        yield Problem(
            f"{_NODES}.worker.maxUnavailable",
            f"{str(worker.max_unavailable)[:60]!r} is no number of workers: write one from 1, or a "
            "percentage such as 20%",
        )
    for index, feature in enumerate(spec.worker_features):
        try:
            hostlist.count(feature.hostlist_expr)
        except ValueError as error:
            yield Problem(f"spec.workerFeatures[{index}].hostlistExpr", str(error))


def _shares(obj: SlurmCluster) -> Iterator[Problem]:
    for key in (MAX_DRAINED, REPLACE_NODES):
        given = obj.metadata.annotations.get(key)
        if given is not None and not is_share(given):
            yield Problem(
                f"metadata.annotations[{key}]",
                f"{given[:60]!r} is no share of the Slurm nodes: write a number from 1, or a whole "
                "percentage such as 10%",
            )


def _filter_names(spec: SlurmClusterSpec) -> frozenset[str]:
    return frozenset(one.name for one in spec.k8s_node_filters)


def _filters(spec: SlurmClusterSpec) -> Iterator[Problem]:
    names, nodes = _filter_names(spec), spec.slurm_nodes
    yield from duplicates("spec.k8sNodeFilters", (one.name for one in spec.k8s_node_filters))
    used = [
        (f"{_NODES}.controller", nodes.controller.k8s_node_filter_name),
        (f"{_NODES}.login", nodes.login.k8s_node_filter_name),
    ]
    if spec.populate_jail != _NO_SPEC.populate_jail:
        used.append(("spec.populateJail", spec.populate_jail.k8s_node_filter_name))
    if spec.sconfig_controller != _NO_SPEC.sconfig_controller:
        used.append(("spec.sConfigController.node", _config_writer_filter(spec)))
    if nodes.accounting.enabled:
        used.append((f"{_NODES}.accounting", nodes.accounting.k8s_node_filter_name))
    if nodes.rest.enabled:
        used.append((f"{_NODES}.rest", nodes.rest.k8s_node_filter_name))
    if nodes.worker is not None:
        used.append((f"{_NODES}.worker", nodes.worker.k8s_node_filter_name))
    for path, name in used:
        yield from _filter(f"{path}.k8sNodeFilterName", name, names)


def _config_writer_filter(spec: SlurmClusterSpec) -> str:
    return spec.sconfig_controller.node.k8s_node_filter_name


def _filter(path: str, name: str, names: frozenset[str]) -> Iterator[Problem]:
    if name not in names:
        yield Problem(
            path, f"{name[:60]!r} is no entry of spec.k8sNodeFilters; {known_names(names)}"
        )


def _partitions(spec: SlurmClusterSpec) -> Iterator[Problem]:
    declared, path = spec.partition_configuration, "spec.partitionConfiguration"
    worker = spec.slurm_nodes.worker
    if declared.config_type == "structured":
        if not declared.partitions:
            yield Problem(path, STRUCTURED)
        yield from duplicates(f"{path}.partitions", (one.name for one in declared.partitions))
    if declared.config_type == "custom":
        for index, line in enumerate(declared.raw_config):
            text = line.strip()
            if text and not text.startswith(("#", "PartitionName")):
                yield Problem(
                    f"{path}.rawConfig[{index}]",
                    f"{text[:60]!r} is no partition: begin the line with PartitionName=",
                )
    if worker and worker.size and any(one.node_set_refs for one in declared.partitions):
        yield Problem(f"{_NODES}.worker.size", WORKERS_BESIDE_NODE_SETS)


def _interfaces(names: tuple[str, ...]) -> Iterator[Problem]:
    """Names that would be another argument, or another line, of plugstack.conf."""
    path = "spec.jobNetworkInterfaces"
    if len(names) > MOST_INTERFACES:
        yield Problem(path, f"has {len(names)} names: write at most {MOST_INTERFACES}")
        return
    for index, name in enumerate(names):
        if not _INTERFACE.fullmatch(name):
            yield Problem(f"{path}[{index}]", f"{name[:60]!r} {NO_INTERFACE}")
    yield from duplicates(path, names)


def _intervals(spec: SlurmClusterSpec) -> Iterator[Problem]:
    writer, path = spec.sconfig_controller, "spec.sConfigController"
    found: dict[str, float] = {}
    for field, text in (
        ("reconfigureWaitTimeout", writer.reconfigure_wait_timeout),
        ("reconfigurePollInterval", writer.reconfigure_poll_interval),
    ):
        try:
            found[field] = duration.seconds(text)
        except ValueError as error:
            yield Problem(f"{path}.{field}", str(error))
        else:
            if found[field] <= 0:
                yield Problem(f"{path}.{field}", f"{text[:60]!r} must be above 0")
    if len(found) > 1 and found["reconfigureWaitTimeout"] <= found["reconfigurePollInterval"]:
        yield Problem(f"{path}.reconfigureWaitTimeout", WAIT_ABOVE_POLL)


def _accounting(spec: SlurmClusterSpec) -> Iterator[Problem]:
    accounting, path = spec.slurm_nodes.accounting, f"{_NODES}.accounting"
    if not accounting.enabled:
        return
    database = accounting.mariadb_operator
    for field, container in (("slurmdbd", accounting.slurmdbd), ("munge", accounting.munge)):
        if container is None or not container.image:
            yield Problem(f"{path}.{field}.image", f"{ABSENT} while accounting is enabled")
    external = accounting.external_db.enabled
    if sum((external, accounting.has_mariadb_operator, accounting.has_embedded)) != 1:
        yield Problem(
            path,
            "enable one of externalDB, mariadbOperator and embeddedDB: accounting has one database",
        )
    if accounting.embedded_db is not None and accounting.has_embedded:
        yield from database_problems(f"{path}.embeddedDB", accounting.embedded_db)
    if external and not accounting.external_db.host:
        yield Problem(f"{path}.externalDB.host", ABSENT)
    elif external and not is_host(accounting.external_db.host):
        yield Problem(
            f"{path}.externalDB.host",
            f"{accounting.external_db.host[:60]!r} is no host: write a DNS name or an address, "
            "without a port",
        )
    replication = database.replication if database is not None else None
    binlog = replication.sync_binlog if replication is not None else None
    if binlog is not None and not isinstance(binlog, int):
        yield Problem(
            f"{path}.mariadbOperator.replication.syncBinlog",
            f"{str(binlog)[:60]!r} is no number: write one, or true or false as up to version 1.23",
        )


def _open_parts(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Containers, affinities and tolerations, which the schema leaves open."""
    for index, one in enumerate(spec.k8s_node_filters):
        fields = {"affinity": one.affinity, "tolerations": list(one.tolerations)}
        yield from pod_fields(f"spec.k8sNodeFilters[{index}]", fields)
    nodes = spec.slurm_nodes
    for name, node in (
        ("accounting", nodes.accounting),
        ("controller", nodes.controller),
        ("exporter", nodes.exporter),
        ("login", nodes.login),
        ("rest", nodes.rest),
        ("worker", nodes.worker),
    ):
        if node is not None:
            path = f"{_NODES}.{name}.customInitContainers"
            has_sssd = isinstance(node, SssdNode) and node.sssd is not None
            taken = pod_containers(has_sssd=has_sssd)
            yield from containers(path, node.custom_init_containers, taken)
    writer = spec.sconfig_controller.node.custom_init_containers
    path = "spec.sConfigController.node.customInitContainers"
    yield from containers(path, writer, POD_CONTAINERS)
