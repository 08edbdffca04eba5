"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from random import SystemRandom

JITTER: ContextVar[Callable[[], float]] = ContextVar("JITTER", default=SystemRandom().random)
"""Numbers from 0 to 1 for delays. A simulation sets a seeded source, to be the same each time."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays with jitter, so that many clients do not come back together.

    `base` and `cap` are seconds. The delay of the nth failure (from 1) lies between half of
    and the whole of `base * factor ** (n - 1)`, never above `cap`.
    """

    base: float
    cap: float
    factor: float = 2.0
    random: Callable[[], float] | None = None

    def delay(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded so that a key failing for days cannot overflow a float.
        whole = min(self.cap, self.base * self.factor ** min(failures - 1, 64))
        random = self.random or JITTER.get()
        return whole * (0.5 + 0.5 * random())
