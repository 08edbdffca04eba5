"""Faults of Backups and Restores, and the objects that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from penstock.api.admission import Problem, Reference
from penstock.api.kubernetes.cron_schedule import schedule_problem
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.penstock.backup import DURATION_PATTERN, LONGEST_NAME, Backup
from penstock.api.penstock.backup_parts import (
    BUCKET_PATTERN,
    ENDPOINT_PATTERN,
    PATH_PATTERN,
    Repository,
)
from penstock.api.penstock.restore import SNAPSHOT_PATTERN, Restore

CLUSTER: Final = ("slurm.nebius.ai", "SlurmCluster")
"""Group and kind of the object that a clusterRef names."""
_PATH: Final = re.compile(PATH_PATTERN)
_ENDPOINT: Final = re.compile(ENDPOINT_PATTERN)
_BUCKET: Final = re.compile(BUCKET_PATTERN)
_DURATION: Final = re.compile(DURATION_PATTERN)
_SNAPSHOT: Final = re.compile(SNAPSHOT_PATTERN)
_SHOWN: Final = 60


def backup_problems(obj: Backup) -> Iterator[Problem]:
    """Faults of a Backup."""
    spec, name = obj.spec, obj.metadata.name
    if len(name) > LONGEST_NAME:
        yield Problem(
            "metadata.name",
            f"has {len(name)} characters: choose one of at most {LONGEST_NAME}, the CronJob is "
            "called backup-NAME",
        )
    if not spec.cluster_ref.name:
        yield Problem("spec.clusterRef.name", "must not be empty")
    if spec.schedule and (words := schedule_problem(spec.schedule)):
        yield Problem("spec.schedule", words)
    if not spec.parts:
        yield Problem("spec.parts", "must not be empty: name jail, state or accounting")
    within = spec.retention.keep_within
    if within and not _DURATION.fullmatch(within):
        yield Problem(
            "spec.retention.keepWithin", f"{within[:_SHOWN]!r} is no duration: write one as 1y6m14d"
        )
    yield from _repository_problems(spec.repository)


def restore_problems(obj: Restore) -> Iterator[Problem]:
    """Faults of a Restore."""
    spec = obj.spec
    if (spec.backup_ref is None) == (spec.repository is None):
        yield Problem("spec", "name either backupRef or repository")
    if spec.backup_ref is not None and not spec.backup_ref.name:
        yield Problem("spec.backupRef.name", "must not be empty")
    if spec.backup_ref is None and (spec.cluster_ref is None or not spec.cluster_ref.name):
        yield Problem("spec.clusterRef.name", "must not be empty beside repository")
    if not spec.parts:
        yield Problem("spec.parts", "must not be empty: name jail, state or accounting")
    if not _SNAPSHOT.fullmatch(spec.snapshot):
        yield Problem(
            "spec.snapshot",
            f"{spec.snapshot[:_SHOWN]!r} is no snapshot: write latest, or 8 to 64 digits of an id",
        )
    if spec.repository is not None:
        yield from _repository_problems(spec.repository)


def _repository_problems(given: Repository) -> Iterator[Problem]:
    path = "spec.repository"
    if (given.pvc is None) == (given.s3 is None):
        yield Problem(path, "name either pvc or s3")
    if not given.password_secret_ref.name:
        yield Problem(f"{path}.passwordSecretRef.name", "must not be empty")
    if given.pvc is not None:
        if not given.pvc.claim_name:
            yield Problem(f"{path}.pvc.claimName", "must not be empty")
        yield from _path_problems(f"{path}.pvc.path", given.pvc.path)
    if given.s3 is not None:
        if not _ENDPOINT.fullmatch(given.s3.endpoint):
            shown = given.s3.endpoint[:_SHOWN]
            yield Problem(
                f"{path}.s3.endpoint",
                f"{shown!r} is no address: write one as https://s3.example.com",
            )
        if not _BUCKET.fullmatch(given.s3.bucket):
            yield Problem(
                f"{path}.s3.bucket", f"{given.s3.bucket[:_SHOWN]!r} can be no bucket's name"
            )
        if not given.s3.credentials_secret_name:
            yield Problem(f"{path}.s3.credentialsSecretName", "must not be empty")
        yield from _path_problems(f"{path}.s3.path", given.s3.path)


def _path_problems(where: str, path: str) -> Iterator[Problem]:
    if path and not _PATH.fullmatch(path):
        yield Problem(
            where,
            f"{path[:_SHOWN]!r} is no folder: write names of letters, digits, '.', '_' and '-' "
            "with '/' between them",
        )


def backup_references(obj: Backup) -> Iterator[Reference]:
    """The cluster and the Secrets that a Backup names."""
    group, kind = CLUSTER
    yield Reference("spec.clusterRef.name", kind, obj.spec.cluster_ref.name, group)
    yield from _repository_references(obj.spec.repository)


def restore_references(obj: Restore) -> Iterator[Reference]:
    """The cluster, the Backup and the Secrets that a Restore names."""
    spec, (group, kind) = obj.spec, CLUSTER
    if spec.backup_ref is not None:
        yield Reference("spec.backupRef.name", "Backup", spec.backup_ref.name, "penstock.dev")
    if spec.cluster_ref is not None:
        yield Reference("spec.clusterRef.name", kind, spec.cluster_ref.name, group)
    if spec.repository is not None:
        yield from _repository_references(spec.repository)


def _repository_references(given: Repository) -> Iterator[Reference]:
    path = "spec.repository"
    yield Reference(f"{path}.passwordSecretRef.name", "Secret", given.password_secret_ref.name)
    if given.s3 is not None:
        name = given.s3.credentials_secret_name
        yield Reference(f"{path}.s3.credentialsSecretName", "Secret", name)


def backup_uses(obj: Backup) -> tuple[ObjectKey, ...]:
    """The cluster that a Backup belongs to."""
    return (ObjectKey(*CLUSTER, obj.metadata.namespace, obj.spec.cluster_ref.name),)


def restore_uses(obj: Restore) -> tuple[ObjectKey, ...]:
    """The cluster that a Restore names itself."""
    ref = obj.spec.cluster_ref
    return () if ref is None else (ObjectKey(*CLUSTER, obj.metadata.namespace, ref.name),)
