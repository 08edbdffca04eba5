"""When the Job that fills a jail is created or deleted, and whether pods may use the jail.

A jail is filled once. A later Job replaces files of a filled jail only when the maintenance mode or
its own declaration asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jail import JailReason
from penstock.model.jail import JailFilling, MaintenanceMode

POPULATED = ConditionType.JAIL_POPULATED
"""Type of the condition about the content of the jail."""


class JobPhase(Enum):
    """What the API server has of the Job."""

    ABSENT = "absent"
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DELETING = "deleting"


class JobAction(Enum):
    """What is done about the Job now."""

    NOTHING = "nothing"
    CREATE = "create"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PopulateView:
    """All that the decision depends on.

    `has_current_template` is whether the Job was made from the template that is declared now,
    `is_for_overwriting` whether it was created for the mode OVERWRITE_JAIL that is declared now.
    `failure` are the words of Job or pod about what keeps it from its end; empty while nothing
    does. `users` are the pods of logins and workers that have not ended, `are_ready` is whether any
    of these is.
    """

    filling: JailFilling
    phase: JobPhase
    has_current_template: bool = True
    is_for_overwriting: bool = False
    failure: str = ""
    users: Sequence[str] = ()
    are_ready: bool = True


@dataclass(frozen=True, slots=True)
class PopulateStep:
    """The next step. With `can_use_jail` new pods of logins and workers may start.

    `overwrite` is for a Job that is created: whether it replaces the files of a filled jail.
    """

    action: JobAction
    can_use_jail: bool
    finding: Finding
    overwrite: bool = False


def next_step(view: PopulateView) -> PopulateStep:
    """The next step of filling a jail."""
    match view.filling.mode:
        case MaintenanceMode.SKIP_JOB:
            return _usable(
                JailReason.POPULATE_SKIPPED, f"{view.filling.mode_field}: the Job is skipped"
            )
        case MaintenanceMode.DELETE_JOB:
            return _deleted(view)
        case MaintenanceMode.OVERWRITE_JAIL:
            return _overwritten(view)
        case MaintenanceMode.STOPPED:
            words = f"{view.filling.mode_field}: the cluster is stopped, and nothing fills the jail"
            return _wait(JailReason.STOPPED, words)
        case MaintenanceMode.NONE | MaintenanceMode.SCALE_DOWN:
            return _filled_once(view)


def without_jail() -> PopulateStep:
    """The step of a SlurmCluster whose pods use the root of their containers."""
    return _usable(
        JailReason.NO_JAIL, "spec.jailMode is None: jobs and sessions have their container's root"
    )


def _filled_once(view: PopulateView) -> PopulateStep:
    match view.phase:
        case JobPhase.ABSENT if view.users and not view.are_ready:
            # They may wait for a jail that nothing fills, as after a SlurmCluster that was deleted
            # before its jail was filled. The Job leaves a filled one as it is.
            return _create(view, overwrite=False)
        case JobPhase.ABSENT if view.users:
            # Whoever removed the Job has a jail in use, which a copy would change under its users.
            return _usable(JailReason.IN_USE, f"Pods use the jail: {list_some(sorted(view.users))}")
        case JobPhase.ABSENT:
            return _create(view, overwrite=view.filling.overwrite)
        case JobPhase.SUCCEEDED:
            return _usable(JailReason.POPULATE_COMPLETE)
        case _:
            return _unfinished(view)


def _deleted(view: PopulateView) -> PopulateStep:
    match view.phase:
        case JobPhase.ABSENT:
            return _usable(
                JailReason.POPULATE_DELETED, f"{view.filling.mode_field}: the Job is deleted"
            )
        case JobPhase.DELETING:
            return _unfinished(view)
        case _:
            return _delete(view, view.filling.mode_field)


def _overwritten(view: PopulateView) -> PopulateStep:
    match view.phase:
        case JobPhase.ABSENT if view.users:
            users = list_some(sorted(view.users))
            return _wait(
                JailReason.IN_USE, f"The jail is overwritten once these pods have ended: {users}"
            )
        case JobPhase.ABSENT:
            return _create(view, overwrite=True)
        case JobPhase.DELETING:
            return _unfinished(view)
        case _ if not view.is_for_overwriting:
            return _delete(view, view.filling.mode_field)
        case JobPhase.SUCCEEDED:
            return _usable(JailReason.POPULATE_COMPLETE, "The jail was overwritten")
        case _:
            return _unfinished(view)


def _unfinished(view: PopulateView) -> PopulateStep:
    """A Job that is at work, has failed, or is being deleted."""
    job = f"Job {view.filling.job}"
    if view.phase is JobPhase.DELETING:
        return _wait(JailReason.POPULATE_DELETING, f"{job} is being deleted")
    if not view.has_current_template:
        # A copy that is cut off leaves no jail that counts as filled.
        return _delete(view, f"{view.filling.job_field} changed before it completed")
    if view.phase is JobPhase.FAILED:
        words = f"{job} failed: {view.failure or 'no message'}"
        words += f". Fix {view.filling.job_field}, or delete the Job to repeat it"
        return _wait(JailReason.POPULATE_FAILED, words, ok=False)
    return _wait(
        JailReason.POPULATE_RUNNING,
        f"{job} fills the jail" + (f": {view.failure}" if view.failure else ""),
    )


def _create(view: PopulateView, *, overwrite: bool) -> PopulateStep:
    words = f"Creating Job {view.filling.job}, which fills the jail"
    words += " and replaces its files" if overwrite else ""
    finding = Finding(None, JailReason.POPULATE_RUNNING, words, POPULATED)
    return PopulateStep(JobAction.CREATE, can_use_jail=False, finding=finding, overwrite=overwrite)


def _delete(view: PopulateView, why: str) -> PopulateStep:
    words = f"Deleting Job {view.filling.job}: {why}"
    finding = Finding(None, JailReason.POPULATE_DELETING, words, POPULATED)
    return PopulateStep(JobAction.DELETE, can_use_jail=False, finding=finding)


def _wait(reason: ConditionReason, words: str, *, ok: bool | None = None) -> PopulateStep:
    finding = Finding(ok, reason, words, POPULATED)
    return PopulateStep(JobAction.NOTHING, can_use_jail=False, finding=finding)


def _usable(reason: ConditionReason, words: str = "") -> PopulateStep:
    finding = Finding(True, reason, words, POPULATED)
    return PopulateStep(JobAction.NOTHING, can_use_jail=True, finding=finding)
