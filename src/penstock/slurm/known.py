"""Known or unknown: the form of every fact that comes from Slurm.

An unknown fact is never "yes". The type checker makes every caller of `Fact` handle `Unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Known(Generic[T_co]):
    """A value that Slurm itself gave, and when it was asked (monotonic seconds)."""

    value: T_co
    as_of: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why there is no value, in words for a condition's message."""

    why: str
    denied: bool = False
    """Whether Slurm did answer, and did not believe who asks: a key differs, or a clock."""


Fact: TypeAlias = Known[T_co] | Unknown
