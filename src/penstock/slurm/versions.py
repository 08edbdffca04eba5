"""Slurm's major releases: how images and data parsers name them, and which of them has what.

Source: Slurm's Upgrade Guide and release notes; slurmrestd 24.11.5 and 26.05.5, asked.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Version(NamedTuple):
    """A major release, such as 24.11."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:02d}.{self.month:02d}"


V24_11: Final = Version(24, 11)
V25_05: Final = Version(25, 5)
V25_11: Final = Version(25, 11)
V26_05: Final = Version(26, 5)
SUPPORTED: Final = (V24_11, V25_05, V25_11, V26_05)
"""Oldest first. Each has a data parser that the client reads and a table of keys."""
OLDEST, NEWEST = SUPPORTED[0], SUPPORTED[-1]

PARSERS: Final = {
    "v0.0.45": V26_05,
    "v0.0.44": V25_11,
    "v0.0.43": V25_05,
    "v0.0.42": V24_11,
}
"""Data parsers that the client reads, best first, and the release that brought each."""

PROBES_SINCE: Final = V25_11
"""slurmctld and slurmd answer HTTP on their ports."""
METRICS_SINCE: Final = V25_11
"""slurmctld has metrics, and `MetricsType`."""
NEW_NODE_SINCE: Final = V25_11
"""slurmrestd makes node records."""
SHARED_CONF_SINCE: Final = V25_11
"""slurmdbd reads a slurmdbd.conf that its group may read, as files of a Secret are.

24.11.5 ends on one, and so may 25.05, which was not tried.
"""
PARTITION_CALLS_SINCE: Final = V26_05
"""slurmrestd makes, changes and deletes partitions."""
RESERVATION_CALLS_SINCE: Final = V25_05
"""slurmrestd makes, changes and deletes reservations."""
TOPOLOGY_SINCE: Final = V25_05
"""A node has a topology of its own, which slurmrestd shows and changes."""

_MAJOR = re.compile(r"(?:\A|[^\d.])(\d\d)\.(02|05|08|11)(?![\d])")
_TAG = re.compile(r"(?:\A(?:v|slurm-?)?|-slurm-?)(\d\d)\.(02|05|08|11)(?!\d)")


def parse(text: str) -> Version | None:
    """The release in a daemon's version text, such as `slurm-wlm 24.11.5`."""
    found = _MAJOR.search(text)
    return Version(int(found[1]), int(found[2])) if found else None


def of_image(reference: str) -> Version | None:
    """The release that the tag of an image begins with or names after `-slurm`; None without one.

    `25.11-ubuntu24.04` and `5.0.0-slurm25.11.3` are 25.11; a digest alone names no release.
    """
    name = reference.partition("@")[0].rpartition("/")[2]
    found = _TAG.search(name.partition(":")[2])
    return Version(int(found[1]), int(found[2])) if found else None


def of_parser(parser: str | None) -> Version | None:
    """The release that a data parser came with."""
    return PARSERS.get(parser or "")


def unsupported(version: Version) -> str:
    """Why a release cannot be run; empty when it can, as one newer than those known may."""
    if version >= OLDEST:
        return ""
    return (
        f"Slurm {version} is not supported: it has no data parser that the operator reads. Use an "
        f"image of Slurm {OLDEST} or later"
    )


_READS_SINCE: Final = {
    V24_11: Version(23, 2),
    V25_05: Version(23, 11),
    V25_11: Version(24, 5),
    V26_05: V24_11,
}
"""The oldest release whose state slurmctld reads: the third before its own."""


def oldest_beside(version: Version) -> Version:
    """The oldest slurmd that slurmctld of a release accepts; the newest is of its own.

    Source: Slurm's Upgrade Guide, which has one rule for state and protocol.
    """
    return _READS_SINCE.get(version, OLDEST)


def state_problem(version: Version, state: Version) -> str:
    """Why slurmctld of this version does not start on the state that another one has written.

    Source: Slurm's Upgrade Guide; seen with 26.05 and 24.11.
    """
    if state > version:
        return (
            f"slurmctld {version} cannot read the state that slurmctld {state} has written: use an "
            f"image of {state} or later"
        )
    oldest = _READS_SINCE.get(version, state)
    if state < oldest:
        return (
            f"slurmctld {version} cannot read the state that slurmctld {state} has written: "
            f"upgrade to {oldest} first"
        )
    return ""


def release_problem(wanted: Version | None, state: Version | None, *, persistent: bool) -> str:
    """Why slurmctld is not replaced by that release; empty when it may or none is known.

    `state` is the release of the slurmctld that served last, whose state stays where it is
    `persistent`.
    """
    if wanted is None:
        return ""
    if why := unsupported(wanted):
        return why
    return state_problem(wanted, state) if persistent and state is not None else ""
