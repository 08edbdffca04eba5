"""What a bench is. A new one is a module with a `BENCH`, named in `bench.__main__`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Result
from penstock.local.components import Size


@dataclass(frozen=True)
class Settings:
    """What a bench is asked for."""

    runs: int
    """How often to repeat."""
    node: str
    """Name of the built-in node to measure on, which is brought up when it is not there."""


@dataclass(frozen=True)
class Bench:
    """One measurement."""

    name: str
    title: str
    runs: int
    """Default number of repetitions."""
    size: Size | None
    """Of the built-in node that it needs, if it needs one."""
    run: Callable[[Settings], Result]
    long: bool = False
    """Whether it is only run when it is named, or with `--full`."""
