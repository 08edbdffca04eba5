"""Which `Key=Value` words of a node change in slurmctld, and which need another slurmd.

Source: scontrol(1), "update" of nodes (AvailableFeatures, ActiveFeatures, Weight, Extra, Gres).
"""

from __future__ import annotations

from typing import Final

from penstock.slurm.daemons import NOT_FOR_SLURMD

FEATURES: Final = frozenset({"feature", "features"})
WEIGHT: Final = "weight"
GRES: Final = "gres"
_LONGEST_WEIGHT: Final = 10


def is_weight(value: str) -> bool:
    """Whether slurmctld accepts it: a number of 32 bits."""
    return len(value) <= _LONGEST_WEIGHT and value.isascii() and value.isdecimal()


def fixed_words(text: str) -> str:
    """The words that need another slurmd when they change."""
    return " ".join(word for word in text.split() if not _is_live(word))


def _is_live(word: str) -> bool:
    key, _, value = word.partition("=")
    key = key.lower()
    if key == WEIGHT:
        return is_weight(value)
    return key in FEATURES or key == GRES or key in NOT_FOR_SLURMD
