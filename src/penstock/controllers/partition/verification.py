"""See that slurmctld still has the partitions that it was told, once its file says the same.

A slurmctld that restarts between the two, or that somebody has reconfigure then, has forgotten
them, and nothing that comes later would have it read the file again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.slurm.hostlist import HostListError
from penstock.slurm.known import Known
from penstock.slurm.partition.declaration import NODES, Difference, partition_changes
from penstock.slurm.partition.drift import drifts
from penstock.slurm.rest.errors import SlurmError

TRIES = 3
"""After so many it is left to those who look for drift."""
_EARLIER = 8
"""So many slurm.conf are remembered that slurmctld may have read since its last known one."""

Revert = Callable[[str, tuple[Difference, ...]], Awaitable[str]]
"""Puts a partition back as it is declared; why that is not possible, or nothing."""


@dataclass(slots=True)
class _Expected:
    """What slurmctld is to have: by the hash of a configuration, and its slurm.conf."""

    config: str
    text: str
    earlier: tuple[str, ...]
    """Each slurm.conf that slurmctld may have read instead: it may restart between any two."""
    tries: dict[str, int]
    """The partitions that are to be looked at, with how often they were."""


class PartitionVerifier:
    """The partitions of one cluster that are to be compared."""

    def __init__(self) -> None:
        self._expected: _Expected | None = None

    def expect(self, config: str, text: str, before: str) -> None:
        """Slurmctld is to have the configuration of that hash, with this slurm.conf.

        `before` is the last slurm.conf that it was seen to have.
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
        """Look at them, for a slurmctld that runs with this slurm.conf; those that were put back.

        Those that could not be looked at or put back wait for the next time. What is neither as it
        was in any file since nor as it is declared was changed by somebody, and is left.
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
