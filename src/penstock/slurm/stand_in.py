"""Names of the stand-in node records that make running slurmds register again.

They are fixed, so that records that a killed process left are found and deleted.
`penstock.slurm.rest.node_registration` creates and deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable

PREFIX = "penstock-register-"
BELL = f"{PREFIX}bell"
"""The one at whose address nobody answers."""
REASON = "Penstock: stand-in that has a forgotten worker register again"


def stand_ins(names: Iterable[str]) -> tuple[str, ...]:
    """The stand-ins among the names of records."""
    return tuple(sorted(name for name in names if name.startswith(PREFIX)))
