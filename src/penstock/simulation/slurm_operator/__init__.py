"""What slurm-operator leaves in the API server for given objects of the kinds, in our own words.

Names, labels, hashes, owners and the forms of pods as it makes them, as far as a switch-over
depends on them: each field is explained in the documentation of `slinky.slurm.net`. Fixture F31.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from penstock.api.kubernetes.meta import Json
from penstock.base import yaml_text
from penstock.simulation.slurm_operator.daemons import ACTIVE
from penstock.simulation.slurm_operator.workers import REVISION, Upstream

__all__ = ["ACTIVE", "MANAGER", "REVISION", "Upstream", "chart_made"]

MANAGER = "slurm-operator"
"""The field manager that it writes as, as seen in objects of slurm-operator 1.3."""
FIXTURE = Path(__file__).with_name("chart.yaml")


def chart_made(namespace: str) -> list[Json]:
    """The fixture in a namespace."""
    found = cast("list[Json]", yaml_text.document(FIXTURE.read_text())["items"])
    # Anchors of YAML would be one mapping in several places.
    apart: list[Json] = json.loads(json.dumps(found))
    return [{**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in apart]
