"""The figures that all parts have: a minute in which nothing is to be done."""

from __future__ import annotations

from bench.fleet.phase import Used

Row = dict[str, float]
CPU = "CPU of a minute"
WRITES = "writes in a minute"
CALLS = "Slurm calls in a minute"
UNITS = {WRITES: "", CPU: "s", CALLS: ""}


def named(part: str, what: str) -> str:
    """Name of a figure of one part."""
    return f"{part}: {what}"


def still(used: Used) -> Row:
    """The figures of a minute."""
    return {WRITES: used.counts.writes, CPU: used.cpu, CALLS: used.slurm}
