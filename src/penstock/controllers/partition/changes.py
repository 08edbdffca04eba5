"""Changes partitions in slurmctld by REST calls, one for each, before the file follows.

A change that slurmctld rejects is left out of the file, so that slurmctld can start with it. While
slurmrestd does not answer, only the file changes, and slurmctld reads the partitions from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.catalog.event import Event
from penstock.controllers.partition.calls import PartitionCalls
from penstock.controllers.partition.membership import mark
from penstock.controllers.partition.removal import AGAIN_S, PartitionRemoval
from penstock.controllers.partition.source import C, K, PartitionSource
from penstock.controllers.partition.state import AppliedPartitions, ChangeContext, State
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.signals import PARTITIONS_APPLIED, PARTITIONS_PENDING
from penstock.controllers.runtime.slurm_connections import SlurmConnection, SlurmConnections
from penstock.decide.config.view import Version
from penstock.decide.partition.conditions import CONFIG_APPLIED, rejected_finding
from penstock.decide.pod.workload import is_outdated
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.render.config import partition as render
from penstock.render.config.sections import with_partitions_of
from penstock.slurm.partition.declaration import (
    Change,
    Difference,
    live_only,
    partition_changes,
)
from penstock.slurm.partition.declaration import partition_lines as declared_in
from penstock.slurm.partition.retention import is_drained
from penstock.slurm.rest.errors import SlurmError

SOON_S = 1.0
REREAD_S = 5.0
"""At least so many seconds are between two reconfigures for nodes of partitions."""
RETAINED_S = 5.0
"""Seconds until the jobs of removed partitions are checked again."""
REPLACED_S = 60.0
"""Seconds that changes wait for a StatefulSet to replace slurmctld's outdated pod."""


