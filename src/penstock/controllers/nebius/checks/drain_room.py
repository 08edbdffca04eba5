"""How many more Slurm nodes of a cluster ActiveChecks may drain, as slurmctld has them now."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from penstock.api.cluster.marks import MAX_DRAINED
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.decide.check.check_share import DEFAULT, drainable, is_share, limit
from penstock.decide.check.out_nodes import RESERVED, out_by_checks
from penstock.slurm import hostlist
from penstock.slurm.known import Fact, Known
from penstock.slurm.mirror.reservations import read_reservation
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import BadReplyError
from penstock.slurm.state import Node


def share_of(cluster: SlurmCluster) -> str:
    """The declared share; empty for the default one."""
    return cluster.metadata.annotations.get(MAX_DRAINED, "")


def share_words(cluster: SlurmCluster) -> str:
    """The share that is in force, in words."""
    share = share_of(cluster)
    found = share if is_share(share) else DEFAULT
    return f"at most {found} of the Slurm nodes" if "%" in found else f"at most {found} Slurm nodes"


def may_have_room(cluster: SlurmCluster, snapshot: Snapshot) -> bool:
    """Whether another node may be drained, as far as the last snapshot shows."""
    if not isinstance(snapshot.nodes, Known):
        return False
    nodes = snapshot.nodes.value
    return len(out_by_checks(nodes.values())) < limit(share_of(cluster), len(nodes))


class DrainRoom:
    """The room for the reactions of one check. slurmctld is asked when one first needs it.

    `last` are the nodes of the last list that was believed. A list may lack nodes, as after a loss
    of slurmctld's state. A missing node counts as it was last seen, and none is drained that is
    missing.
    """

    def __init__(
        self,
        client: Slurmrestd,
        share: str,
        lock: asyncio.Lock,
        last: Fact[Mapping[str, Node]],
    ) -> None:
        self._client, self._share, self._lock, self._last = client, share, lock, last
        self._has_lock = False
        self._most = 0
        self._listed: frozenset[str] = frozenset()
        self._out: set[str] | None = None
        self.postponed: set[str] = set()
        """Nodes that it did not admit."""

    async def admits(self, node: str) -> bool:
        """Whether a node may be drained, which it is from then on. Raises SlurmError."""
        if not self._has_lock:
            await self._lock.acquire()
            self._has_lock = True
        if self._out is None:
            self._out = await self._query()
        if node not in self._listed or not drainable(self._most, self._out, (node,)):
            self.postponed.add(node)
            return False
        self._out.add(node)
        return True

    def close(self) -> None:
        """Let other checks of the cluster drain nodes."""
        if self._has_lock:
            self._lock.release()

    async def _query(self) -> set[str]:
        listing = await self._client.nodes()
        nodes = {one.name: one for one in listing.items} if listing is not None else {}
        if isinstance(self._last, Known):
            self._listed = frozenset(nodes)
            nodes = {**self._last.value, **nodes}
        self._most = limit(self._share, len(nodes))
        is_reserved = any(map(_is_reserved, nodes.values()))
        found = await self._client.reservations() if is_reserved else ()
        try:
            return out_by_checks(nodes.values(), map(read_reservation, found))
        except hostlist.HostListError as error:
            raise BadReplyError(f"the nodes of a reservation cannot be read: {error}") from error


class DrainRooms:
    """Those of all clusters. Two checks of one cluster do not count at the same time."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def of(
        self, cluster: SlurmCluster, client: Slurmrestd, snapshot: Snapshot
    ) -> AsyncGenerator[DrainRoom]:
        """The room for one check; other checks of the cluster wait once it has drained a node."""
        lock = self._locks[cluster.metadata.uid]
        room = DrainRoom(client, share_of(cluster), lock, snapshot.nodes)
        try:
            yield room
        finally:
            room.close()


def _is_reserved(node: Node) -> bool:
    return bool(node.state & RESERVED)
