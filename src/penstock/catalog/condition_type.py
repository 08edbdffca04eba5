"""Types of conditions that the operator and sconfigcontroller set."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ConditionType(StrEnum):
    """The type is API. `normal` is the status of an object on which nobody has to act."""

    _value_: str
    kinds: str
    normal: str
    meaning: str

    def __new__(cls, name: str, kinds: str, normal: str, meaning: str) -> Self:
        """Create a member whose value is the name of the type."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.kinds = kinds
        member.normal = normal
        member.meaning = meaning
        return member

    READY = "Ready", "all", "True", "Whether the object has its desired state."
    RECONCILING = (
        "Reconciling",
        "all",
        "absent",
        "The operator is bringing the object to its desired state.",
    )
    STALLED = "Stalled", "all", "absent", "Nothing changes before somebody acts."
    SERVED = "Served", "all", "True", "Whether this version serves all fields of the object."
    CONFIG_VALID = (
        "ConfigValid",
        "Controller, SlurmCluster",
        "True",
        "Whether slurmctld accepts the declared configuration.",
    )
    CONFIG_APPLIED = (
        "ConfigApplied",
        "Controller, SlurmCluster",
        "True",
        "Whether slurmctld runs with the declared configuration.",
    )
    KEYS_IN_USE = (
        "KeysInUse",
        "Controller, SlurmCluster",
        "True",
        "Whether all daemons use the slurm.key or munge.key of the Secret, after its first change.",
    )
    PARTITIONS_DRAINING = (
        "PartitionsDraining",
        "Controller, SlurmCluster",
        "absent",
        "Removed partitions stay for their jobs.",
    )
    DRIFTED = (
        "Drifted",
        "Controller, NodeSet, Partition, SlurmCluster",
        "False",
        "Whether somebody changed partitions or nodes in Slurm itself.",
    )
    CGROUPS_SHARED = (
        "CgroupsShared",
        "NodeSet",
        "absent",
        "Nodes outside of Kubernetes share a cgroup.conf that may harm them.",
    )
    MONITORED = (
        "Monitored",
        "Controller, SlurmCluster",
        "True",
        "Whether the exporter and the requested monitors exist.",
    )
    ACCOUNTING_REGISTERED = (
        "AccountingRegistered",
        "Controller, SlurmCluster",
        "True",
        "Whether slurmdbd has the cluster registered.",
    )
    DATABASE_REACHABLE = (
        "DatabaseReachable",
        "Accounting, SlurmCluster",
        "True",
        "Whether slurmdbd works with its database.",
    )
    PODS_ADOPTED = (
        "PodsAdopted",
        "Accounting, Controller, LoginSet, NodeConfigurator, RestApi, SlurmCluster",
        "False",
        "Whether pods stay that another operator created.",
    )
    DIRECTORY_FAILING = (
        "DirectoryFailing",
        "LoginSet, SlurmCluster",
        "False",
        "Whether sssd fails to get its users from the directory.",
    )
    HOST_NETWORK_EXPOSED = (
        "HostNetworkExposed",
        "LoginSet, NodeSet",
        "False",
        "Whether ports are open at the Kubernetes node's addresses.",
    )
    RESERVATION_CREATED = (
        "ReservationCreated",
        "NodeSet",
        "any",
        "Whether the reservation of a scheduled update exists.",
    )
    ROLLED_BACK = "RolledBack", "NodeSet", "True", "The result of the last requested rollback."
    CONTAINERS_LIMITED = (
        "ContainersLimited",
        "NodeSet",
        "False",
        "Whether workers lack rights that containers of jobs need.",
    )
    GRES_MISMATCH = (
        "GresMismatch",
        "NodeSet",
        "False",
        "Whether the declarations of GPUs differ.",
    )
    PODS_READY = "PodsReady", "NodeSet (slurm.nebius.ai)", "True", "Whether all workers are there."
    WORKER_ROOTS_EQUAL = (
        "WorkerRootsEqual",
        "NodeSet (slurm.nebius.ai), SlurmCluster",
        "True",
        "Whether workers with a root of their own have the same in it.",
    )
    JAIL_POPULATED = "JailPopulated", "SlurmCluster", "True", "Whether the jail is filled."
    JAIL_SHARED = (
        "JailShared",
        "SlurmCluster",
        "True",
        "Whether pods on several Kubernetes nodes can mount the jail.",
    )
    COMMON_AVAILABLE = (
        "CommonAvailable",
        "SlurmCluster",
        "True",
        "Whether keys, configuration and Services exist.",
    )
    CONTROLLERS_AVAILABLE = (
        "ControllersAvailable",
        "SlurmCluster",
        "True",
        "Whether slurmctld runs.",
    )
    LOGIN_AVAILABLE = "LoginAvailable", "SlurmCluster", "True", "Whether all logins run."
    SCONFIG_CONTROLLER_AVAILABLE = (
        "SConfigControllerAvailable",
        "SlurmCluster",
        "True",
        "Whether sconfigcontroller runs.",
    )
    ACCOUNTING_AVAILABLE = "AccountingAvailable", "SlurmCluster", "True", "Whether slurmdbd runs."
    NODE_SET_REFS_RESOLVED = (
        "NodeSetRefsResolved",
        "SlurmCluster",
        "True",
        "Whether all NodeSets exist that partitions name.",
    )
    JAILED_CONFIGS_DELIVERED = (
        "JailedConfigsDelivered",
        "SlurmCluster",
        "absent",
        "JailedConfigs of a cluster without a jail are not delivered.",
    )
    POPULATE_JAIL_MODE = (
        "PopulateJailMode",
        "SlurmCluster",
        "True",
        "The maintenance mode, as its reason.",
    )
    LAST_RUN_PASSED = (
        "LastRunPassed",
        "ActiveCheck",
        "True",
        "Whether the last run of the check completed.",
    )
    FILES_WRITTEN = "FilesWritten", "JailedConfig", "True", "Whether the files are in the jail."
    UPDATE_ACTIONS_COMPLETED = (
        "UpdateActionsCompleted",
        "JailedConfig",
        "True",
        "Whether slurmctld was reconfigured after the last change.",
    )
