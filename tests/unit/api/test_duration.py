"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from penstock.base import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("-2m", -120), ("100ms", 0.1)],
)
def test_a_duration_in_seconds(text: str, seconds: float):
    assert duration.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "1d", "h", "1h x", "1h-2m"])
def test_anything_else_is_rejected(text: str):
    with pytest.raises(ValueError, match="not a duration"):
        duration.seconds(text)
