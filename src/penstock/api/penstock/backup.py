"""Backup: copies of a SlurmCluster's parts in a repository of restic, once or on a schedule."""

from __future__ import annotations

from typing import Annotated, Final

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    DATE_TIME,
    INT32,
    INT64,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
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

LONGEST_NAME: Final = 45
"""The CronJob is called backup-NAME, and Kubernetes allows 52 characters for a CronJob."""
DURATION_PATTERN: Final = r"^([0-9]+[ymdh])+$"
_COUNT: Json = {**INT32, "minimum": 0}


class Retention(KubeStruct, frozen=True):
    """Which snapshots are kept; the others are deleted after each backup. None means all."""

    keep_last: Annotated[int, about("This many of the newest.", _COUNT)] = 0
    keep_hourly: Annotated[int, about("The newest of each of this many hours.", _COUNT)] = 0
    keep_daily: Annotated[int, about("The newest of each of this many days.", _COUNT)] = 0
    keep_weekly: Annotated[int, about("The newest of each of this many weeks.", _COUNT)] = 0
    keep_monthly: Annotated[int, about("The newest of each of this many months.", _COUNT)] = 0
    keep_yearly: Annotated[int, about("The newest of each of this many years.", _COUNT)] = 0
    keep_within: Annotated[
        str,
        about(
            "All of this time before the newest, as 1y6m14d12h.",
            {"pattern": f"{DURATION_PATTERN}|^$", "maxLength": 32},
        ),
    ] = ""


class BackupSpec(KubeStruct, frozen=True):
    """What is copied, when and to where."""

    cluster_ref: Annotated[SlurmClusterRef, about("The SlurmCluster.")] = SlurmClusterRef()
    schedule: Annotated[
        str, about("Schedule of a CronJob; without it one backup is made.", {"maxLength": 128})
    ] = ""
    parts: Parts = DEFAULT_PARTS
    repository: Annotated[Repository, about("Where the snapshots are.", ONE_REPOSITORY)] = (
        Repository()
    )
    retention: Annotated[Retention, about("Which snapshots are kept; all when it is empty.")] = (
        Retention()
    )
    suspend: Annotated[bool, about("Whether no backup is begun.")] = False
    image: Image = ""


class BackupStatus(Status, frozen=True):
    """The last backup, and the last good one."""

    last_job: Annotated[str, about("Job of the last backup that ended.")] = ""
    last_good_time: Annotated[str, about("When the last good one ended.", DATE_TIME)] = ""
    snapshot: Annotated[str, about("Its snapshot in the repository.")] = ""
    bytes: Annotated[int, about("Bytes of the files in it.", INT64)] = 0
    added_bytes: Annotated[int, about("Bytes that it added to the repository.", INT64)] = 0


class Backup(KubeObject, frozen=True, kw_only=True):
    """Copies of a SlurmCluster's jail, state and accounting in a repository of restic."""

    spec: Annotated[
        BackupSpec,
        about("What is copied.", {"required": ["clusterRef", "repository"]}),
    ]
    status: Annotated[BackupStatus, about("What was copied.")] = BackupStatus()


BACKUPS = Resource(GROUP, VERSION, "Backup", "backups", Backup, optional=True)
INFO = KindInfo(
    BACKUPS,
    (),
    (
        Column("CLUSTER", ".spec.clusterRef.name", description="Its SlurmCluster."),
        Column("SCHEDULE", ".spec.schedule", description="Schedule of its CronJob."),
        Column("LAST GOOD", ".status.lastGoodTime", "date", description="Age of the last good."),
        Column("SNAPSHOT", ".status.snapshot", priority=1, description="Snapshot of the last."),
        READY,
        REASON,
    ),
)
