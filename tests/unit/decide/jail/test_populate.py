"""The Job that fills a jail: once, never over a jail in use, and its failure is shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from penstock.decide.jail.populate import JobAction, JobPhase, PopulateView, next_step
from penstock.model.jail import JailFilling, MaintenanceMode

FILLING = JailFilling(
    job="slurm1-populate-jail",
    mode=MaintenanceMode.NONE,
    overwrite=False,
    mode_field="spec.maintenance is someMode",
    job_field="spec.populateJail",
)
FIRST = PopulateView(FILLING, JobPhase.ABSENT)
SCALING = [one for one in MaintenanceMode if one.scales_down]


def in_mode(view: PopulateView, mode: MaintenanceMode) -> PopulateView:
    return replace(view, filling=replace(view.filling, mode=mode))


@pytest.mark.parametrize("mode", [MaintenanceMode.NONE, MaintenanceMode.SCALE_DOWN])
def test_an_empty_cluster_gets_the_job_and_no_pod_before_it_completed(
    mode: MaintenanceMode,
) -> None:
    step = next_step(in_mode(FIRST, mode))
    assert (step.action, step.overwrite, step.can_use_jail) == (JobAction.CREATE, False, False)
    running = next_step(in_mode(replace(FIRST, phase=JobPhase.ACTIVE), mode))
    assert (running.action, running.can_use_jail) == (JobAction.NOTHING, False)
    assert running.finding.ok is None
    done = next_step(in_mode(replace(FIRST, phase=JobPhase.SUCCEEDED), mode))
    assert (done.action, done.can_use_jail, done.finding.ok) == (JobAction.NOTHING, True, True)


def test_a_job_that_somebody_deleted_is_not_repeated_while_pods_use_the_jail() -> None:
    step = next_step(replace(FIRST, users=["worker-0", "login-0"]))
    assert (step.action, step.can_use_jail) == (JobAction.NOTHING, True)
    assert step.finding.message == "Pods use the jail: login-0, worker-0"


@pytest.mark.parametrize("overwrite", [True, False])
def test_pods_that_wait_do_not_keep_a_jail_from_being_filled(overwrite: bool):
    """They may be there before the jail, after a SlurmCluster that was deleted while it filled."""
    filling = replace(FIRST.filling, overwrite=overwrite)
    step = next_step(replace(FIRST, filling=filling, users=["login-0"], are_ready=False))
    assert (step.action, step.overwrite) == (JobAction.CREATE, False)
    assert not step.can_use_jail


def test_overwrite_of_the_declaration_counts_for_a_job_that_is_created_anyway() -> None:
    declared = replace(FIRST, filling=replace(FILLING, overwrite=True))
    assert next_step(declared).overwrite
    done = replace(declared, phase=JobPhase.SUCCEEDED)
    assert next_step(done).action is JobAction.NOTHING


def test_a_new_image_leaves_a_filled_jail_alone() -> None:
    """D50."""
    done = replace(FIRST, phase=JobPhase.SUCCEEDED, has_current_template=False)
    step = next_step(done)
    assert (step.action, step.can_use_jail) == (JobAction.NOTHING, True)


def test_a_failed_job_is_reported_with_its_words_and_the_next_step() -> None:
    """D50."""
    failed = replace(FIRST, phase=JobPhase.FAILED, failure="no space left on device")
    step = next_step(failed)
    assert (step.action, step.can_use_jail, step.finding.ok) == (JobAction.NOTHING, False, False)
    assert step.finding.message == (
        "Job slurm1-populate-jail failed: no space left on device. "
        "Fix spec.populateJail, or delete the Job to repeat it"
    )


@pytest.mark.parametrize("phase", [JobPhase.ACTIVE, JobPhase.FAILED])
def test_a_corrected_template_replaces_a_job_that_has_not_completed(phase: JobPhase) -> None:
    """An image that cannot be pulled keeps a Job active for ever."""
    step = next_step(replace(FIRST, phase=phase, has_current_template=False))
    assert step.action is JobAction.DELETE
    gone = next_step(replace(FIRST, phase=JobPhase.DELETING, has_current_template=False))
    assert (gone.action, gone.can_use_jail) == (JobAction.NOTHING, False)


def test_the_overwriting_mode_replaces_the_job_once_and_waits_for_the_pods() -> None:
    view = in_mode(FIRST, MaintenanceMode.OVERWRITE_JAIL)
    before = replace(view, phase=JobPhase.SUCCEEDED, users=["login-0"])
    assert next_step(before).action is JobAction.DELETE
    waiting = next_step(replace(view, users=["login-0"]))
    assert (waiting.action, waiting.can_use_jail) == (JobAction.NOTHING, False)
    assert "login-0" in waiting.finding.message
    step = next_step(view)
    assert (step.action, step.overwrite) == (JobAction.CREATE, True)
    after = replace(view, phase=JobPhase.SUCCEEDED, is_for_overwriting=True)
    assert next_step(after).action is JobAction.NOTHING
    ended = in_mode(after, MaintenanceMode.NONE)
    assert (next_step(ended).action, next_step(ended).can_use_jail) == (JobAction.NOTHING, True)


def test_the_deleting_mode_deletes_the_job_and_creates_none() -> None:
    view = in_mode(FIRST, MaintenanceMode.DELETE_JOB)
    assert next_step(replace(view, phase=JobPhase.SUCCEEDED)).action is JobAction.DELETE
    assert next_step(view).action is JobAction.NOTHING


@pytest.mark.parametrize("phase", list(JobPhase))
def test_a_skipped_job_keeps_nobody_waiting(phase: JobPhase) -> None:
    step = next_step(replace(in_mode(FIRST, MaintenanceMode.SKIP_JOB), phase=phase))
    assert (step.action, step.can_use_jail) == (JobAction.NOTHING, True)


@pytest.mark.parametrize(
    ("mode", "phase", "current", "meant", "users"),
    list(product(MaintenanceMode, JobPhase, (True, False), (True, False), ((), ("worker-0",)))),
)
def test_no_job_is_created_under_pods_that_use_the_jail_and_a_complete_one_goes_only_by_the_mode(
    mode: MaintenanceMode,
    phase: JobPhase,
    current: bool,
    meant: bool,
    users: tuple[str, ...],
) -> None:
    view = PopulateView(replace(FILLING, mode=mode), phase, current, meant, "", users)
    step = next_step(view)
    if step.action is JobAction.CREATE:
        assert phase is JobPhase.ABSENT
        assert not users
        assert step.overwrite == (mode is MaintenanceMode.OVERWRITE_JAIL)
    if step.action is JobAction.DELETE and phase is JobPhase.SUCCEEDED:
        assert mode in {MaintenanceMode.DELETE_JOB, MaintenanceMode.OVERWRITE_JAIL}
    assert step.finding.message or step.finding.ok
