"""Text of messages about partitions that somebody changed in Slurm."""

from __future__ import annotations

from penstock.base.text import list_some
from penstock.slurm.partition.declaration import PARTITION, Difference


def describe_drift(name: str, differences: tuple[Difference, ...]) -> str:
    """Return the differences of one partition as text for a message."""
    first = differences[0]
    if first.key == PARTITION:
        if first.live:
            return f"partition {name} was made in Slurm and is declared nowhere"
        return f"partition {name} was deleted in Slurm"
    return (
        f"partition {name} was changed in Slurm: {list_some([str(d) for d in differences], '; ')}"
    )