class PartitionChanges(Generic[K, C]):
    """The changes of all clusters of one API.

    `states` belong to the objects that declare clusters. Signals requeue these and report what was
    sent.
    """

    def __init__(
        self,
        source: PartitionSource[K, C],
        states: StateByUid[State],
        connections: SlurmConnections,
        clock: Clock,
        signals: Signals,
    ) -> None:
        self._source = source
        self._states = states
        self._connections = connections
        self._clock = clock
        self._signals = signals
        self._removal = PartitionRemoval(source, clock)
        self.calls = PartitionCalls(source, clock)
        self.reads: Callable[[KubeObject], bool] = lambda _: False
        """Whether slurmctld is about to read its files, and would lose a REST change."""

    def rejections(self, obj: KubeObject) -> Mapping[str, str]:
        """Return slurmctld's words for each partition whose change it rejected."""
        return {name: one.words for name, one in self._states.of(obj).rejected.items()}

    def sent_names(self, obj: KubeObject) -> frozenset[str]:
        """Return partitions with a REST change that the file does not have yet."""
        return frozenset(self._states.of(obj).sent)

    def has_compared(self, obj: KubeObject) -> bool:
        """Return whether this process has compared the declaration with the file once."""
        return self._states.of(obj).has_compared

    def under_way(self, obj: K) -> frozenset[str] | None:
        """Return the partitions with a change of ours on its way to slurmctld.

        None while this process has not compared the declaration with the file.
        """
        state, old = self._states.of(obj), self._source.startup_conf(obj)
        if old is None or not state.has_compared:
            return None
        text = self._source.slurm_conf(self._source.cluster(obj))
        differing = frozenset(one.name for one in partition_changes(old, text))
        return differing | state.sent.keys() | state.verifier.waiting | state.unread

    def expect(self, obj: KubeObject, real: Version, alias: Version) -> None:
        """Expect slurmctld to have the startup configuration instead of the last known good."""
        verifier = self._states.of(obj).verifier
        if real != alias or verifier.waiting:
            verifier.expect(real.hash, _conf(real), _conf(alias))

    async def prove(self, obj: K, cluster: C, events: Events) -> None:
        """Verify that slurmctld still has its REST changes after it has read its file."""
        key, verifier = obj.metadata.key, self._states.of(obj).verifier
        text, link = self._source.startup_conf(obj), self._connections.get(key)
        if text is None or link is None or not verifier.waiting:
            return

        async def revert(name: str, found: tuple[Difference, ...]) -> str:
            return await self.calls.revert(cluster, link, name, found)

        members = self.calls.members(cluster, link)
        back = await verifier.verify(text, link, members, revert)
        if back:
            words = f"slurmctld had read older files: changed again partition {', '.join(back)}"
            events.normal(obj, Event.PARTITION_UPDATED, words, "Configure")
        if verifier.waiting:
            self._requeue(key, SOON_S)
        self._signals.emit(PARTITIONS_APPLIED, key)

    def file_only_reason(self, obj: KubeObject) -> str:
        """Return why the last change was not a REST call; empty when it was one."""
        return self._states.of(obj).by_file

    async def apply(self, obj: K, events: Events) -> AppliedPartitions[C]:
        """Change slurmctld's partitions to their declarations, as far as it accepts them.

        In the returned cluster each partition is either changed in slurmctld or as before. A change
        of the declaration in the meantime waits for the next reconcile.
        """
        key, source = obj.metadata.key, self._source
        state, overrides = self._states.of(obj), source.overrides(obj)
        overrides.freed = state.freed
        old = source.startup_conf(obj)
        overrides.sent = _in_no_file(state, old)
        cluster = source.keeping(source.cluster(obj), frozenset())
        invalid = render.invalid(source.model(cluster))
        if old is None or source.is_external(obj):
            overrides.kept, overrides.slurm_conf = frozenset(), ""
            return AppliedPartitions(cluster)
        wanted = self._wanted(cluster, state, old, invalid)
        self._tidy(state, old, wanted)
        overrides.freed = state.freed
        if overrides.sent and not state.sent:
            overrides.sent = ""
            cluster = source.keeping(source.cluster(obj), frozenset())
            wanted = self._wanted(cluster, state, old, invalid)
        link = self._connections.get(key)
        accepted, text = cluster, wanted
        if (found := source.accepted(obj)) is not None:
            # A removed partition does not wait for somebody's mistake in the object's own lines.
            accepted = source.keeping(found, frozenset())
            text = self._wanted(accepted, state, old, invalid)
        soon, texts = self._reads_soon(obj), (old, text)
        if soon and live_only(old, text) and self._changes(state, old, text):
            # No file shows a change that waits: the declared lines would alternate with these.
            cluster, wanted = accepted, text
        if await self._removal.free(obj, accepted, link, texts, events, state, reads_soon=soon):
            self._signals.emit(PARTITIONS_APPLIED, key)
            cluster = source.freeing(accepted, overrides.freed)
            wanted = self._wanted(cluster, state, old, invalid)
        changed = self._changes(state, old, wanted)
        if not (link is not None and link.has_answered) and live_only(old, wanted) and changed:
            # slurmrestd has not answered this process yet: the file can wait that long.
            names = invalid | {one.name for one in changed}
            overrides.kept, overrides.slurm_conf = names, old
            self._requeue(key, SOON_S)
            return self._keeping(obj, cluster, old)
        state.has_compared = True
        if changed and live_only(old, wanted) and self._reads_soon(obj):
            names = invalid | state.rejected.keys() | {one.name for one in changed}
            overrides.kept, overrides.slurm_conf = names, state.base(old)
            self._requeue(key, SOON_S)
            return self._keeping(obj, cluster, old)
        retained = source.retained(cluster)
        members = await self._mark(key, cluster, link, retained | overrides.kept, state)
        await self._reread(obj, link, state, events)
        if changed and not live_only(old, wanted):
            state.by_file = ""
        elif changed:
            context, before = ChangeContext(events, obj, wanted), state.base(old)
            state.file = old
            done = await self.calls.send(context, link, changed, members, state)
            source.report_removed_keys(obj, events, (before, wanted), done)
        overrides.kept, overrides.slurm_conf = invalid | state.rejected.keys(), state.base(old)
        if state.rejected:
            self._requeue(key, AGAIN_S)
        if retained:
            self._requeue(key, RETAINED_S)
        if changed:
            self._signals.emit(PARTITIONS_APPLIED, key)
        return self._keeping(obj, cluster, old)

    def _wanted(self, cluster: C, state: State, old: str, invalid: frozenset[str]) -> str:
        """The desired slurm.conf, in which invalid partitions are as slurmctld has them."""
        text = self._source.slurm_conf(cluster)
        return with_partitions_of(state.base(old), text, invalid) if invalid else text

    async def _mark(
        self,
        key: str,
        cluster: C,
        link: SlurmConnection | None,
        kept: frozenset[str],
        state: State,
    ) -> Mapping[str, frozenset[str]]:
        """Set the features by which nodes belong to partitions; return the nodes by node set."""
        if link is None or link.client is None:
            return {}
        model, workers = self._source.model(cluster), self._source.workers(cluster)
        marked = await mark(link, model, workers, kept, state.unmoved)
        state.by_file = marked.trouble or state.by_file
        if marked.trouble or marked.unmoved:
            self._requeue(key, AGAIN_S)
        state.unread, state.unmoved = state.unread | marked.unread, marked.unmoved
        return marked.members

    async def _reread(
        self, obj: K, link: SlurmConnection | None, state: State, events: Events
    ) -> None:
        """Reconfigure a slurmctld that sees the changed nodes of partitions only then.

        Slurmrestd of 26.05 changes partitions, so this is for those before it. Many nodes that come
        within seconds are one reconfigure.
        """
        if not state.unread or link is None or link.client is None:
            return
        key, now = obj.metadata.key, self._clock.monotonic()
        if now < state.reread_at + REREAD_S:
            self._requeue(key, state.reread_at + REREAD_S - now)
            return
        state.reread_at = now
        try:
            await link.client.reconfigure()
        except SlurmError as error:
            state.by_file = str(error)
            self._requeue(key, AGAIN_S)
            return
        words = f"Reconfigured slurmctld for nodes of partition {', '.join(sorted(state.unread))}"
        events.normal(obj, Event.PARTITION_UPDATED, words, "Configure")
        state.unread = frozenset()
        link.partitions.poll_soon()

    def _requeue(self, key: str, after_s: float) -> None:
        self._signals.emit(PARTITIONS_PENDING, key, after_s)

    def _reads_soon(self, obj: K) -> bool:
        """Return whether slurmctld is about to read its files or to end, and loses REST changes."""
        pods = self._source.slurmctld_pods(obj)[:1]
        leaves = any(pod.metadata.deleting for pod in pods)
        return leaves or self._is_replaced_soon(obj, pods) or self.reads(obj)

    def _is_replaced_soon(self, obj: K, pods: Iterable[Pod]) -> bool:
        """Return whether a StatefulSet is about to replace slurmctld's pod."""
        state, now = self._states.of(obj), self._clock.monotonic()
        of = self._source.workload(obj)
        if not any(is_outdated(pod, of) for pod in pods):
            state.outdated_since = None
            return False
        if state.outdated_since is None:
            state.outdated_since = now
        return now - state.outdated_since < REPLACED_S

    def draining_finding(self, obj: K) -> Finding | None:
        """Return the condition about removed partitions that stay for their jobs."""
        link = self._connections.get(obj.metadata.key)
        return self._removal.finding(obj, link, self._states.of(obj))

    def _keeping(self, obj: K, cluster: C, old: str) -> AppliedPartitions[C]:
        """Return the cluster with kept partitions, and whether REST calls made each difference."""
        overrides = self._source.overrides(obj)
        found = self._source.keeping(cluster, overrides.kept, overrides.slurm_conf)
        text, sent = self._source.slurm_conf(found), self._states.of(obj).sent
        live = live_only(old, text) and all(
            one.name in sent and sent[one.name] == one.new for one in partition_changes(old, text)
        )
        return AppliedPartitions(found, live, bool(sent))

    def findings(self, obj: K) -> list[Finding]:
        """Return the findings about rejected partitions that have no object of their own."""
        return [
            rejected_finding(words, CONFIG_APPLIED)
            for name, words in sorted(self.rejections(obj).items())
            if not self._source.has_own_object(obj, name)
        ]

    def _changes(self, state: State, old: str, wanted: str) -> list[Change]:
        """Return the changes since the file, and since the REST calls after it."""
        now = declared_in(wanted)
        found = {one.name: one for one in partition_changes(old, wanted)}
        for name, sent in state.sent.items():
            if sent == now.get(name):
                found.pop(name, None)
            else:
                found[name] = Change(name, sent, now.get(name))
        fresh = self._clock.monotonic() - AGAIN_S
        for name, known in state.rejected.items():
            if known.declared == now.get(name) and known.at > fresh:
                found.pop(name, None)
        return [found[name] for name in sorted(found)]

    def _tidy(self, state: State, old: str, wanted: str) -> None:
        """Forget REST changes that the file has, and rejections of former declarations."""
        before, now = declared_in(old), declared_in(wanted)
        if state.sent and not live_only(state.file, old):
            # A change by the file: slurmctld reads it whole, whatever the calls before it changed.
            state.sent.clear()
        for name in [n for n, sent in state.sent.items() if before.get(n) == sent]:
            del state.sent[name]
        # Of one that was declared again since, nobody knows whether a job is in it.
        state.deleted = {name for name in state.deleted if name in before and name not in now}
        state.dropped = {name for name in state.dropped if name in before and name not in now}
        for name in [n for n in state.kept_by if not is_drained(old, n) or n not in now]:
            del state.kept_by[name]
        for name, one in list(state.rejected.items()):
            # slurmctld reads the declaration with the file, even if it rejected a REST call.
            if one.declared != now.get(name) or one.declared == before.get(name):
                del state.rejected[name]


def _in_no_file(state: State, old: str | None) -> str:
    """What slurmctld was sent since its file: a job may be in a partition that no file has yet."""
    return state.base(old) if old is not None and state.sent else ""


def _conf(version: Version) -> str:
    return version.data.get("slurm.conf", "")
