"""How messages name the changes that somebody made to partitions in Slurm."""

from __future__ import annotations

from penstock.base.text import list_some
from penstock.slurm.partition.declaration import PARTITION, Difference


def told(name: str, differences: tuple[Difference, ...]) -> str:
    """Differences of one partition in words."""
    first = differences[0]
    if first.key == PARTITION:
        if first.live:
            return f"partition {name} was made in Slurm and is declared nowhere"
        return f"partition {name} was deleted in Slurm"
    return (
        f"partition {name} was changed in Slurm: {list_some([str(d) for d in differences], '; ')}"
    )
