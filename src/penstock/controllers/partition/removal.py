"""Removal of partitions that are declared no more: slurmctld deletes each once it has no job."""

from __future__ import annotations

from typing import Generic

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.event import Event
from penstock.controllers.partition.source import C, K, PartitionSource
from penstock.controllers.partition.state import Rejection, State
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.decide.partition.retention import empty, finding
from penstock.kube.client.clock import Clock
from penstock.render.config import partition as render
from penstock.slurm.partition.declaration import live_only, partition_changes
from penstock.slurm.partition.retention import is_drained
from penstock.slurm.rest.errors import NotFoundError, SlurmError

AGAIN_S = 30.0
"""Pause before slurmctld is asked again after it rejected: the reason may have gone."""


class PartitionRemoval(Generic[K, C]):
    """That of all clusters of one API."""

    def __init__(self, source: PartitionSource[K, C], clock: Clock) -> None:
        self._source = source
        self._clock = clock

    async def free(
        self,
        obj: K,
        cluster: C,
        link: SlurmConnection | None,
        texts: tuple[str, str],
        events: Events,
        state: State,
        *,
        reads_soon: bool,
    ) -> bool:
        """Have slurmctld delete the partitions that nobody declares, once no job is in them.

        `texts` are the slurm.conf with which slurmctld starts and the desired one. That is the last
        step: until slurmctld runs with a file that has all else, and in which they are drained, a
        job may enter whenever it reads its file (`reads_soon`). Whether any is in them is asked
        again before. Returns whether one is gone.
        """
        (old, wanted), now = texts, self._clock.monotonic()
        waiting = {
            name
            for name in self._undeclared(cluster)
            if is_drained(old, name)
            and not (name in state.kept_by and state.kept_by[name].at > now - AGAIN_S)
        }
        # A rejected change of another partition does not delay this deletion.
        differing = {one.name for one in partition_changes(old, wanted)} - state.rejected.keys()
        settled = live_only(old, wanted) and not differing and self._source.runs_with_startup(obj)
        client = link.client if link is not None else None
        if not waiting or link is None or client is None or not settled or reads_soon:
            return False
        if not empty(waiting, link.mirror.snapshot.jobs):
            return False
        gone: list[str] = []
        state.file = old
        for name in empty(waiting, (await link.mirror.poll()).jobs):
            try:
                await client.delete_partition(name)
            except NotFoundError:
                pass
            except SlurmError as error:
                if error.is_rejection:
                    state.kept_by[name] = Rejection(None, str(error), now)
                    continue
                # It is empty, and nothing enters: the file may go without it.
                state.dropped.add(name)
                state.by_file = str(error)
                gone.append(name)
                continue
            state.kept_by.pop(name, None)
            state.sent[name] = None
            state.deleted.add(name)
            gone.append(name)
        self._source.overrides(obj).freed = state.freed
        if not gone:
            return False
        without = self._source.slurm_conf(self._source.freeing(cluster, state.freed))
        state.lines.update(dict.fromkeys(gone, without))
        message = f"Deleted partition {', '.join(gone)}: it is declared no more and has no job"
        events.normal(obj, Event.PARTITION_UPDATED, message, "Configure")
        link.partitions.poll_soon()
        return True

    def finding(self, obj: K, link: SlurmConnection | None, state: State) -> Finding | None:
        """A finding about partitions that nobody declares and that stay for their jobs."""
        found = self._undeclared(self._source.cluster(obj))
        jobs = link.mirror.snapshot.jobs if link is not None else UNCONNECTED
        words = {name: one.words for name, one in state.kept_by.items() if name in found}
        return finding(found, jobs, words, restapi=self._source.has_slurmrestd(obj))

    def _undeclared(self, cluster: C) -> frozenset[str]:
        return self._source.retained(cluster) - render.invalid(self._source.model(cluster))
