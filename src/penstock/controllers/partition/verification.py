"""Verification that slurmctld still has changes by REST calls once its file has them.

A slurmctld that restarts or is reconfigured between the call and the file loses the change, and no
later step would make it read the file again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.slurm.hostlist import HostListError
from penstock.slurm.known import Known
from penstock.slurm.partition.comparison import drifts
from penstock.slurm.partition.declaration import NODES, Difference, partition_changes
from penstock.slurm.rest.errors import SlurmError

TRIES = 3
"""Attempts after which a difference counts as drift."""
_EARLIER = 8
"""Number of files kept that slurmctld may have read since its last known one."""

Revert = Callable[[str, tuple[Difference, ...]], Awaitable[str]]
"""Reverts a partition to its declaration; returns why that failed, or an empty text."""


@dataclass(slots=True)
class _Expected:
    """The expected configuration of slurmctld, by its hash, and its slurm.conf."""

    config: str
    text: str
    earlier: tuple[str, ...]
    """Each slurm.conf that slurmctld may have read instead: it may restart between any two."""
    tries: dict[str, int]
    """The partitions to compare, each with the number of attempts."""


class PartitionVerifier:
    """Compares the partitions of one cluster with their declarations after a change."""

    def __init__(self) -> None:
        self._expected: _Expected | None = None

    def expect(self, config: str, text: str, before: str) -> None:
        """Expect slurmctld to have the configuration with this hash and slurm.conf.

        `before` is its last active slurm.conf.
        """
        old = self._expected
        if old is not None and old.config == config:
            return
        known = (*old.earlier, old.text) if old and old.tries else ()
        earlier = tuple(dict.fromkeys((*known, before)))[-_EARLIER:]
        names = [one.name for other in earlier for one in partition_changes(other, text)]
        tries = (old.tries if old else {}) | dict.fromkeys(names, 0)
        if tries:
            self._expected = _Expected(config, text, earlier, tries)

    @property
    def waiting(self) -> frozenset[str]:
        """The partitions that were not compared yet."""
        return frozenset(self._expected.tries if self._expected else ())

    async def verify(
        self,
        text: str,
        link: SlurmConnection,
        members: Mapping[str, frozenset[str]],
        revert: Revert,
    ) -> list[str]:
        """Compare the partitions of a slurmctld with this slurm.conf; return the reverted ones.

        Those that could not be compared or reverted wait for the next time. A partition that
        matches neither its declaration nor any file since was changed by a user, and stays.
        """
        expected, client = self._expected, link.client
        if expected is None or not expected.tries or client is None:
            return []
        waiting = expected.tries
        try:
            records = {one.name: one for one in await client.partitions()}
        except SlurmError:
            return []
        nodes = link.mirror.snapshot.nodes
        there = nodes.value if isinstance(nodes, Known) else None
        try:
            lost = drifts(text, records, there, members)
            changed = [drifts(one, records, None, members).keys() for one in expected.earlier]
        except HostListError:
            lost, changed = {}, [dict[str, object]().keys()]
        others = set(changed[0]).intersection(*changed)
        back: list[str] = []
        for name, tries in list(waiting.items()):
            waiting[name] = tries + 1
            differences = lost.get(name, ()) if name not in others else ()
            # Nodes come and go between the two answers that are compared.
            believed = tries > 0 or any(one.key != NODES for one in differences)
            if differences and believed and not await revert(name, differences):
                back.append(name)
                differences = ()
            if not differences or waiting[name] >= TRIES:
                del waiting[name]
        return back
