"""The steps of a JailUpgrade: compare, wait for approval, apply, and undo if that is wanted.

Each step follows from observed state, so a new process continues where a killed one ended. Jobs and
logins go on meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import SHOWN
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.jail_upgrade import JailUpgradeReason
from penstock.decide.backup.run import Run
from penstock.model.backup import UNCHANGED
from penstock.model.jail import UpgradeAction

Phase: TypeAlias = Literal[
    "", "Waiting", "Comparing", "Compared", "Applying", "Succeeded", "Undoing", "Undone"
]


class Changes(msgspec.Struct, frozen=True):
    """Numbers of files and packages, as images/entrypoints/jail_upgrade.py leaves them.

    `first` are some packages with their new versions.
    """

    digest: str = ""
    added: int = 0
    changed: int = 0
    removed: int = 0
    kept: int = 0
    packages: int = 0
    first: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is changed, in words."""
        out = f"{self.added} files added, {self.changed} replaced, {self.removed} removed"
        out += f", {self.kept} kept as users changed them"
        if self.packages:
            shown = ", ".join(self.first[:SHOWN])
            more = f" and {self.packages - SHOWN} more" if self.packages > SHOWN else ""
            out += f"; {self.packages} packages: {shown}{more}"
        return out


@dataclass(frozen=True, slots=True)
class JobRun:
    """One Job of the upgrade, and what its program left when it ended well."""

    run: Run
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class JailUpgradeView:
    """All that the next step depends on.

    `phase` and `digest` are those of the status. `image` and `from_image` are the two images, the
    second empty while nobody knows it. `waits` are words about an object that is missing or at work
    in the jail. `compare`, `apply` and `undone` are the Jobs of this upgrade that exist;
    `is_outdated` is whether the first one has another image than `from_image`.
    """

    image: str
    from_image: str
    phase: Phase = ""
    digest: str = ""
    changes: Changes = field(default_factory=Changes)
    approved: bool = False
    undo: bool = False
    waits: str = ""
    compare: JobRun | None = None
    is_outdated: bool = False
    apply: JobRun | None = None
    undone: JobRun | None = None


@dataclass(frozen=True, slots=True)
class JailUpgradeStep:
    """The next step, and the phase that it leads to.

    `create` is the Job that is created, `delete` that which is deleted, to be created again.
    """

    phase: Phase
    finding: Finding
    create: UpgradeAction | None = None
    delete: UpgradeAction | None = None
    changes: Changes | None = None


def next_step(view: JailUpgradeView) -> JailUpgradeStep:
    """The next step of a JailUpgrade."""
    if view.phase == "Undone":
        return _step("Undone", True, JailUpgradeReason.UNDONE)
    is_applied = view.phase == "Succeeded" or view.apply is not None
    if view.phase == "Undoing" or (view.undo and is_applied):
        return _undo(view)
    if view.phase == "Succeeded":
        return _step("Succeeded", True, JailUpgradeReason.UPGRADED, view.changes.words)
    if view.apply is not None:
        return _applying(view.apply)
    if not view.digest:
        return _compare(view)
    if view.approved:
        if view.waits:
            return _step("Compared", None, JailUpgradeReason.WAITS, view.waits)
        return _begin("Applying", JailUpgradeReason.APPLYING, UpgradeAction.APPLY)
    return _compared(view.changes, view.compare)


def _compare(view: JailUpgradeView) -> JailUpgradeStep:
    if view.compare is not None:
        run, changes = view.compare.run, view.compare.changes
        if view.is_outdated and not run.deleting:
            words = f"Deleting Job {run.job}: spec.fromImage has changed"
            finding = Finding(None, JailUpgradeReason.COMPARING, words)
            return JailUpgradeStep("Comparing", finding, delete=UpgradeAction.COMPARE)
        if run.is_good and changes.digest and not run.deleting:
            return _with(_compared(changes, view.compare), changes)
        if run.is_good and not run.deleting:
            lost = replace(run, words="its pod is gone, and with it the list")
            return _failed("Comparing", lost, "No file was changed")
        if run.status.has_ended and not run.deleting:
            return _failed("Comparing", run, "No file was changed")
        return _running("Comparing", JailUpgradeReason.COMPARING, run)
    if view.waits:
        return _step("Waiting", None, JailUpgradeReason.WAITS, view.waits)
    if not view.from_image or view.from_image == view.image:
        words = "Nobody knows the image that the jail was filled from"
        if view.from_image:
            words = f"The jail has {view.image} already, as far as is known"
        words += ". Name the image that it has now in spec.fromImage"
        return _step("Waiting", False, JailUpgradeReason.WAITS, words)
    return _begin("Comparing", JailUpgradeReason.COMPARING, UpgradeAction.COMPARE)


def _compared(changes: Changes, job: JobRun | None) -> JailUpgradeStep:
    words = f"{changes.words}. "
    if job is not None:
        words += f"The log of Job {job.run.job} lists them. "
    words += "Set spec.approved to apply them"
    return _step("Compared", None, JailUpgradeReason.COMPARED, words)


def _applying(job: JobRun) -> JailUpgradeStep:
    run = job.run
    if run.is_good:
        step = _step("Succeeded", True, JailUpgradeReason.UPGRADED, job.changes.words)
        # Its pod may be gone: then the numbers of the list stay.
        return _with(step, job.changes) if job.changes.digest else step
    if run.status.has_ended and not run.deleting:
        if run.exit_code == UNCHANGED:
            return _failed("Applying", run, "No file was changed. Create another JailUpgrade", "")
        return _failed("Applying", run, "Some files are changed. Or set spec.undo")
    return _running("Applying", JailUpgradeReason.APPLYING, run)


def _undo(view: JailUpgradeView) -> JailUpgradeStep:
    if view.undone is not None:
        run = view.undone.run
        if run.is_good:
            words = ""
            if view.undone.changes.kept:
                words = f"{view.undone.changes.kept} files stay, as they were changed since"
            return _step("Undone", True, JailUpgradeReason.UNDONE, words)
        if run.status.has_ended and not run.deleting:
            return _failed("Undoing", run, "")
        return _running("Undoing", JailUpgradeReason.UNDOING, run)
    if view.apply is not None and not view.apply.run.status.has_ended:
        return _running("Applying", JailUpgradeReason.APPLYING, view.apply.run)
    if view.waits:
        return _step("Undoing", None, JailUpgradeReason.WAITS, view.waits)
    return _begin("Undoing", JailUpgradeReason.UNDOING, UpgradeAction.UNDO)


def _begin(phase: Phase, reason: ConditionReason, action: UpgradeAction) -> JailUpgradeStep:
    finding = Finding(None, reason, "Creating a Job")
    return JailUpgradeStep(phase, finding, action)


def _running(phase: Phase, reason: ConditionReason, run: Run) -> JailUpgradeStep:
    words = f"Job {run.job} runs" + (f": {run.words}" if run.words else "")
    if run.deleting:
        words = f"Job {run.job} is being deleted; it is repeated"
    return _step(phase, None, reason, words)


def _failed(
    phase: Phase, run: Run, about: str, fix: str = "Delete the Job to repeat it"
) -> JailUpgradeStep:
    words = ". ".join(filter(None, (f"Job {run.job} failed: {run.words}", fix, about)))
    return _step(phase, False, JailUpgradeReason.FAILED, words)


def _with(step: JailUpgradeStep, changes: Changes) -> JailUpgradeStep:
    return replace(step, changes=changes)


def _step(
    phase: Phase, ok: bool | None, reason: ConditionReason, words: str = ""
) -> JailUpgradeStep:
    return JailUpgradeStep(phase, Finding(ok, reason, words))
