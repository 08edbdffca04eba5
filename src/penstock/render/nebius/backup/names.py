"""Names and labels of the objects of a Backup or Restore."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius import labels
from penstock.catalog.marks import penstock

COMPONENTS: Final = ("backup", "restore")
"""app.kubernetes.io/component of the pods of Backups and Restores."""
BACKUP: Final = penstock.BACKUP.key
RESTORE: Final = penstock.RESTORE.key


def backup_job(backup: str) -> str:
    """The CronJob of a Backup, or its Job when it has no schedule."""
    return f"backup-{backup}"


def restore_job(cluster: str) -> str:
    """The Job of the Restore at work in a cluster: there is one at a time, whoever creates it."""
    return f"{cluster}-restore"


def backup_labels(cluster: str, backup: str) -> dict[str, str]:
    """Labels of each object of a Backup."""
    return {**labels.object_labels("backup", cluster), BACKUP: backup}


def restore_labels(cluster: str, restore: str) -> dict[str, str]:
    """Labels of each object of a Restore."""
    return {**labels.object_labels("restore", cluster), RESTORE: restore}
