"""NodeSet: Slurm compute nodes, one per pod."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import field

from penstock.api.cluster.cluster_ref import FIXED_REF, NON_EMPTY_REF, ControllerRef
from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    AGE,
    DATE_TIME,
    DURATION,
    INT32,
    NULLABLE,
    OPAQUE,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import Container, PodTemplate, SecretKeySelector, Status
from penstock.api.slinky.common import GROUP, LONGEST_LINE, VERSION, ExtraSshdConfig, SssdConfRef

MOST_REPLICAS = 65_536
"""More than any Slurm cluster has: a slip of the keyboard must not become two billion pods."""
_CLAIMS = "(has({0}.volumeClaimTemplates) ? {0}.volumeClaimTemplates : [])"


class NodeSetSsh(KubeStruct, frozen=True):
    """sshd in the workers."""

    enabled: Annotated[bool, about("Whether users may log in to workers.")] = False
    extra_sshd_config: ExtraSshdConfig = ""
    sssd_conf_ref: SssdConfRef = None


class NodeSetPartition(KubeStruct, frozen=True):
    """A Slurm partition of exactly this NodeSet's nodes."""

    enabled: Annotated[bool, about("Whether there is one.")] = False
    config: Annotated[
        str,
        about(
            "Rest of the PartitionName line, such as `MaxTime=INFINITE Default=YES`.",
            {"pattern": r"^[^\n]+$", "maxLength": LONGEST_LINE},
        ),
    ] = ""


class RollingUpdate(KubeStruct, frozen=True):
    """How many pods an update may take away at once."""

    max_unavailable: Annotated[
        int | str,
        about(
            "Number or percentage of pods that may be unavailable; rounded up.",
            {"maxLength": 16},
            rule(
                "type(self) == string ? self.matches('^[0-9]*[1-9][0-9]*%$') : self >= 1",
                "maxUnavailable must be a number of at least 1 or a percentage above 0%",
            ),
        ),
    ] = "25%"


class ScheduledUpdate(KubeStruct, frozen=True):
    """The maintenance reservation in which pods are updated."""

    start_time: Annotated[str | None, about("Start, RFC 3339.", DATE_TIME)] = None
    duration: Annotated[
        str,
        about(
            "Length, at least 1m.",
            DURATION,
            rule(
                "duration(self) >= duration('1m')",
                "scheduledUpdate.duration must be at least 1m",
            ),
        ),
    ] = "30m"
    flags: Annotated[
        tuple[str, ...] | None,
        about(
            "More flags of the reservation: one of HOURLY, DAILY, WEEKDAY, WEEKEND, WEEKLY, by "
            "which it comes again; FLEX, FORCE_START, MAGNETIC, NO_HOLD_JOBS_AFTER_END, OVERLAP, "
            "STATIC, USER_DELETE.",
            NULLABLE,
        ),
    ] = None


class UpdateStrategy(KubeStruct, frozen=True):
    """How pods reach a new revision."""

    type: Annotated[
        Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"],
        about("When pods are replaced by pods of the new revision."),
    ] = "RollingUpdate"
    rolling_update: Annotated[RollingUpdate, about("For type RollingUpdate.")] = RollingUpdate()
    scheduled_update: Annotated[ScheduledUpdate | None, about("For type ScheduledUpdate.")] = None


class PvcRetentionPolicy(KubeStruct, frozen=True):
    """Whether PVCs are deleted with their pods."""

    when_deleted: Annotated[Literal["Retain", "Delete"], about("When the NodeSet is deleted.")] = (
        "Retain"
    )
    when_scaled: Annotated[Literal["Retain", "Delete"], about("When its pod is scaled in.")] = (
        "Retain"
    )


