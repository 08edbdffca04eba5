"""How often slurmctlds are asked: the more clusters one operator has, the rarer those at rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

CALLS_PER_S: Final = 2 / 5 + 1 / 15
"""Of one settled cluster: nodes and jobs, and partitions."""
MOST_CALLS_PER_S: Final = 40.0
"""Of all clusters at rest together, as far as `MOST_STRETCH` allows it."""
MOST_STRETCH: Final = 1.6
"""With it a change in Slurm is in a status within 10 s, and one of a partition within 30 s."""
TICK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to ask and how long an answer holds, in seconds."""

    moving: float = 1.0
    settled: float = 5.0
    moving_for: float = 10.0
    """How long a change or a poke counts as moving."""
    back_off: float = 10.0
    """Longest pause while asking fails."""
    stale: float = 15.0
    """Age at which an answer becomes Unknown."""
    whole: float = 30.0
    """How often to ask for everything instead of changes."""
    confirm_s: float = 60.0
    """How long a list that lacks half of the nodes, or all, has to repeat itself."""
    rest_after: float = 30.0
    """A cluster is at rest when nothing changed, and no controller read it, for so long."""


def stretch(clusters: int) -> float:
    """How many times longer a cluster at rest waits beside so many clusters."""
    return min(max(1.0, clusters * CALLS_PER_S / MOST_CALLS_PER_S), MOST_STRETCH)


def align(since: float, pause: float) -> float:
    """When to ask after a pause: never later, and at a whole tick where the pause has several.

    Requests to many clusters that are sent together cost half of the CPU of single ones.
    """
    due = since + pause
    return due if pause < 2 * TICK_S else math.floor(due / TICK_S) * TICK_S
