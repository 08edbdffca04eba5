"""Accounting of a SlurmCluster: slurmdbd and its database."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.cluster.embedded_database import EmbeddedDatabase
from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import INT32, about
from penstock.api.nebius.common import NodeContainer, SlurmNode
from penstock.api.nebius.mariadb import MariaDbOperator

_TRES = "Billing|CPU|Mem|VMem|Node|Energy|Pages|FS/Disk|FS/Lustre|Gres/gpu"
_YesNo = Annotated[Literal["yes", "no"], about("Whether records are archived before a purge.")]
_Age = Annotated[str, about("Age from which records are purged, such as 12month.")]


class SecretKey(KubeStruct, frozen=True):
    """One key of a Secret."""

    name: Annotated[str, about("Name of the Secret.")] = ""
    key: Annotated[str, about("Key within the Secret's data.")] = ""


class DatabaseTls(KubeStruct, frozen=True):
    """TLS to an external database."""

    server_ca_secret_ref: Annotated[str, about("Secret with ca.crt.")] = field(
        default="", name="serverCASecretRef"
    )
    client_cert_secret_ref: Annotated[str, about("Secret with tls.crt and tls.key.")] = ""


class ExternalDatabase(KubeStruct, frozen=True):
    """A MySQL or MariaDB that somebody else runs."""

    enabled: Annotated[bool, about("Whether it is used.")] = False
    host: Annotated[str, about("StorageHost of slurmdbd.conf.")] = ""
    port: Annotated[int, about("StoragePort of slurmdbd.conf.", INT32)] = 3306
    user: Annotated[str, about("StorageUser of slurmdbd.conf.")] = ""
    password_secret_key_ref: Annotated[SecretKey | None, about("The password.")] = None
    tls: Annotated[DatabaseTls | None, about("TLS to the database.")] = None
    storage_parameters: Annotated[
        dict[str, str] | None, about("StorageParameters of slurmdbd.conf.")
    ] = None


class EmbeddedDb(EmbeddedDatabase, frozen=True, kw_only=True):
    """A MariaDB that the operator runs itself. The original has no such field."""

    enabled: Annotated[bool, about("Whether it is used.")] = False


class SlurmdbdConfig(KubeStruct, frozen=True):
    """Values of slurmdbd.conf. Source: slurmdbd.conf(5)."""

    archive_events: _YesNo = "yes"
    archive_jobs: _YesNo = "yes"
    archive_resvs: _YesNo = "yes"
    archive_steps: _YesNo = "no"
    archive_suspend: _YesNo = "no"
    archive_txn: _YesNo = field(default="no", name="archiveTXN")
    archive_usage: _YesNo = "yes"
    debug_level: Annotated[
        Literal[
            "quiet",
            "fatal",
            "error",
            "info",
            "verbose",
            "debug",
            "debug2",
            "debug3",
            "debug4",
            "debug5",
        ],
        about("DebugLevel."),
    ] = "info"
    debug_flags: Annotated[
        Literal[
            "AuditRPCs",
            "DB_ARCHIVE",
            "DB_ASSOC",
            "DB_EVENT",
            "DB_JOB",
            "DB_QOS",
            "DB_QUERY",
            "DB_RESERVATION",
            "DB_RESOURCE",
            "DB_STEP",
            "DB_TRES",
            "DB_USAGE",
            "Network",
        ]
        | None,
        about("DebugFlags: one of them."),
    ] = None
    tcp_timeout: Annotated[int, about("TCPTimeout, in seconds.")] = 2
    purge_event_after: _Age = "1month"
    purge_job_after: _Age = "12month"
    purge_resv_after: _Age = "1month"
    purge_step_after: _Age = "1month"
    purge_suspend_after: _Age = "1month"
    purge_txn_after: _Age = field(default="12month", name="purgeTXNAfter")
    purge_usage_after: _Age = "24month"
    private_data: Annotated[str, about("PrivateData.")] = ""


class AccountingSlurmConfig(KubeStruct, frozen=True):
    """Keys of slurm.conf about accounting. Source: slurm.conf(5)."""

    accounting_storage_tres: Annotated[
        str, about("AccountingStorageTRES.", {"pattern": f"^(({_TRES})(,)?)+$"})
    ] = field(default="CPU,Mem,Node,VMem,Gres/gpu", name="accountingStorageTRES")
    accounting_store_flags: Annotated[str, about("AccountingStoreFlags.")] = ""
    acct_gather_interconnect_type: Annotated[str, about("AcctGatherInterconnectType.")] = ""
    acct_gather_filesystem_type: Annotated[str, about("AcctGatherFilesystemType.")] = ""
    acct_gather_profile_type: Annotated[str, about("AcctGatherProfileType.")] = ""
    job_acct_gather_type: Annotated[
        Literal["jobacct_gather/linux", "jobacct_gather/cgroup", "jobacct_gather/none"] | None,
        about(
            "JobAcctGatherType: jobacct_gather/none when absent, jobacct_gather/cgroup with "
            "spec.slurmNodes.worker."
        ),
    ] = None
    job_acct_gather_frequency: Annotated[int, about("JobAcctGatherFrequency, in seconds.")] = 0
    job_acct_gather_params: Annotated[
        Literal["NoShared", "UsePss", "OverMemoryKill", "DisableGPUAcct"] | None,
        about("JobAcctGatherParams."),
    ] = None
    priority_weight_age: Annotated[int, about("PriorityWeightAge.")] = 0
    priority_weight_fairshare: Annotated[int, about("PriorityWeightFairshare.")] = 0
    priority_weight_qos: Annotated[int, about("PriorityWeightQOS.")] = field(
        default=0, name="priorityWeightQOS"
    )
    priority_weight_tres: Annotated[str, about("PriorityWeightTRES.")] = field(
        default="", name="priorityWeightTRES"
    )


class AccountingNode(SlurmNode, frozen=True, kw_only=True):
    """slurmdbd and its database."""

    enabled: Annotated[bool, about("Whether the cluster has accounting.")] = False
    slurmdbd: Annotated[NodeContainer | None, about("The slurmdbd container.")] = None
    munge: Annotated[NodeContainer | None, about("The munge container.")] = None
    external_db: Annotated[ExternalDatabase, about("A database elsewhere.")] = field(
        default_factory=ExternalDatabase, name="externalDB"
    )
    mariadb_operator: Annotated[
        MariaDbOperator | None, about("A database that mariadb-operator runs.")
    ] = None
    embedded_db: Annotated[EmbeddedDb | None, about("A MariaDB that the operator runs itself.")] = (
        field(default=None, name="embeddedDB")
    )
    slurmdbd_config: Annotated[SlurmdbdConfig, about("Values of slurmdbd.conf.")] = field(
        default_factory=SlurmdbdConfig
    )
    slurm_config: Annotated[AccountingSlurmConfig, about("Keys of slurm.conf.")] = field(
        default_factory=AccountingSlurmConfig
    )

    @property
    def has_embedded(self) -> bool:
        """Whether the operator runs the database itself."""
        return self.embedded_db is not None and self.embedded_db.enabled

    @property
    def has_mariadb_operator(self) -> bool:
        """Whether mariadb-operator runs the database."""
        return self.mariadb_operator is not None and self.mariadb_operator.enabled


def has_slurmdbd(accounting: AccountingNode) -> bool:
    """Whether slurmdbd is declared: accounting is on and has a database."""
    databases = (
        accounting.external_db.enabled,
        accounting.has_embedded,
        accounting.has_mariadb_operator,
    )
    return accounting.enabled and any(databases)