class NodeSetSpec(KubeStruct, frozen=True):
    """What a set of Slurm nodes should be."""

    controller_ref: Annotated[
        ControllerRef, about("The Slurm cluster of these nodes.", NON_EMPTY_REF, FIXED_REF)
    ]
    replicas: Annotated[
        int,
        about(
            "Number of pods; not used in DaemonSet mode.",
            INT32,
            {"minimum": 0, "maximum": MOST_REPLICAS},
        ),
    ] = 1
    scaling_mode: Annotated[
        Literal["StatefulSet", "DaemonSet"],
        about("StatefulSet: a fixed number of pods. DaemonSet: one pod per matching node."),
    ] = "StatefulSet"
    slurmd: Container = field(default_factory=dict[str, Any])
    ssh: Annotated[
        NodeSetSsh | None,
        about(
            "Login to workers.",
            rule(
                "!self.enabled || !has(self.sssdConfRef) || self.sssdConfRef.name != ''",
                "sssdConfRef.name must not be empty when ssh is enabled",
            ),
        ),
    ] = None
    logfile: Container = field(default_factory=dict[str, Any])
    template: Annotated[PodTemplate, about("Overrides of the worker pods.")] = PodTemplate()
    extra_conf: Annotated[
        str,
        about(
            "Parameters of these nodes as in slurm.conf's NodeName line: Key=Value, separated by "
            "blanks.",
            {"maxLength": LONGEST_LINE},
            rule(
                r"self.matches('^\\s*([^\\s=]+=\\S*(\\s+|$))*$')",
                "extraConf must be Key=Value words separated by blanks",
            ),
        ),
    ] = ""
    partition: Annotated[NodeSetPartition | None, about("Partition of these nodes.")] = None
    volume_claim_templates: Annotated[
        tuple[Annotated[Json, about("A PersistentVolumeClaim.", OPAQUE)], ...] | None,
        about("PVCs that each pod gets. Cannot be changed.", NULLABLE, {"maxItems": 32}),
    ] = None
    update_strategy: Annotated[
        UpdateStrategy,
        about(
            "How pods reach a new revision.",
            rule(
                "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) "
                "&& has(self.scheduledUpdate.startTime) && has(self.scheduledUpdate.duration))",
                "scheduledUpdate.startTime and scheduledUpdate.duration must be set when type is "
                "ScheduledUpdate",
            ),
        ),
    ] = UpdateStrategy()
    revision_history_limit: Annotated[
        int, about("Number of old revisions to keep.", INT32, {"minimum": 0})
    ] = 0
    persistent_volume_claim_retention_policy: Annotated[
        PvcRetentionPolicy, about("Whether PVCs are deleted with their pods.")
    ] = PvcRetentionPolicy()
    min_ready_seconds: Annotated[
        int,
        about("Seconds a pod must be ready before it counts as available.", INT32, {"minimum": 0}),
    ] = 0
    ordinal_padding: Annotated[
        int, about("Digits of an ordinal, filled up with zeros.", {"minimum": 0, "maximum": 20})
    ] = 0
    pin_to_node: Annotated[
        bool, about("Whether a pod always returns to its first Kubernetes node.")
    ] = False
    workload_disruption_protection: Annotated[
        bool, about("Whether pods with jobs are kept from eviction.")
    ] = True
    prune_slurm_node_records: Annotated[
        Literal["Never", "NodeNotFound"], about("When records of gone nodes leave Slurm.")
    ] = "Never"
    oversubscribe_node: Annotated[
        bool, about("Whether several workers may share a Kubernetes node.")
    ] = False

    @property
    def workers_sssd_conf_ref(self) -> SecretKeySelector | None:
        """Where workers' sssd.conf is, if users may log in to them and it has a place."""
        return self.ssh.sssd_conf_ref if self.ssh is not None and self.ssh.enabled else None


class NodeSetStatus(Status, frozen=True, omit_defaults=False):
    """What a set of Slurm nodes is. A count of zero is written, not left out."""

    identity: ClassVar[frozenset[str]] = frozenset({"observedGeneration", "nodeSetHash"})
    replicas: Annotated[int, about("Pods there are.", INT32)] = 0
    updated_replicas: Annotated[int, about("Pods of the wanted revision.", INT32)] = 0
    ready_replicas: Annotated[int, about("Pods that are ready.", INT32)] = 0
    available_replicas: Annotated[int, about("Pods ready for at least minReadySeconds.", INT32)] = 0
    unavailable_replicas: Annotated[int, about("Pods wanted but not available.", INT32)] = 0
    desired: Annotated[int, about("Pods wanted.", INT32)] = 0
    slurm_idle: Annotated[int, about("Nodes that Slurm calls IDLE.", INT32)] = 0
    slurm_allocated: Annotated[int, about("Nodes that Slurm calls ALLOCATED or MIXED.", INT32)] = 0
    slurm_down: Annotated[int, about("Nodes that Slurm calls DOWN.", INT32)] = 0
    slurm_drain: Annotated[int, about("Nodes that Slurm calls DRAIN.", INT32)] = 0
    node_set_hash: Annotated[str, about("Revision that pods should have.")] = ""
    collision_count: Annotated[int, about("Hash collisions so far.", INT32)] = 0
    ordinal_to_node: Annotated[
        dict[str, str], about("Kubernetes node of each ordinal, for pinToNode.")
    ] = field(default_factory=dict[str, str])
    selector: Annotated[str, about("Label selector of the pods, for autoscalers.")] = ""
    external_slurm: Annotated[
        ExternalSlurm | None,
        about("How an external slurmctld is asked; it outlives the Controller."),
    ] = None


class NodeSet(KubeObject, frozen=True, kw_only=True):
    """Slurm compute nodes, each a pod with slurmd."""

    spec: Annotated[
        NodeSetSpec,
        about(
            "What the nodes should be.",
            rule(
                f"{_CLAIMS.format('self')} == {_CLAIMS.format('oldSelf')}",
                "volumeClaimTemplates is immutable",
            ),
        ),
    ]
    status: Annotated[
        NodeSetStatus, about("What they are.", {"required": ["nodeSetHash", "selector"]})
    ] = NodeSetStatus()


NODESETS = Resource(GROUP, VERSION, "NodeSet", "nodesets", NodeSet, optional=True)
INFO = KindInfo(
    NODESETS,
    ("nodesets", "nss", "slurmd"),
    (
        Column("DESIRED", ".status.desired", "integer", 0, "Pods wanted."),
        Column("REPLICAS", ".status.replicas", "integer", 0, "Pods there are."),
        Column("UPDATED", ".status.updatedReplicas", "integer", 0, "Pods of the wanted revision."),
        Column("READY", ".status.readyReplicas", "integer", 0, "Pods that are ready."),
        Column("IDLE", ".status.slurmIdle", "integer", 1, "Nodes that Slurm calls IDLE."),
        Column(
            "ALLOCATED",
            ".status.slurmAllocated",
            "integer",
            1,
            "Nodes that Slurm calls ALLOCATED or MIXED.",
        ),
        Column("DOWN", ".status.slurmDown", "integer", 1, "Nodes that Slurm calls DOWN."),
        Column("DRAIN", ".status.slurmDrain", "integer", 1, "Nodes that Slurm calls DRAIN."),
        AGE,
        REASON,
    ),
    scale_selector=".status.selector",
)
