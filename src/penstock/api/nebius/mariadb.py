"""The database that mariadb-operator runs for slurmdbd.

`replication` and `storage` go into the MariaDB object as they are. Source: API reference of
mariadb-operator, `k8s.mariadb.com/v1alpha1`. Older fields of `replication` are those of its v0.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.kubernetes.pvc_spec import LabelSelector, Quantity
from penstock.api.kubernetes.schema import ATOMIC_LIST, INT32, OPAQUE, UNSTORED, about
from penstock.api.nebius.common import (
    TEXT_DEFAULT,
    EnvVar,
    NodeContainer,
    NodeSelector,
    Probe,
    PullPolicy,
    Tolerations,
)

_Opaque = Annotated[Json | None, about("As mariadb-operator defines it.", OPAQUE)]
_Items = Annotated[
    tuple[Annotated[Json, about("One of them.", OPAQUE)], ...],
    about("As mariadb-operator defines them."),
]
_Texts = Annotated[tuple[Annotated[str, about("One word.")], ...], about("Words of the command.")]
_Flag = Annotated[bool | None, about("As mariadb-operator defines it.")]
_Number = Annotated[int | None, about("As mariadb-operator defines it.")]
_Port = Annotated[int | None, about("A port.", INT32)]
_Text = Annotated[str, about("As mariadb-operator defines it.")]
_Wait = Annotated[Literal["AfterSync", "AfterCommit"] | None, about("When semi-sync waits.")]


class GeneratedSecretKey(KubeStruct, frozen=True, kw_only=True):
    """A key of a Secret that mariadb-operator may generate."""

    name: Annotated[str, about("Name of the Secret.", TEXT_DEFAULT)] = ""
    key: Annotated[str, about("Key within the Secret's data.")]
    generate: Annotated[bool, about("Whether the Secret is generated.")] = False


class BasicAuth(KubeStruct, frozen=True):
    """Password of the replication agent."""

    enabled: _Flag = None
    username: _Text = ""
    password_secret_key_ref: Annotated[GeneratedSecretKey | None, about("The password.")] = None


class KubernetesAuth(KubeStruct, frozen=True):
    """ServiceAccount tokens for the replication agent."""

    enabled: _Flag = None
    auth_delegator_role_name: _Text = ""


class ReplicationContainer(KubeStruct, frozen=True):
    """Fields of the agent and the init container of the replication."""

    args: _Texts = ()
    command: _Texts = ()
    env: Annotated[tuple[EnvVar, ...], about("Environment variables.")] = ()
    env_from: _Items = ()
    image_pull_policy: Annotated[PullPolicy | None, about("When the image is pulled.")] = None
    liveness_probe: Probe = None
    readiness_probe: Probe = None
    startup_probe: Probe = None
    resources: _Opaque = None
    security_context: _Opaque = None
    volume_mounts: _Items = ()


class ReplicationAgent(ReplicationContainer, frozen=True):
    """The sidecar of a replicated database."""

    image: _Text = ""
    basic_auth: Annotated[BasicAuth | None, about("Access by password.")] = None
    kubernetes_auth: Annotated[KubernetesAuth | None, about("Access by ServiceAccount.")] = None
    graceful_shutdown_timeout: _Text = ""
    port: _Port = None
    probe_port: _Port = None


class ReplicationInitContainer(ReplicationContainer, frozen=True, kw_only=True):
    """The init container of a replicated database."""

    image: Annotated[str, about("The image.")]


class Primary(KubeStruct, frozen=True):
    """The primary of a replicated database."""

    auto_failover: _Flag = None
    auto_failover_delay: _Text = ""
    automatic_failover: _Flag = None
    pod_index: _Number = None


class BackupTemplateRef(KubeStruct, frozen=True):
    """A PhysicalBackup by name."""

    name: Annotated[str, about("Name of the PhysicalBackup.", TEXT_DEFAULT)] = ""


class RestoreJob(KubeStruct, frozen=True):
    """The Job that fills a replica."""

    affinity: _Opaque = None
    args: _Texts = ()
    metadata: _Opaque = None
    node_selector: NodeSelector = None
    resources: _Opaque = None
    tolerations: Tolerations = ()


class BootstrapFrom(KubeStruct, frozen=True, kw_only=True):
    """Backup from which a replica is filled."""

    physical_backup_template_ref: Annotated[BackupTemplateRef, about("The backup.")]
    restore_job: Annotated[RestoreJob | None, about("The Job.")] = None


class Recovery(KubeStruct, frozen=True):
    """Recovery of a broken replica."""

    enabled: Annotated[bool, about("Whether a broken replica is rebuilt.")]
    error_duration_threshold: _Text = ""


class Replica(KubeStruct, frozen=True):
    """The replicas of a replicated database."""

    bootstrap_from: Annotated[BootstrapFrom | None, about("Source of new replicas.")] = None
    connection_retries: _Number = None
    connection_retry_seconds: _Number = None
    connection_timeout: _Text = ""
    gtid: Annotated[Literal["CurrentPos", "SlavePos"] | None, about("Which GTID is used.")] = None
    max_lag_seconds: _Number = None
    recovery: Annotated[Recovery | None, about("Recovery of broken replicas.")] = None
    repl_password_secret_key_ref: Annotated[
        GeneratedSecretKey | None, about("Password of the replication.")
    ] = None
    sync_timeout: _Text = ""
    wait_point: _Wait = None


class Replication(KubeStruct, frozen=True):
    """spec.replication of the MariaDB object."""

    agent: Annotated[ReplicationAgent | None, about("The sidecar.")] = None
    enabled: _Flag = None
    gtid_strict_mode: _Flag = None
    init_container: Annotated[ReplicationInitContainer | None, about("The init container.")] = None
    primary: Annotated[Primary | None, about("The primary.")] = None
    probes_enabled: _Flag = None
    replica: Annotated[Replica | None, about("The replicas.")] = None
    semi_sync_ack_timeout: _Text = ""
    semi_sync_enabled: _Flag = None
    semi_sync_wait_point: _Wait = None
    standalone_probes: _Flag = None
    sync_binlog: Annotated[
        Any, about("Writes between two syncs of the binary log; a boolean up to 1.23.", OPAQUE)
    ] = None


class PvcRetention(KubeStruct, frozen=True):
    """When PVCs of the database are deleted."""

    when_deleted: _Text = ""
    when_scaled: _Text = ""


class DatabasePvc(KubeStruct, frozen=True):
    """PVC template of the database."""

    access_modes: Annotated[
        tuple[Annotated[str, about("An access mode.")], ...], about("Access modes.", ATOMIC_LIST)
    ] = ()
    metadata: _Opaque = None
    resources: _Opaque = None
    selector: Annotated[LabelSelector | None, about("Volumes to choose from.")] = None
    storage_class_name: Annotated[str | None, about("StorageClass.")] = None


class DatabaseStorage(KubeStruct, frozen=True):
    """spec.storage of the MariaDB object."""

    ephemeral: _Flag = None
    pvc_retention_policy: Annotated[PvcRetention | None, about("When PVCs are deleted.")] = None
    resize_in_use_volumes: _Flag = None
    size: Annotated[Quantity | None, about("Size of the volume.")] = None
    storage_class_name: _Text = ""
    volume_claim_template: Annotated[DatabasePvc | None, about("PVC template.")] = None
    wait_for_volume_resize: _Flag = None


class DatabaseMetrics(KubeStruct, frozen=True):
    """Metrics of the database."""

    enabled: Annotated[bool, about("Whether the database has metrics.")] = True


class MariaDbOperator(NodeContainer, frozen=True, kw_only=True):
    """A database that mariadb-operator runs."""

    enabled: Annotated[bool, about("Whether a MariaDB object is created.", UNSTORED)] = False
    protected_secret: Annotated[
        bool, about("Whether this operator creates and protects the Secrets of the passwords.")
    ] = False
    pod_security_context: _Opaque = None
    security_context: _Opaque = None
    replicas: Annotated[int | None, about("Pods of the database; 1 when absent or 0.", INT32)] = (
        None
    )
    metrics: Annotated[DatabaseMetrics | None, about("Metrics of the database.")] = None
    replication: Annotated[Replication | None, about("Replication of the database.")] = None
    storage: Annotated[DatabaseStorage, about("Storage of the database.")] = field(
        default_factory=DatabaseStorage
    )
    priority_class_name: Annotated[str, about("PriorityClass of the database.")] = ""
