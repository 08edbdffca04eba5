"""How long a cluster at rest waits beside others."""

from __future__ import annotations

import pytest

from penstock.slurm.mirror.pace import (
    CALLS_PER_S,
    MOST_CALLS_PER_S,
    MOST_STRETCH,
    Pace,
    align,
    stretch,
)
from penstock.slurm.mirror.partitions import PACE_S


@pytest.mark.parametrize("clusters", [0, 1, 50, 85])
def test_few_clusters_are_asked_as_often_as_one(clusters: int):
    assert stretch(clusters) == 1


@pytest.mark.parametrize("clusters", [90, 100, 130])
def test_many_clusters_share_a_number_of_calls(clusters: int):
    assert clusters * CALLS_PER_S / stretch(clusters) == pytest.approx(MOST_CALLS_PER_S)


def test_no_cluster_waits_longer_than_a_status_may_lag():
    """S015: a status is right within 10 s; S150: a changed partition is reported within 30 s."""
    assert stretch(100_000) == MOST_STRETCH
    assert Pace().settled * MOST_STRETCH <= 8
    assert PACE_S * MOST_STRETCH <= 24


@pytest.mark.parametrize(
    ("since", "pause", "due"),
    [(100.02, 5.0, 105.0), (100.99, 5.0, 105.0), (100.02, 8.0, 108.0), (100.5, 1.0, 101.5)],
)
def test_long_pauses_end_together_and_never_late(since: float, pause: float, due: float):
    assert align(since, pause) == due
