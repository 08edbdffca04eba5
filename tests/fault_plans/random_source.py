"""Chance that can be repeated."""

from __future__ import annotations

from random import Random


class Dice(Random):
    """The same seed, the same throws. Not for secrets."""

    def between(self, low: float, high: float) -> float:
        """A number between the two."""
        return low + (high - low) * self.random()
