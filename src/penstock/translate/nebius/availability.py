"""What runs of a SlurmCluster, as the conditions and the phase that users and scripts know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from penstock.api.kubernetes.conditions import Finding
from penstock.api.nebius import names
from penstock.api.nebius.jail_rules import WITHOUT_JAIL
from penstock.api.nebius.related_objects import unknown_node_sets
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.reasons.partition import PartitionReason
from penstock.catalog.reasons.workers import WorkerReason
from penstock.model.worker_status import WorkerSetStatus
from penstock.translate.nebius.jail import cluster_mode

Phase = Literal["Pending", "Not available", "Available"]
AVAILABLE: Final = JailReason.AVAILABLE
_NOT_AVAILABLE: Final = JailReason.NOT_AVAILABLE
_IN_MAINTENANCE: Final = JailReason.MAINTENANCE
_ACCOUNTING: Final = ConditionType.ACCOUNTING_AVAILABLE
OF_THE_ORIGINAL: Final = frozenset(
    {
        "WorkersAvailable",
        "ConfigUpdated",
        "ConfigDynamicUpdated",
        "StatefulSetUpdated",
        "StatefulSetTerminated",
    }
)
"""Types of conditions that only the original sets: in an adopted object nobody updates them."""
CONTROLLERS: Final = ConditionType.CONTROLLERS_AVAILABLE
"""Type of the condition about slurmctld."""
_CONFIG_WRITER: Final = ConditionType.SCONFIG_CONTROLLER_AVAILABLE
JAILED_CONFIGS_DELIVERED: Final = ConditionType.JAILED_CONFIGS_DELIVERED
"""Type of the condition about JailedConfigs that have no jail to go to."""
_NO_JAIL: Final = JailReason.NO_JAIL


@dataclass(frozen=True, slots=True)
class Availability:
    """The workloads of one cluster: whether each has its pods, with the words about them.

    `jail` is about the content of the jail, `rest` about slurmrestd. One that is not in the cluster
    is None: accounting where it is off, sconfigcontroller where there is no jail.
    """

    jail: Finding
    slurmctld: Finding
    login: Finding
    sconfigcontroller: Finding | None
    rest: Finding
    accounting: Finding | None = None


def conditions(cluster: SlurmCluster, found: Availability) -> list[Finding]:
    """The findings about the cluster's parts; those with a condition of its own have its type.

    In maintenance daemons and logins are not expected, so Ready does not depend on them.
    """
    resting = cluster_mode(cluster).scales_down
    return [
        found.jail,
        _condition(CONTROLLERS, found.slurmctld, resting=resting),
        found.rest,
        _condition(ConditionType.LOGIN_AVAILABLE, found.login, resting=resting),
        _config_writer(cluster, found.sconfigcontroller),
        _accounting(found.accounting, resting=resting),
        _maintenance(cluster),
    ]


def common(*, resting: bool, waiting: Sequence[Finding]) -> Finding:
    """CommonAvailable: whether keys, configuration and Services exist."""
    if resting:
        words = "The cluster is in maintenance"
        return _remark(False, _IN_MAINTENANCE, words, ConditionType.COMMON_AVAILABLE)
    if waiting:
        return _remark(None, waiting[0].reason, waiting[0].message, ConditionType.COMMON_AVAILABLE)
    return _remark(
        True, AVAILABLE, "Keys, configuration and Services exist", ConditionType.COMMON_AVAILABLE
    )


def node_sets_resolved(cluster: SlurmCluster, known: Sequence[str]) -> Finding | None:
    """NodeSetRefsResolved: whether all NodeSets exist that partitions name; None without names."""
    if cluster.spec.partition_configuration.config_type != "structured":
        return None
    missing = "; ".join(unknown_node_sets(cluster, known))
    if missing:
        return _remark(
            False, PartitionReason.REFERENCES_IGNORED, missing, ConditionType.NODE_SET_REFS_RESOLVED
        )
    words = "All NodeSets of partitions exist"
    return _remark(
        True, PartitionReason.REFERENCES_RESOLVED, words, ConditionType.NODE_SET_REFS_RESOLVED
    )


def phase(found: Availability | None) -> Phase:
    """The phase: Pending before the first workload exists."""
    if found is None:
        return "Pending"
    parts = (found.jail, found.slurmctld, found.login)
    others = [one for one in (found.sconfigcontroller, found.accounting) if one is not None]
    return "Available" if all(one.ok for one in (*parts, *others)) else "Not available"


def _condition(type_: ConditionType, found: Finding, *, resting: bool = False) -> Finding:
    if resting:
        return _remark(False, _IN_MAINTENANCE, "The cluster is in maintenance", type_)
    if found.ok:
        return Finding(True, AVAILABLE, found.message, type_)
    return Finding(found.ok, _NOT_AVAILABLE, found.message, type_)


def _config_writer(cluster: SlurmCluster, found: Finding | None) -> Finding:
    if found is not None:
        return _condition(_CONFIG_WRITER, found)
    config_map = names.slurm_configs(cluster.metadata.name)
    words = f"{WITHOUT_JAIL}: pods mount the configuration from ConfigMap {config_map}"
    return _remark(False, _NO_JAIL, words, _CONFIG_WRITER)


def jailed_configs(found: Sequence[str]) -> Finding | None:
    """That nothing delivers these JailedConfigs of a cluster without a jail; None without any."""
    if not found:
        return None
    words = (
        f"JailedConfig {list_some(sorted(found))} not delivered: {WITHOUT_JAIL}. Mount their "
        "ConfigMaps by customMounts"
    )
    return _remark(False, _NO_JAIL, words, JAILED_CONFIGS_DELIVERED)


def _accounting(found: Finding | None, *, resting: bool) -> Finding:
    if found is None:
        words = "Accounting is not enabled in spec.slurmNodes.accounting"
        return _remark(False, _NOT_AVAILABLE, words, _ACCOUNTING)
    return _condition(_ACCOUNTING, found, resting=resting)


def _maintenance(cluster: SlurmCluster) -> Finding:
    mode = cluster.spec.maintenance
    return _remark(
        True, JailReason(mode), f"spec.maintenance is {mode}", ConditionType.POPULATE_JAIL_MODE
    )


def _remark(
    ok: bool | None, reason: ConditionReason, message: str, type_: ConditionType
) -> Finding:
    """A condition of its own of which Ready does not depend."""
    return Finding(ok, reason, message, type_, excluded_from_ready=True)


def node_set_parts(status: WorkerSetStatus, *, deleting: bool) -> tuple[str, list[Finding]]:
    """Phase and PodsReady of a NodeSet."""
    ready = status.available_replicas >= status.desired
    words = f"{status.available_replicas} of {status.desired} workers are available"
    reason = WorkerReason.NODE_SET_READY if ready else WorkerReason.NODE_SET_NOT_READY
    found = [_remark(ready, reason, words, ConditionType.PODS_READY)]
    if deleting:
        return "Terminating", found
    return "Ready" if ready else "Provisioning", found
