"""Whether a worker is tested on its next Kubernetes node, before the drain of the former one ends.

The check that set the drain tests it:

1. The health check program runs there before any job, and undrains the node when it passes.
2. A check in jobs is started for this node alone, in a reservation (`decide.check.recheck`). It is
   waited for until its Kubernetes Job has ended: an image of the original takes no drained node.
3. A check that cannot be started tests nothing, nor does one that is left without a node that
   takes its job: after RETEST_S none is waited for.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

from penstock.decide.check.reaction import check_of
from penstock.decide.drain.check_drain import HEALTH
from penstock.slurm.state import Node

RETEST_S: Final = 900.0
"""The health check has run by then: thrice with an interval of five minutes."""
_TAKES_A_JOB: Final = frozenset({"IDLE", "DRAIN", "DYNAMIC_NORM", "CLOUD"})
"""States of a drained node on which a check starts. Source: images/entrypoints/jail_check.py."""


class Retest(Enum):
    """What happens next to a node that is drained with a recorded reason."""

    WAITS = "waits"
    STARTS = "starts"
    ENDED = "ended"
    """Nothing tests it, or nothing does any more."""


def next_retest(
    node: Node, since_s: float, checks: Collection[str], *, is_started: bool, runs: bool
) -> Retest:
    """The next thing to do for a Slurm node whose worker was replaced `since_s` seconds ago.

    `checks` can be started for one node. `is_started` is whether that was done since, and `runs`
    whether its Kubernetes Job has not ended.
    """
    if since_s >= RETEST_S:
        return Retest.ENDED
    if node.reason.endswith(f"[{HEALTH}]"):
        return Retest.WAITS
    if is_started:
        return Retest.WAITS if runs else Retest.ENDED
    if check_of(node.reason) not in checks:
        return Retest.ENDED
    return Retest.STARTS if node.state <= _TAKES_A_JOB else Retest.WAITS
