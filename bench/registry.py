"""The benches there are. A new one is a module with a `BENCH`, named here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Result


@dataclass(frozen=True)
class Bench:
    """One measurement. `run` is given the number of runs and the name of the built-in node."""

    name: str
    title: str
    runs: int
    """How often it is repeated unless told otherwise."""
    run: Callable[[int, str], Result]
