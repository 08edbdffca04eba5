"""Partition: a Slurm partition over any nodes of a cluster."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import field

from penstock.api.cluster.cluster_ref import FIXED_REF, NON_EMPTY_REF, ControllerRef
from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    ATOMIC_LIST,
    INT32,
    INT64,
    NULLABLE,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import Status

GROUP = "penstock.dev"
VERSION = "v1alpha1"

NAME_PATTERN: Final = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ENTRY_PATTERN: Final = r"^[+-]?[A-Za-z0-9_]([A-Za-z0-9_./-]|\[[0-9,-]+\]|,)*$"
VALUE_PATTERN: Final = r'^[^\n\r"]+$'
WORD_PATTERN: Final = r'^[^\s",=#\\]+$'
TIME_PATTERN: Final = (
    r"^([0-9]+|[0-9]+:[0-9]{1,2}|[0-9]+:[0-9]{1,2}:[0-9]{1,2}"
    r"|[0-9]+-[0-9]{1,2}(:[0-9]{1,2}){0,2}|INFINITE|UNLIMITED)$"
)
SHARE_PATTERN: Final = r"^(EXCLUSIVE|NO|(YES|FORCE)(:[1-9][0-9]{0,4})?)$"
PREEMPT_PATTERN: Final = (
    "^(OFF|CANCEL|REQUEUE|SUSPEND|GANG|PRIORITY|WITHIN)"
    "(,(CANCEL|REQUEUE|SUSPEND|GANG|PRIORITY|WITHIN))*$"
)
MOST_ENTRIES: Final = 1024
MOST_EXTRA: Final = 32
NO_LIMIT: Final = ("UNLIMITED", "INFINITE")

_WORD: Json = {"pattern": WORD_PATTERN, "maxLength": 256}
_COUNT = rule(
    f"type(self) == string ? self in {list(NO_LIMIT)} : self >= 0",
    "must be a number of at least 0, or UNLIMITED",
)
_TIME = rule(
    f"type(self) == string ? self.matches('{TIME_PATTERN}') : self >= 0",
    "must be minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, "
    "days-hours:minutes:seconds, or UNLIMITED",
)

_COUNTED: Json = {"maxLength": 16, **_COUNT}
_TIMED: Json = {"maxLength": 32, **_TIME}
_NUMBER: Json = {**INT32, "minimum": 0}
_PRIORITY: Json = {**_NUMBER, "maximum": 65533}
_MEBIBYTES: Json = {**INT64, "minimum": 0}

Names = Annotated[
    tuple[Annotated[str, about("A name.", _WORD)], ...] | None,
    about("Names.", NULLABLE, ATOMIC_LIST, {"maxItems": 1024}),
]
Count = Annotated[int | str | None, about("A number, or UNLIMITED.", _COUNTED)]
Time = Annotated[int | str | None, about("Minutes, or as Slurm writes a time.", _TIMED)]
Number = Annotated[int | None, about("A number.", _NUMBER)]
Priority = Annotated[int | None, about("A number.", _PRIORITY)]
Mebibytes = Annotated[int | None, about("Memory in MiB.", _MEBIBYTES)]


class LabelSelectorRequirement(KubeStruct, frozen=True, kw_only=True):
    """One requirement of a LabelSelector."""

    key: Annotated[str, about("Key of the label.", {"maxLength": 317})]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"], about("How values are compared.")
    ]
    values: Annotated[
        tuple[Annotated[str, about("A value.", {"maxLength": 63})], ...],
        about("Values for In and NotIn.", ATOMIC_LIST, {"maxItems": 256}),
    ] = ()


class LabelSelector(KubeStruct, frozen=True):
    """A LabelSelector of Kubernetes. All of it must hold; an empty one selects everything."""

    match_labels: Annotated[
        dict[str, str], about("Labels with exactly these values.", {"maxProperties": 64})
    ] = field(default_factory=dict[str, str])
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...],
        about("Requirements.", ATOMIC_LIST, {"maxItems": 64}),
    ] = ()


class WorkerSelector(KubeStruct, frozen=True):
    """Which workers: all that is given must hold for one and the same worker."""

    pod_labels: Annotated[LabelSelector | None, about("Labels of the worker's pod.", NULLABLE)] = (
        None
    )
    node_labels: Annotated[
        LabelSelector | None, about("Labels of the Kubernetes node of the worker's pod.", NULLABLE)
    ] = None
    features: Annotated[
        tuple[Annotated[str, about("A feature.", _WORD)], ...],
        about("Slurm features that the node must all have.", ATOMIC_LIST, {"maxItems": 64}),
    ] = ()


class PartitionKeys(KubeStruct, frozen=True):
    """The keys of slurm.conf's PartitionName line, by Slurm's own names. Source: slurm.conf(5)."""

    alloc_nodes: Annotated[Names, about("AllocNodes: hosts from which jobs may be submitted.")] = (
        None
    )
    allow_accounts: Annotated[Names, about("AllowAccounts: accounts that may run jobs.")] = None
    allow_groups: Annotated[Names, about("AllowGroups: groups whose users may run jobs.")] = None
    allow_qos: Annotated[Names, about("AllowQos: QOS that may run jobs.")] = None
    alternate: Annotated[
        str | None,
        about("Alternate: partition to use instead while this one is DRAIN or INACTIVE.", _WORD),
    ] = None
    cpu_bind: Annotated[
        Literal["none", "socket", "ldom", "core", "thread", "off"] | None,
        about("CpuBind: default binding of tasks."),
    ] = None
    def_cpu_per_gpu: Annotated[Number, about("DefCpuPerGPU: CPUs given for each GPU.")] = None
    def_mem_per_cpu: Annotated[
        Mebibytes, about("DefMemPerCPU: default memory for each CPU, in MiB.")
    ] = None
    def_mem_per_gpu: Annotated[
        Mebibytes, about("DefMemPerGPU: default memory for each GPU, in MiB.")
    ] = None
    def_mem_per_node: Annotated[
        Mebibytes, about("DefMemPerNode: default memory for each node, in MiB.")
    ] = None
    default: Annotated[
        bool | None, about("Default: whether jobs that name no partition go here.")
    ] = None
    default_time: Annotated[Time, about("DefaultTime: time limit of jobs that ask for none.")] = (
        None
    )
    deny_accounts: Annotated[Names, about("DenyAccounts: accounts that may not run jobs.")] = None
    deny_qos: Annotated[Names, about("DenyQos: QOS that may not run jobs.")] = None
    disable_root_jobs: Annotated[
        bool | None, about("DisableRootJobs: whether root may not run jobs.")
    ] = None
    exclusive: Annotated[
        Literal["NO", "NODE", "USER", "TOPO"] | None,
        about("Exclusive: what a job has for itself. Slurm 26.05 and later."),
    ] = None
    exclusive_topo: Annotated[
        bool | None, about("ExclusiveTopo: whether a topology segment is for one job.")
    ] = None
    exclusive_user: Annotated[
        bool | None, about("ExclusiveUser: whether a node is for one user at a time.")
    ] = None
    grace_time: Annotated[Number, about("GraceTime: seconds that a preempted job is given.")] = None
    hidden: Annotated[bool | None, about("Hidden: whether only users who may use it see it.")] = (
        None
    )
    lln: Annotated[bool | None, about("LLN: whether the least loaded nodes are taken first.")] = (
        None
    )
    max_cpus_per_node: Annotated[
        Count, about("MaxCPUsPerNode: CPUs of a node that its jobs may use.")
    ] = None
    max_cpus_per_socket: Annotated[
        Count, about("MaxCPUsPerSocket: CPUs of a socket that its jobs may use.")
    ] = None
    max_mem_per_cpu: Annotated[
        Mebibytes, about("MaxMemPerCPU: most memory for each CPU, in MiB.")
    ] = None
    max_mem_per_node: Annotated[
        Mebibytes, about("MaxMemPerNode: most memory on each node, in MiB.")
    ] = None
    max_nodes: Annotated[Count, about("MaxNodes: most nodes of one job.")] = None
    max_time: Annotated[Time, about("MaxTime: longest time limit of a job.")] = None
    min_nodes: Annotated[Number, about("MinNodes: fewest nodes of one job.")] = None
    over_subscribe: Annotated[
        str | None,
        about(
            'OverSubscribe: "NO", EXCLUSIVE, YES, FORCE, or with a count such as FORCE:4. YAML '
            "reads NO and YES without quotes as false and true.",
            {"pattern": SHARE_PATTERN},
        ),
    ] = None
    over_time_limit: Annotated[
        Count, about("OverTimeLimit: minutes by which jobs may exceed their limit.")
    ] = None
    power_down_on_idle: Annotated[
        bool | None, about("PowerDownOnIdle: whether idle nodes are powered down.")
    ] = None
    preempt_mode: Annotated[
        str | None,
        about(
            'PreemptMode: "OFF", CANCEL, REQUEUE, SUSPEND, GANG or several with commas. YAML reads '
            "OFF without quotes as false.",
            {"pattern": PREEMPT_PATTERN},
        ),
    ] = None
    priority_job_factor: Annotated[
        Priority, about("PriorityJobFactor: share of jobs' priority.")
    ] = None
    priority_tier: Annotated[
        Priority, about("PriorityTier: jobs of higher tiers are looked at first.")
    ] = None
    qos: Annotated[str | None, about("QOS: its limits hold for the partition.", _WORD)] = None
    req_resv: Annotated[bool | None, about("ReqResv: whether jobs must name a reservation.")] = None
    resume_timeout: Annotated[Count, about("ResumeTimeout: seconds a node may take to resume.")] = (
        None
    )
    root_only: Annotated[bool | None, about("RootOnly: whether only root may start jobs.")] = None
    select_type_parameters: Annotated[
        str | None, about("SelectTypeParameters: the resource that is consumed.", _WORD)
    ] = None
    state: Annotated[
        Literal["UP", "DOWN", "DRAIN", "INACTIVE"] | None,
        about("State: whether jobs are taken (UP, DOWN) and started (UP, DRAIN)."),
    ] = None
    suspend_time: Annotated[
        Count, about("SuspendTime: idle seconds after which a node is suspended.")
    ] = None
    suspend_timeout: Annotated[
        Count, about("SuspendTimeout: seconds a node may take to suspend.")
    ] = None
    topology: Annotated[
        str | None, about("Topology: name of a topology of topology.yaml.", _WORD)
    ] = None
    tres_billing_weights: Annotated[
        str | None,
        about(
            "TRESBillingWeights: such as CPU=1.0,Mem=0.25G.",
            {"pattern": VALUE_PATTERN, "maxLength": 4096},
        ),
    ] = None


KEYS: Final = {
    "alloc_nodes": "AllocNodes",
    "allow_accounts": "AllowAccounts",
    "allow_groups": "AllowGroups",
    "allow_qos": "AllowQos",
    "alternate": "Alternate",
    "cpu_bind": "CpuBind",
    "def_cpu_per_gpu": "DefCpuPerGPU",
    "def_mem_per_cpu": "DefMemPerCPU",
    "def_mem_per_gpu": "DefMemPerGPU",
    "def_mem_per_node": "DefMemPerNode",
    "default": "Default",
    "default_time": "DefaultTime",
    "deny_accounts": "DenyAccounts",
    "deny_qos": "DenyQos",
    "disable_root_jobs": "DisableRootJobs",
    "exclusive": "Exclusive",
    "exclusive_topo": "ExclusiveTopo",
    "exclusive_user": "ExclusiveUser",
    "grace_time": "GraceTime",
    "hidden": "Hidden",
    "lln": "LLN",
    "max_cpus_per_node": "MaxCPUsPerNode",
    "max_cpus_per_socket": "MaxCPUsPerSocket",
    "max_mem_per_cpu": "MaxMemPerCPU",
    "max_mem_per_node": "MaxMemPerNode",
    "max_nodes": "MaxNodes",
    "max_time": "MaxTime",
    "min_nodes": "MinNodes",
    "over_subscribe": "OverSubscribe",
    "over_time_limit": "OverTimeLimit",
    "power_down_on_idle": "PowerDownOnIdle",
    "preempt_mode": "PreemptMode",
    "priority_job_factor": "PriorityJobFactor",
    "priority_tier": "PriorityTier",
    "qos": "QOS",
    "req_resv": "ReqResv",
    "resume_timeout": "ResumeTimeout",
    "root_only": "RootOnly",
    "select_type_parameters": "SelectTypeParameters",
    "state": "State",
    "suspend_time": "SuspendTime",
    "suspend_timeout": "SuspendTimeout",
    "topology": "Topology",
    "tres_billing_weights": "TRESBillingWeights",
}
"""Field -> key of the PartitionName line, in the order in which they are written."""

TAKEN: Final = tuple(
    sorted({key.lower() for key in (*KEYS.values(), "Nodes", "PartitionName", "Shared")})
)
"""Keys that `extra` may not have, in lower case: they have a field. Shared is OverSubscribe."""


class PartitionSpec(PartitionKeys, frozen=True):
    """What a partition should be."""

    controller_ref: Annotated[
        ControllerRef, about("The Slurm cluster of the partition.", NON_EMPTY_REF, FIXED_REF)
    ] = ControllerRef()
    name: Annotated[
        str,
        about(
            "Slurm's PartitionName; the object's own name when absent.",
            {"maxLength": 64, "pattern": f"{NAME_PATTERN[:-1]}$|^$"},
            rule("self.lowerAscii() != 'default'", "DEFAULT is no partition: choose another name"),
        ),
    ] = ""
    nodes: Annotated[
        tuple[
            Annotated[
                str,
                about("One entry.", {"pattern": ENTRY_PATTERN, "maxLength": 4096}),
            ],
            ...,
        ],
        about(
            "Nodes: Slurm host expressions (compute-[0-3]), Slurm names of NodeSets, or ALL. An "
            "entry with + adds and one with - removes, after all others and in the order written.",
            {"x-kubernetes-list-type": "set", "maxItems": MOST_ENTRIES},
        ),
    ] = ()
    node_sets: Annotated[
        tuple[Annotated[str, about("Name of a NodeSet.", {"maxLength": 253})], ...],
        about(
            "All nodes of these NodeSets of the same namespace, whether they are there yet or not.",
            {"x-kubernetes-list-type": "set", "maxItems": MOST_ENTRIES},
        ),
    ] = ()
    selector: Annotated[
        WorkerSelector | None,
        about("Nodes of the workers that it selects, as they come.", NULLABLE),
    ] = None
    extra: Annotated[
        dict[
            str, Annotated[str, about("Its value.", {"pattern": VALUE_PATTERN, "maxLength": 4096})]
        ],
        about(
            "Keys of the PartitionName line for which there is no field yet.",
            {"maxProperties": MOST_EXTRA},
            rule(
                f"self.all(key, !(key.lowerAscii() in {list(TAKEN)}))",
                "extra has a key for which there is a field: use the field",
            ),
            rule(
                "self.all(key, key.matches('^[A-Za-z][A-Za-z0-9]*$'))",
                "keys of extra must be keys of slurm.conf",
            ),
        ),
    ] = field(default_factory=dict[str, str])
    drift: Annotated[
        Literal["Report", "Revert", "Adopt"],
        about(
            "Handling of a change that is made in Slurm itself: reported by an event and the "
            "condition Drifted; also reverted; or written into this object."
        ),
    ] = "Report"


class PartitionStatus(Status, frozen=True):
    """What a partition is."""

    partition: Annotated[str, about("Slurm's PartitionName.")] = ""
    state: Annotated[str, about("State in slurmctld.")] = ""
    nodes: Annotated[str, about("Its nodes, as slurmctld lists them.")] = ""
    total_nodes: Annotated[int, about("Number of its nodes.", INT32)] = 0


def _exclusive(one: str, other: str) -> Json:
    return rule(
        f"!has(self.{one}) || !has(self.{other})",
        f"{one} and {other} exclude each other: Slurm takes one of them",
    )


class Partition(KubeObject, frozen=True, kw_only=True):
    """A Slurm partition over nodes of any NodeSets, changed in Slurm without a reconfigure."""

    spec: Annotated[
        PartitionSpec,
        about(
            "What the partition should be.",
            {"required": ["controllerRef"]},
            _exclusive("defMemPerCpu", "defMemPerNode"),
            _exclusive("maxMemPerCpu", "maxMemPerNode"),
            _exclusive("allowAccounts", "denyAccounts"),
            _exclusive("allowQos", "denyQos"),
        ),
    ]
    status: Annotated[PartitionStatus, about("What it is.")] = PartitionStatus()

    @property
    def slurm_name(self) -> str:
        """Slurm's PartitionName."""
        return self.spec.name or self.metadata.name


PARTITIONS = Resource(GROUP, VERSION, "Partition", "partitions", Partition, optional=True)
INFO = KindInfo(
    PARTITIONS,
    ("part",),
    (
        Column("PARTITION", ".status.partition", description="Slurm's PartitionName."),
        Column("STATE", ".status.state", description="State in slurmctld."),
        Column("NODES", ".status.totalNodes", "integer", description="Number of its nodes."),
        Column("NODELIST", ".status.nodes", priority=1, description="Its nodes."),
        READY,
        REASON,
    ),
)
