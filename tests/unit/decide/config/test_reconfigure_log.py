"""What the reconfigure container says, read back."""

from __future__ import annotations

import pytest

from penstock.decide.config.reconfigure_log import Acknowledgements, read

STAMP = "[2026-01-01T00:00:00.123] "


def said(*lines: str) -> Acknowledgements:
    return read("".join(f"penstock: {line}\n" for line in lines))


def test_verdicts_of_trial_starts_are_read_with_slurms_words_and_without_its_times():
    found = said("tried a ok", f"tried b refused: {STAMP}error: no / {STAMP}fatal: x y")
    assert found.tried == {"a": None, "b": "error: no / fatal: x y"}


def test_a_later_line_counts_more_than_an_earlier_one():
    found = said("tried a refused: no", "tried a ok", "effective a", "effective b")
    assert (found.tried, found.active) == ({"a": None}, "b")


def test_a_refusal_is_past_when_the_same_files_were_taken_or_are_tried_again():
    assert said("refused a: no").rejected == {"a": "no"}
    assert said("refused a: no", "effective a").rejected == {}
    assert said("refused a: no", "tried a ok").rejected == {}
    assert said("refused a: no", "effective b").rejected == {"a": "no"}


def test_waiting_ends_with_an_answer():
    assert said("waits a: Unable to contact slurm controller").blocked_by
    for line in ("effective a", "refused a: no"):
        assert not said("waits a: Unable to contact slurm controller", line).blocked_by


@pytest.mark.parametrize(
    "end", ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_what_slurmctld_is_quoted_with_is_no_line_of_the_containers(end: str):
    words = f"no such name{end}penstock: effective a{end}penstock: tried a ok"
    found = said(f"tried a refused: {words}")
    assert (found.active, found.tried) == ("", {"a": words})


def test_a_trial_without_a_verdict_undoes_an_earlier_one_and_is_undone_by_a_later_one():
    found = said("tried a ok", "untried a: no time")
    assert (found.tried, found.untried) == ({}, {"a": "no time"})
    found = said("untried a: no time", "tried a refused: no")
    assert (found.tried, found.untried) == ({"a": "no"}, {})


def test_what_waits_for_a_restart_is_not_in_effect():
    found = said("effective a", "pending b")
    assert (found.active, found.pending) == ("a", "b")
    assert said("pending b", "effective a").pending == ""


def test_each_reconfigure_that_was_asked_for_has_its_result():
    found = said("reconfigured v1 ok", "reconfigured v2 refused: no")
    assert found.reconfigured == {"v1": None, "v2": "no"}


def test_lines_for_people_and_half_lines_mean_nothing():
    assert (
        read("2026-01-01T00:00:00Z effective a\npenstock: effe\npenstock: tried a\n\n")
        == Acknowledgements()
    )


def test_mpi_plug_ins_of_the_image_are_read():
    """S137."""
    assert said("mpi cray_shasta pmi2", "slurm 26.05.5").mpi == ("cray_shasta", "pmi2")
    assert said("slurm 26.05.5").mpi == ()
