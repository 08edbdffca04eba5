"""Reasons about updates of workers, their reservations and rollbacks."""

from __future__ import annotations

from penstock.catalog.condition_reason import NOTHING, PERSON, WAIT, ConditionReason


class UpdateReason(ConditionReason):
    """Reasons about updates of workers."""

    ROLLING_UPDATE = (
        "RollingUpdate",
        "Workers are replaced by ones of the new template, within maxUnavailable.",
        "Wait for the jobs; the message names the workers that are waited for.",
    )
    OLD_REVISION = (
        "OldRevision",
        "Pods have an older template and keep it, by the update strategy.",
        "Delete the pods when their nodes are drained.",
    )
    CREATED = "Created", "The reservation of the scheduled update exists in Slurm.", NOTHING
    CREATING_RESERVATION = (
        "CreatingReservation",
        "The reservation of the scheduled update is being created.",
        WAIT,
    )
    UP_TO_DATE = "UpToDate", "No pod has an older template.", NOTHING
    SCHEDULE_OVER = (
        "ScheduleOver",
        "Pods have an older template, and the maintenance window is over.",
        "Set another startTime.",
        PERSON,
    )
    NO_NODES = (
        "NoNodes",
        "Slurm has no node of the pods with an older template; they go in the window.",
        WAIT,
    )
    RESERVATION_UNKNOWN = (
        "ReservationUnknown",
        "Slurm's reservations are not known, so nothing new is taken for the update.",
        WAIT,
    )
    RESERVATION_REFUSED = (
        "ReservationRefused",
        "slurmctld rejects the reservation of the scheduled update.",
        "Remove the cause in slurmctld's words, such as another reservation of these nodes.",
        PERSON,
    )
    RESERVATION_UNSUPPORTED = (
        "ReservationUnsupported",
        "This slurmrestd has no calls for reservations.",
        "Use a later slurmrestd, or another updateStrategy.",
        PERSON,
    )
    ROLLBACK_DONE = "Done", "The template of the requested revision is declared again.", NOTHING
    ROLLBACK_IMPOSSIBLE = (
        "Impossible",
        "The requested revision cannot be declared again; the spec stays.",
        "Set the annotation to a revision that exists.",
        PERSON,
    )
