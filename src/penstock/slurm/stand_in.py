"""Names of the node records by which running slurmds are led to register again.

They are fixed, so that whatever a process left that was killed is found and deleted. How they are
used says `penstock.slurm.rest.node_registration`.
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
