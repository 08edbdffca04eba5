"""Counts of generic resources are read as Slurm writes them."""

from __future__ import annotations

import pytest

from penstock.slurm.gres import counts, text, unused, within


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", {}),
        ("gpu", {"gpu": 1}),
        ("gpu:4(S:0-1)", {"gpu": 4}),
        ("gpu:tesla:1,gpu:kepler:2(S:0,2)", {"gpu:tesla": 1, "gpu:kepler": 2}),
        ("gpu:tesla", {"gpu:tesla": 1}),
        ("bandwidth:lustre:no_consume:4G", {"bandwidth:lustre:no_consume": 4 << 30}),
        ("disk:2k,disk:1", {"disk": 2049}),
    ],
)
def test_counts(written: str, read: dict[str, int]) -> None:
    assert counts(written) == read
    assert counts(text(read)) == read


def test_what_jobs_use_of_what_changes() -> None:
    assert unused("a:0,b:1", "a:4,b:4", "a:2,b:4")
    assert not unused("a:0,b:1", "a:4,b:4", "a:4,b:2")
    assert not unused("gpu:1(IDX:0)", "gpu:4(S:0)", "gpu:2")
    assert unused("", "", "a:1")


def test_no_more_of_the_same() -> None:
    assert within({"a": 1, "b": 0}, {"a": 1, "b": 2})
    assert not within({"a": 2}, {"a": 1})
    assert not within({"a": 1}, {"a": 1, "b": 1})
