"""Whether slurmdbd has a cluster registered: polled rarely, and often while it has not.

slurmctld registers once, when it starts or is reconfigured, and only with a slurmdbd that answers
at that moment. After that nothing of it can be seen in slurmctld: its records wait there, or are
dropped by slurmdbd, without a word to the user. So slurmdbd itself is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.slurm.accounting_registration import Registration
from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.polled_mirror import PolledMirror
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError

PACE_S = 60.0
"""Seconds between two calls while the cluster is registered; one call each."""
SOON_S = 5.0
"""Seconds between two calls while it is not, or while nothing is known."""
STALE_S = 90.0
"""For so long a registration counts after the last answer that did not fail."""


class RegistrationMirror(PolledMirror):
    """The registration of one cluster, used from one event loop. `clock` gives monotonic seconds.

    `changed` is called when an answer differs from the one before.
    """

    def __init__(
        self, changed: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock=clock)
        self._changed = changed
        self._cluster = self._slurmdbd = ""
        self._fact: Fact[Registration] = Unknown(NOT_ASKED)
        self._failing = False
        """Whether the last answer failed, and what was known before still counts."""

    @property
    def registration(self) -> Fact[Registration]:
        """What slurmdbd last answered; `as_of` is when it was asked.

        It does not expire: readers are notified of each change.
        """
        return self._fact

    def need(self, cluster: str, slurmdbd: str) -> None:
        """Poll for the cluster of this name at a slurmdbd; an empty name ends the polling."""
        if (cluster, slurmdbd) != (self._cluster, self._slurmdbd):
            self._cluster, self._slurmdbd = cluster, slurmdbd
            self._forget(NOT_ASKED)
            self._requested.set()

    async def _poll(self, client: Slurmrestd) -> float | None:
        if not self._cluster:
            return None
        await self._ask(client)
        found = self._fact
        calm = isinstance(found, Known) and found.value.complete and not self._failing
        return PACE_S if calm else SOON_S

    async def _ask(self, client: Slurmrestd) -> None:
        asked_at, cluster = self._clock(), self._cluster
        of = (cluster, self._slurmdbd)
        try:
            records = await client.clusters()
        except SlurmError as error:
            self._failing = True
            found: Fact[Registration] = self._failed(str(error), asked_at)
        else:
            self._failing = False
            one = next((one.controller for one in records if one.name == cluster), None)
            found = Known(self._read(one.host, one.port) if one else self._read(), asked_at)
        if (client, of) != (self._client, (self._cluster, self._slurmdbd)):
            return
        before, self._fact = self._fact, found
        if _value(before) != _value(found):
            self._changed()

    def _read(self, host: str = "", port: int = 0) -> Registration:
        if host and port:
            return Registration(host, port)
        before = self._fact
        known = before.value if isinstance(before, Known) else None
        since = known.since if known is not None and not known.complete else None
        return Registration(since=self._clock() if since is None else since)

    def _failed(self, why: str, now: float) -> Fact[Registration]:
        """One answer that fails does not end what is known of a registration; several do."""
        before = self._fact
        if isinstance(before, Known) and before.value.complete and now - before.as_of < STALE_S:
            return before
        return Unknown(why)

    def _forget(self, why: str) -> None:
        self._fact = Unknown(why)


def _value(fact: Fact[Registration]) -> Registration | str:
    return fact.value if isinstance(fact, Known) else fact.why
