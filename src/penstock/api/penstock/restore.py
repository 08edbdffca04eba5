"""Restore: puts the parts of a snapshot back into a SlurmCluster, once."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    DATE_TIME,
    DEFAULT,
    NULLABLE,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.backup_parts import (
    DEFAULT_PARTS,
    GROUP,
    ONE_REPOSITORY,
    VERSION,
    Image,
    Parts,
    Repository,
    SlurmClusterRef,
)
from penstock.catalog.marks import penstock

RESTORE_FINALIZER: Final = penstock.RESTORE_FINALIZER.key
LATEST: Final = "latest"
SNAPSHOT_PATTERN: Final = "^(latest|[0-9a-f]{8,64})$"
_NAME: Json = {DEFAULT: "", "maxLength": 253}
Phase: TypeAlias = Literal["", "Waiting", "Stopping", "Restoring", "Succeeded", "Failed"]


class BackupRef(KubeStruct, frozen=True):
    """A Backup of the same namespace."""

    name: Annotated[str, about("Name of the Backup.", _NAME)] = ""


class RestoreSpec(KubeStruct, frozen=True):
    """What is put back, and into which cluster."""

    backup_ref: Annotated[
        BackupRef | None, about("The Backup whose repository is read.", NULLABLE)
    ] = None
    repository: Annotated[
        Repository | None,
        about("The repository, where there is no Backup any more.", NULLABLE, ONE_REPOSITORY),
    ] = None
    cluster_ref: Annotated[
        SlurmClusterRef | None, about("The SlurmCluster; that of the Backup when absent.", NULLABLE)
    ] = None
    snapshot: Annotated[
        str,
        about(
            "Id of the snapshot. latest is the newest of the Backup, or with repository the newest "
            "of a SlurmCluster of the same name.",
            {"pattern": SNAPSHOT_PATTERN},
        ),
    ] = LATEST
    parts: Parts = DEFAULT_PARTS
    force: Annotated[
        bool,
        about(
            "Whether running jobs are cancelled, and workers are deleted while Slurm does not "
            "answer. Else the Restore waits for the end of the jobs."
        ),
    ] = False
    image: Image = ""


class RestoreStatus(Status, frozen=True):
    """How far it is."""

    phase: Annotated[Phase, about("How far it is.")] = ""
    cluster: Annotated[str, about("The SlurmCluster that it has stopped.")] = ""
    started_time: Annotated[str, about("When the cluster was stopped.", DATE_TIME)] = ""
    completed_time: Annotated[str, about("When it ended.", DATE_TIME)] = ""
    snapshot: Annotated[str, about("The snapshot that was put back.")] = ""


class Restore(KubeObject, frozen=True, kw_only=True):
    """Puts the parts of a snapshot back into a SlurmCluster, which is stopped meanwhile."""

    spec: Annotated[
        RestoreSpec,
        about(
            "What is put back.",
            rule(
                "has(self.backupRef) != has(self.repository)",
                "name either backupRef or repository",
            ),
            rule(
                "has(self.backupRef) || has(self.clusterRef)",
                "name clusterRef beside repository",
            ),
        ),
    ]
    status: Annotated[RestoreStatus, about("How far it is.")] = RestoreStatus()


RESTORES = Resource(GROUP, VERSION, "Restore", "restores", Restore, optional=True)
INFO = KindInfo(
    RESTORES,
    (),
    (
        Column("BACKUP", ".spec.backupRef.name", description="The Backup that it reads."),
        Column("PHASE", ".status.phase", description="How far it is."),
        Column("SNAPSHOT", ".status.snapshot", description="The snapshot that was put back."),
        READY,
        REASON,
    ),
)
