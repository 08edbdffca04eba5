"""Changes of partitions in a running slurmctld: one call of slurmrestd for each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Generic

from penstock.catalog.event import Event
from penstock.controllers.partition.source import C, PartitionSource
from penstock.controllers.partition.state import ChangeContext, Rejection, State
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.partition.conditions import describe_rejection
from penstock.decide.partition.drift_message import describe_drift
from penstock.kube.client.clock import Clock
from penstock.render.config import partition as render
from penstock.slurm.conf.document import Document
from penstock.slurm.known import Unknown
from penstock.slurm.partition.comparison import differences
from penstock.slurm.partition.declaration import PARTITION, Change, Difference
from penstock.slurm.partition.declaration import node_set as node_set_of
from penstock.slurm.partition.declaration import partition_lines as declared_in
from penstock.slurm.partition.update import ByFile, Delete, Update, call, put_back
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError
from penstock.slurm.versions import PARTITION_CALLS_SINCE


class PartitionCalls(Generic[C]):
    """Sends changes of partitions to the slurmctlds of all clusters of one API."""

    def __init__(self, source: PartitionSource[Any, C], clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self.adopts: Callable[[str, str], bool] = lambda _key, _name: False
        """Whether drift of a partition is adopted in its declaration."""

    async def send(
        self,
        context: ChangeContext,
        link: SlurmConnection | None,
        changed: list[Change],
        members: Mapping[str, frozenset[str]],
        state: State,
    ) -> list[str]:
        """Send one call for each change; return the partitions that slurmctld changed."""
        client = link.client if link is not None else None
        if link is None or client is None:
            known = link.mirror.snapshot.nodes if link is not None else None
            state.by_file = known.why if isinstance(known, Unknown) else "slurmrestd is not there"
            return []
        state.by_file = client.lacks(PARTITION_CALLS_SINCE)
        if state.by_file:
            return []
        done: list[str] = []
        drifted = await self._drifted(context.obj.metadata.key, client, changed)
        for change in changed:
            over = drifted.get(change.name, ())
            try:
                why = await _one(client, change, members, over)
            except SlurmError as error:
                if not error.is_rejection:
                    state.by_file = str(error)
                    break
                # slurmctld sets one value after the other and stops at the one that it rejects.
                if change.old is not None and change.new is not None:
                    with contextlib.suppress(SlurmError):
                        await _one(client, Change(change.name, change.new, change.old), members)
                at = self._clock.monotonic()
                line = Document.parse(context.text).record(PARTITION, change.name)
                words = describe_rejection(change.name, line.render() if line else "", str(error))
                state.rejected[change.name] = Rejection(change.new, words, at)
                continue
            state.rejected.pop(change.name, None)
            if why:
                state.by_file = why
                continue
            state.sent[change.name] = change.new
            state.lines[change.name] = context.text
            done.append(change.name)
            if over:
                words = f"Reverted with a declared change: {describe_drift(change.name, over)}"
                context.events.warning(context.obj, Event.PARTITION_REVERTED, words, "Configure")
        if done:
            context.events.normal(
                context.obj,
                Event.PARTITION_UPDATED,
                f"Changed in slurmctld without a reconfigure: partition {', '.join(done)}",
                "Configure",
            )
        link.partitions.poll_soon()
        return done

    async def _drifted(
        self, key: str, client: Slurmrestd, changed: list[Change]
    ) -> dict[str, tuple[Difference, ...]]:
        """Return the drift of partitions that are about to be changed, which reverts it."""
        both = [(c.name, c.old) for c in changed if c.old is not None and c.new is not None]
        if not both:
            return {}
        try:
            records = {one.name: one for one in await client.partitions()}
        except SlurmError:
            return {}
        found = {
            name: tuple(d for d in differences(old, records[name]) if d.key != "Default")
            for name, old in both
            if name in records and not self.adopts(key, name)
        }
        return {name: many for name, many in found.items() if many}

    async def revert(
        self,
        cluster: C,
        link: SlurmConnection,
        name: str,
        found: tuple[Difference, ...],
    ) -> str:
        """Revert a partition to its declaration; return why that failed, or an empty text."""
        line, client = declared_in(self._source.slurm_conf(cluster)).get(name), link.client
        if client is None:
            return "slurmrestd is not there"
        if why := client.lacks(PARTITION_CALLS_SINCE):
            return f"{why}: a reconfigure of slurmctld does"
        members = self.members(cluster, link)
        asked = Delete(name) if line is None else put_back(name, found, line, members)
        try:
            match asked:
                case ByFile(_, why):
                    return f"{why}: a reconfigure of slurmctld does"
                case Update(_, body):
                    await client.update_partition(body)
                case Delete():
                    await client.delete_partition(name)
        except NotFoundError:
            pass
        except SlurmError as error:
            return str(error)
        link.partitions.poll_soon()
        return ""

    def members(self, cluster: C, link: SlurmConnection) -> dict[str, frozenset[str]]:
        """Return the nodes of Partitions with explicit members, by the node set that has them.

        Partitions whose change slurmctld rejected are left out.
        """
        nodes = link.mirror.snapshot.nodes
        if isinstance(nodes, Unknown):
            return {}
        kubernetes, model = self._source.workers(cluster), self._source.model(cluster)
        kept = self._source.kept(cluster)
        return {
            node_set_of(one.name): render.members(model, one, nodes.value, kubernetes)
            for one in render.served(model)
            if render.marked(model, one) and one.name not in kept
        }


async def _one(
    client: Slurmrestd,
    change: Change,
    members: Mapping[str, frozenset[str]],
    drifted: tuple[Difference, ...] = (),
) -> str:
    """Make one change; return why only the file can make it, or empty. Raises SlurmError."""
    match call(change, members, drifted):
        case Update(_, body):
            await client.update_partition(body)
        case Delete(name):
            try:
                await client.delete_partition(name)
            except NotFoundError:
                return ""
        case ByFile(_, why):
            return why
    return ""
