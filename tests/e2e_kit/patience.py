"""How much longer a test waits where several processes of tests share the cores."""

from __future__ import annotations

import os

MOST_S = 300.0
"""A longer wait stays as it is: a test may take 600 s in all."""


def patience(timeout: float) -> float:
    """Return a time limit in seconds for this run: twice the given one for CI, whose machine may be
    slow, and beside other processes.

    A wait ends with its event, so a longer limit costs time only where a test fails anyway.
    """
    if "CI" not in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        return timeout
    return max(timeout, min(2 * timeout, MOST_S))
