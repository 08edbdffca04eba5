"""Reasons about Backups and Restores of SlurmClusters."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class BackupReason(ConditionReason):
    """Reasons about a Backup, and about a Restore."""

    GOOD = "BackupGood", "The last backup completed.", NOTHING
    NOT_YET = "NoBackupYet", "No backup has been made yet.", WAIT
    RUNNING = "BackupRunning", "A Job makes the first backup.", WAIT
    SUSPENDED = (
        "BackupSuspended",
        "spec.suspend is true, so no backup is begun.",
        "Set spec.suspend to false to go on.",
    )
    STOPPED = (
        "BackupWaits",
        "The SlurmCluster is stopped, so no backup is begun: a Restore may be under way.",
        WAIT,
    )
    FAILED = (
        "BackupFailed",
        "The last backup failed. The message has the words of restic or of the database.",
        "Remove the cause in the message; a backup that completes ends this.",
        PERSON,
    )
    JOBS_RUNNING = (
        "RestoreWaitsForJobs",
        "The SlurmCluster has running jobs, which a Restore without spec.force does not end.",
        "Wait for the end of the jobs, cancel them, or set spec.force.",
    )
    JOBS_UNKNOWN = (
        "RestoreJobsUnknown",
        "Slurm does not answer, so it is unknown whether jobs run.",
        "Repair slurmctld or slurmrestd, or set spec.force.",
    )
    RESTORE_WAITS = (
        "RestoreWaits",
        "The Restore waits for the object that the message names.",
        "Create the object, or wait until it has ended.",
    )
    STOPPING = "ClusterStopping", "The pods of the SlurmCluster end.", WAIT
    RESTORING = "RestoreRunning", "A Job puts the parts back.", WAIT
    RESTORED = "Restored", "The parts of the snapshot were put back.", NOTHING
    RESTORE_FAILED = (
        "RestoreFailed",
        "The parts were not put back. The message has the words of restic or of the database, and "
        "whether the cluster is stopped.",
        "Remove the cause in the message, and repeat the Restore.",
        PERSON,
    )
