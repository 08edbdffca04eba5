"""How jobs of the storm are settled: what Slurm itself may lose is told apart from what is lost."""

from __future__ import annotations

import pytest

from e2e_kit.jobs import UNSAVED_S, Job, Known, account

TAKEN = 1000.0
JOB = Job("job-1", 7, refused=False, taken_at=TAKEN)
BEGUN = "begin 0 compute-0 1001.0\n"
ENDED = f"{BEGUN}end 0 compute-0 1005.0\n"
DONE = frozenset({"COMPLETED"})
ITS_OWN = {7: Known("job-1", DONE)}
ANOTHERS = {7: Known("job-2", DONE)}
SOON = TAKEN + UNSAVED_S / 2


def test_a_job_that_wrote_its_end_and_is_known_has_completed():
    told = account([JOB], {"job-1": ENDED}, ITS_OWN, [SOON])
    assert (told.counts["completed"], told.lost) == (1, ())


@pytest.mark.parametrize("known", [ANOTHERS, {}])
def test_what_a_killed_slurmctld_had_not_saved_is_its_own_loss(known: dict[int, Known]):
    told = account([JOB], {"job-1": BEGUN}, known, [SOON])
    assert (sum(told.counts.values()), told.lost) == (1, ())


@pytest.mark.parametrize("kills", [[], [TAKEN - 1], [TAKEN + UNSAVED_S]])
def test_a_job_that_is_forgotten_without_such_a_kill_is_lost(kills: list[float]):
    assert len(account([JOB], {"job-1": BEGUN}, ANOTHERS, kills).lost) == 1


def test_a_job_that_slurm_knows_and_that_never_ended_is_lost():
    assert len(account([JOB], {"job-1": BEGUN}, ITS_OWN, [SOON]).lost) == 1


def test_a_rejected_job_that_ran_is_reported():
    refused = Job("job-1", None, refused=True)
    assert account([refused], {"job-1": BEGUN}, {}).lost == ("job-1 was refused and ran",)
