"""The CronJob or Job of a Backup, and the Job of a Restore.

Both run images/entrypoints/backup.py on the volumes of the cluster; a Backup has them read-only.
For the part accounting they log in to `database`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.nebius import labels, names
from penstock.api.nebius.accounting import has_slurmdbd
from penstock.api.nebius.common import NodeContainer
from penstock.api.penstock.backup import Backup, Retention
from penstock.api.penstock.backup_parts import ACCOUNTING, JAIL, STATE, Part, Repository
from penstock.api.penstock.restore import Restore
from penstock.model.backup import UNCHANGED
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.backup import database as db
from penstock.render.nebius.backup import names as own
from penstock.render.nebius.backup import repository as repo
from penstock.render.nebius.container import container
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.translate.nebius.database import Database

_BACKUP: Final = "backup"
_RESTORE: Final = "restore"
READING: Final = ("DAC_OVERRIDE",)
WRITING: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP")
"""Capabilities by which root reads any file, and gives one any owner, mode and attributes."""
_BACKUP_RETRIES: Final = 2
_RESTORE_RETRIES: Final = 10
"""A pod may be evicted, and its Kubernetes node lost: what it restored already is not repeated."""
_HISTORY: Final = 3


@dataclass(frozen=True, slots=True)
class RestoreSource:
    """The repository that a Restore reads, and whose snapshots `latest` is one of."""

    repository: Repository
    host: str
    """Name of the SlurmCluster whose files the snapshots have."""
    tag: str = ""
    """Name of the Backup; empty for any."""
    image: str = ""


def cron_job(
    cluster: ClusterInputs, backup: Backup, database: Database | None = None, *, suspend: bool
) -> Json:
    """The CronJob of a Backup with a schedule."""
    found = own.backup_labels(cluster.name, backup.metadata.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _metadata(backup, own.backup_job(backup.metadata.name), found),
        "spec": {
            "schedule": backup.spec.schedule,
            "suspend": suspend,
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": _HISTORY,
            "failedJobsHistoryLimit": _HISTORY,
            "jobTemplate": {
                "metadata": {"labels": found},
                "spec": _backup_spec(cluster, backup, database),
            },
        },
    }


def single_job(cluster: ClusterInputs, backup: Backup, database: Database | None = None) -> Json:
    """The Job of a Backup without a schedule."""
    found = own.backup_labels(cluster.name, backup.metadata.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(backup, own.backup_job(backup.metadata.name), found),
        "spec": _backup_spec(cluster, backup, database),
    }


def restore_job(
    cluster: ClusterInputs,
    restore: Restore,
    source: RestoreSource,
    database: Database | None = None,
) -> Json:
    """The Job of a Restore."""
    found = own.restore_labels(cluster.name, restore.metadata.name)
    arguments = [_RESTORE, "--host", source.host, "--snapshot", restore.spec.snapshot]
    arguments += ["--tag", source.tag] if source.tag else []
    pod = _pod(
        cluster,
        _RESTORE,
        restore.spec.parts,
        source.repository,
        arguments,
        database,
        image=restore.spec.image or source.image,
    )
    exits = {"containerName": _RESTORE, "operator": "In", "values": [UNCHANGED]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(restore, own.restore_job(cluster.name), found),
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": _RESTORE_RETRIES,
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": exits}]},
            "template": template(found, pod),
        },
    }


def missing_parts(cluster: ClusterInputs, parts: Sequence[Part]) -> str:
    """Why the cluster lacks one of the parts; empty if it does not."""
    if JAIL in parts and not cluster.spec.has_jail:
        return f"SlurmCluster {cluster.name} has no jail (spec.jailMode is None)"
    if ACCOUNTING not in parts:
        return ""
    accounting, path = cluster.spec.slurm_nodes.accounting, "spec.slurmNodes.accounting"
    if not has_slurmdbd(accounting):
        return f"SlurmCluster {cluster.name} has no accounting ({path} is off, or has no database)"
    given = accounting.external_db
    is_external = not (accounting.has_embedded or accounting.has_mariadb_operator)
    if is_external and not (given.host and given.user):
        return f"SlurmCluster {cluster.name} names no database ({path}.externalDB: host and user)"
    return ""


def _backup_spec(cluster: ClusterInputs, backup: Backup, database: Database | None) -> Json:
    spec, found = backup.spec, own.backup_labels(cluster.name, backup.metadata.name)
    arguments = [_BACKUP, "--host", cluster.name, "--tag", backup.metadata.name]
    pod = _pod(
        cluster,
        _BACKUP,
        spec.parts,
        spec.repository,
        [*arguments, *_retention(spec.retention)],
        database,
        image=spec.image,
    )
    return {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": _BACKUP_RETRIES,
        "template": template(found, pod),
    }


def _metadata(of: KubeObject, name: str, found: Mapping[str, str]) -> Json:
    return object_metadata(name, of.metadata.namespace, found, owner(of))


def _retention(given: Retention) -> list[str]:
    kept: dict[str, int | str] = {
        "last": given.keep_last,
        "hourly": given.keep_hourly,
        "daily": given.keep_daily,
        "weekly": given.keep_weekly,
        "monthly": given.keep_monthly,
        "yearly": given.keep_yearly,
        "within": given.keep_within,
    }
    return [f"--keep-{name}={value}" for name, value in kept.items() if value]


def _pod(
    cluster: ClusterInputs,
    action: str,
    parts: Sequence[Part],
    repository: Repository,
    arguments: Sequence[str],
    database: Database | None,
    *,
    image: str,
) -> Json:
    reads = action == _BACKUP
    files = {part: _volume(cluster, part) for part in parts if part != ACCOUNTING}
    login = database if ACCOUNTING in parts else None
    security: Json = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": list(READING if reads else WRITING)},
        "runAsUser": 0,
    }
    named = [word for part in parts for word in ("--part", part)]
    main = container(
        action,
        NodeContainer(
            image=image or cluster.images.backup, args=(*arguments, *named), app_armor_profile=""
        ),
        env=[*repo.variables(repository), *(db.variables(login) if login else ())],
        mounts=[
            *(
                vol.mount(one.name, f"/parts/{part}/files", read_only=reads)
                for part, one in files.items()
            ),
            *repo.mounts(repository),
            *(_database_mounts(reads=reads) if login else ()),
        ],
        security=security,
    )
    controller = cluster.spec.slurm_nodes.controller
    node_filter = (
        controller.k8s_node_filter_name
        if STATE in parts
        else cluster.spec.populate_jail.k8s_node_filter_name
    )
    spec = pod_spec(
        containers=[main],
        volumes=[
            *vol.manifests(files.values()),
            *repo.volumes(repository),
            *(db.volumes(login) if login else ()),
        ],
        place=_beside_slurmctld(cluster, filter_place(cluster.spec, node_filter))
        if STATE in parts
        else filter_place(cluster.spec, node_filter),
        pull_secrets=pull_secrets(controller.slurmctld),
    )
    return {**spec, "restartPolicy": "Never"}


def _database_mounts(*, reads: bool) -> list[Json]:
    """The login; and for a backup a folder for the dump, which is part of the snapshot."""
    dump = vol.mount(repo.WORK, f"/parts/{ACCOUNTING}/files", ACCOUNTING)
    return [*db.mounts(), *([dump] if reads else ())]


def _volume(cluster: ClusterInputs, part: Part) -> vol.Volume:
    if part == JAIL:
        return vol.shared_jail(cluster.spec)
    declared = cluster.spec.slurm_nodes.controller.volumes.spool
    found = vol.cluster_volume(cluster.spec, names.CONTROLLER_SPOOL, declared)
    if found.template is None:
        return found
    claim = f"{names.CONTROLLER_SPOOL}-{names.controller_pod(cluster.prefix)}"
    return vol.Volume(found.name, {"persistentVolumeClaim": {"claimName": claim}})


def _beside_slurmctld(cluster: ClusterInputs, place: Json) -> Json:
    """Prefer the Kubernetes node of slurmctld: its volume may be ReadWriteOnce."""
    term = {
        "labelSelector": {"matchLabels": labels.selector_labels("controller", cluster.name)},
        "topologyKey": "kubernetes.io/hostname",
    }
    given: Json = place.get("affinity") or {}
    pods: Json = given.get("podAffinity") or {}
    found: list[Any] = list(pods.get("preferredDuringSchedulingIgnoredDuringExecution") or [])
    found.append({"weight": 100, "podAffinityTerm": term})
    pods = {**pods, "preferredDuringSchedulingIgnoredDuringExecution": found}
    return {**place, "affinity": {**given, "podAffinity": pods}}
