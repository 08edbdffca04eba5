"""What is done about a Backup now, and its condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.reasons.backup import BackupReason
from penstock.decide.backup.run import Run, newest


@dataclass(frozen=True, slots=True)
class BackupView:
    """All that the condition of a Backup depends on.

    `last_good` is the RFC 3339 time of the last good backup and `snapshot` its snapshot, both from
    the status as it will be. `stopped` is the value of the annotation that stops the cluster; None
    without it.
    """

    runs: Sequence[Run]
    schedule: str = ""
    suspended: bool = False
    stopped: str | None = None
    last_good: str = ""
    snapshot: str = ""

    @property
    def rests(self) -> bool:
        """Whether no backup is begun now."""
        return self.suspended or self.stopped is not None


def is_due(view: BackupView) -> bool:
    """Whether the one Job of a Backup without a schedule is to be created.

    A Job that failed stays, with its words, until somebody deletes it.
    """
    return not view.schedule and not view.rests and not view.runs and not view.last_good


def finding(view: BackupView) -> Finding:
    """The condition of a Backup."""
    ended = newest(one for one in view.runs if one.status.has_ended)
    active = newest(one for one in view.runs if not one.status.has_ended)
    good = f"Last good backup: {view.last_good}" if view.last_good else "There is no good backup"
    if ended is not None and not ended.is_good:
        words = f"Job {ended.job} failed: {ended.words}. {good}"
        if not view.schedule:
            words += ". Delete the Job to repeat it"
        return Finding(False, BackupReason.FAILED, words)
    if active is not None and active.words:
        # Such as a PVC or an image that is missing: without it the age would be the only sign.
        words = f"Job {active.job} waits: {active.words}. {good}"
        return Finding(None, BackupReason.RUNNING, words)
    if view.last_good:
        words = f"{good}, snapshot {view.snapshot[:8] or 'unknown'}"
        if ended is not None and ended.result.unread:
            words += f"; {ended.result.unread} files vanished while they were read"
        if view.suspended:
            return Finding(True, BackupReason.SUSPENDED, f"spec.suspend is true. {words}")
        return Finding(True, BackupReason.GOOD, words)
    if active is not None:
        return Finding(None, BackupReason.RUNNING, f"Job {active.job} makes the first backup")
    if view.suspended:
        return Finding(True, BackupReason.SUSPENDED, f"spec.suspend is true. {good}")
    if view.stopped is not None:
        words = f"No backup is begun while the SlurmCluster is stopped ({view.stopped})"
        return Finding(None, BackupReason.STOPPED, words)
    return Finding(None, BackupReason.NOT_YET, f"{good} yet; the schedule is {view.schedule!r}")
