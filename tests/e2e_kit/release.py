"""The release of Slurm that end-to-end tests run: PENSTOCK_TEST_SLURM, the latest one without it.

A test that needs a later one has the mark `needs_slurm("25.11", "slurmctld has metrics")`.
"""

from __future__ import annotations

import os

from penstock.local.recipes import LATEST, OLDEST, RELEASES
from penstock.slurm.versions import OLDEST as OLDEST_VERSION
from penstock.slurm.versions import parse

CHOICE = "PENSTOCK_TEST_SLURM"
RELEASE = next(one for one in RELEASES if one.tag == os.environ.get(CHOICE, LATEST.tag))
PARSER = "v0.0.42" if RELEASE is OLDEST else "v0.0.44"
"""The data parser that tests ask for: one that slurmrestd of the release serves."""


def lacks(since: str) -> bool:
    """Whether the release is older than `since`, which a test needs."""
    return (parse(RELEASE.tag) or OLDEST_VERSION) < (parse(since) or OLDEST_VERSION)
