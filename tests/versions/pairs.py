"""The pairs of Kubernetes and Slurm that are run, and the files of tests that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.local.recipes import LATEST, OLDEST
from penstock.local.versions import KUBERNETES, RELEASES
from support import compatibility

ROOT = Path(__file__).parents[2]
GROUPS: Mapping[str, range] = {
    "A. Install and first cluster": range(1, 12),
    "B. NodeSet: scaling and status": range(12, 16),
    "C. Drain and maintenance by hand": range(16, 21),
    "D. Configuration and partitions": range(21, 30),
    "E. Helm life cycle and adoption": range(30, 37),
    "F. Jobs, login and results": range(37, 42),
    "K. SlurmCluster: objects and containers": range(84, 94),
    "L. Jail, spool, volumes": range(94, 107),
    "M. Munge": range(107, 112),
}
"""Groups of scenarios by the numbers of theirs, such as 1 for S001."""


@dataclass(frozen=True)
class Pair:
    """A minor version of Kubernetes and a release of Slurm, such as 1.34 and 26.05."""

    kubernetes: str
    slurm: str

    def __str__(self) -> str:
        return f"{self.kubernetes}/{self.slurm}"


DEFAULT = Pair(".".join(KUBERNETES.split(".")[:2]), LATEST.tag)
"""What `make test` runs."""
PAIRS = (
    *(Pair(minor, LATEST.tag) for minor in RELEASES),
    Pair(DEFAULT.kubernetes, OLDEST.tag),
)


class UnknownPairError(ValueError):
    """A pair that is not run; its words name those that are."""


def parse(text: str) -> Pair:
    """The pair of a text such as `1.35/26.05`. Raises UnknownPairError."""
    kubernetes, _, slurm = text.partition("/")
    found = Pair(kubernetes, slurm)
    if found not in PAIRS:
        raise UnknownPairError(f"{text} is none of the pairs {', '.join(map(str, PAIRS))}.")
    return found


def files() -> list[str]:
    """Files of end-to-end tests that name a scenario of the groups, as paths for pytest."""
    named = compatibility.named()
    wanted = (f"S{number:03d}" for numbers in GROUPS.values() for number in numbers)
    paths = {place.path for one in wanted for place in named.get(one, ())}
    return sorted(f"tests/{path}" for path in paths if path.startswith("e2e/"))
