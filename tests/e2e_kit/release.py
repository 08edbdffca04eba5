"""The release of Slurm that end-to-end tests run: PENSTOCK_TEST_SLURM, the latest one without it.

A test that needs a later one has the mark `needs_slurm("25.11", "slurmctld has metrics")`.
"""

from __future__ import annotations

import os

from penstock.local.recipes import LATEST, OLDEST, RELEASES
from penstock.slurm.versions import OLDEST as OLDEST_VERSION
from penstock.slurm.versions import PROBES_SINCE, parse

CHOICE = "PENSTOCK_TEST_SLURM"
RELEASE = next(one for one in RELEASES if one.tag == os.environ.get(CHOICE, LATEST.tag))
PARSER = "v0.0.42" if RELEASE is OLDEST else "v0.0.44"
"""The data parser that tests ask for: one that slurmrestd of the release serves."""


def answers(path: str, port: int) -> dict[str, object]:
    """The check of a probe of slurmctld or slurmd; before 25.11 they answer no HTTP."""
    if lacks(str(PROBES_SINCE)):
        return {"tcpSocket": {"port": port}}
    return {"httpGet": {"path": path, "port": port}}


def lacks(since: str) -> bool:
    """Whether the release is older than `since`, which a test needs."""
    return (parse(RELEASE.tag) or OLDEST_VERSION) < (parse(since) or OLDEST_VERSION)


def lines_of(output: str) -> list[str]:
    """Lines of jobs, without those of an older srun about optional plug-ins that are absent."""
    lines = output.splitlines()
    return [one for one in lines if not (lacks(LATEST.tag) and one.startswith("srun: "))]
