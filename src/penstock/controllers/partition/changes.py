"""Bring changed partitions into slurmctld by slurmrestd, one call each, before the file follows.

What slurmctld refuses is kept out of the file, so that it starts on what it has. While slurmrestd
is away the file alone goes, and slurmctld takes the partitions over with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.cluster_state import PartitionOverrides
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.partition import removed_keys as partition_gone
from penstock.controllers.partition.membership import mark
from penstock.controllers.partition.state import AppliedPartitions, Refusal, State, Told
from penstock.controllers.partition.worker_labels import workers
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.signals import PARTITIONS_APPLIED, PARTITIONS_PENDING
from penstock.controllers.runtime.slurm_connections import (
    UNCONNECTED,
    SlurmConnection,
    SlurmConnections,
)
from penstock.decide.config.transaction import Version
from penstock.decide.partition.conditions import CONFIG_APPLIED, refusal
from penstock.decide.partition.conditions import refused as refused_finding
from penstock.decide.partition.drift import told as said
from penstock.decide.partition.retention import empty
from penstock.decide.partition.retention import finding as held_finding
from penstock.kube.client.clock import Clock
from penstock.kube.runtime.declaration import Signals
from penstock.kube.runtime.state import StateByUid
from penstock.render.config import partition as render
from penstock.render.config.sections import with_partitions_of
from penstock.render.slinky.config.slurm_conf import retained_partitions, slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.conf.document import Document
from penstock.slurm.known import Unknown
from penstock.slurm.partition.declaration import (
    PARTITION,
    Change,
    Difference,
    live_only,
    partition_changes,
)
from penstock.slurm.partition.declaration import node_set as node_set_of
from penstock.slurm.partition.declaration import partition_lines as declared_in
from penstock.slurm.partition.drift import differences
from penstock.slurm.partition.retention import is_drained
from penstock.slurm.partition.update import ByFile, Delete, Update, call, put_back
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError
from penstock.slurm.versions import PARTITION_CALLS_SINCE

AGAIN_S = 30.0
"""Pause before what slurmctld refused is tried again: its reason may have gone."""
SOON_S = 1.0
HELD_S = 5.0
"""Pause before the jobs of partitions that are declared no more are looked at again."""


class PartitionChanges:
    """The changes of all clusters. Signals requeue the Controller and report what was sent."""

    def __init__(
        self,
        clusters: SlinkyClusters,
        connections: SlurmConnections,
        clock: Clock,
        signals: Signals,
        overrides: StateByUid[PartitionOverrides],
    ) -> None:
        self._caches = clusters.caches
        self._clusters = clusters
        self._overrides = overrides
        self._connections = connections
        self._clock = clock
        self._signals = signals
        self._states = StateByUid(clusters.caches.controllers, State)
        self.adopts: Callable[[str, str], bool] = lambda _key, _name: False
        """Whether what somebody changed of a partition in Slurm is to be declared so."""
        self.reads: Callable[[Controller], bool] = lambda _: False
        """Whether slurmctld is about to read its files: what it is told now would be lost."""

    def refusals(self, controller: Controller) -> Mapping[str, str]:
        """Slurmctld's words by partition."""
        return {name: one.words for name, one in self._states.of(controller).refused.items()}

    def sent_names(self, controller: Controller) -> frozenset[str]:
        """Partitions of which slurmctld was told what the file does not show yet."""
        return frozenset(self._states.of(controller).sent)

    def has_compared(self, controller: Controller) -> bool:
        """Whether this process has compared what is declared with the file once."""
        return self._states.of(controller).has_compared

    def under_way(self, controller: Controller) -> frozenset[str] | None:
        """Partitions that slurmctld does not have as declared for our own part.

        None while this process has not compared what is declared with the file.
        """
        state, old = self._states.of(controller), self._clusters.slurm_conf(controller)
        if old is None or not state.has_compared:
            return None
        text = slurm_conf(self._clusters.cluster(controller))
        differing = frozenset(one.name for one in partition_changes(old, text))
        return differing | state.sent.keys() | state.verifier.waiting

    def expect(self, controller: Controller, real: Version, alias: Version) -> None:
        """Slurmctld is to have the real configuration, and had the alias before."""
        verifier = self._states.of(controller).verifier
        if real != alias or verifier.waiting:
            verifier.expect(real.hash, _conf(real), _conf(alias))

    async def prove(self, controller: Controller, cluster: ClusterInputs, events: Events) -> None:
        """See that slurmctld, which runs with its file by now, still has what it was told."""
        key, verifier = controller.metadata.key, self._states.of(controller).verifier
        text, link = self._clusters.slurm_conf(controller), self._connections.get(key)
        if text is None or link is None or not verifier.waiting:
            return

        async def revert(name: str, found: tuple[Difference, ...]) -> str:
            return await self.revert(cluster, link, name, found)

        members = self.members(cluster, link)
        back = await verifier.verify(text, link, members, revert)
        if back:
            words = f"slurmctld had read its files meanwhile: told again of {', '.join(back)}"
            events.normal(controller, "PartitionUpdated", words, "Configure")
        if verifier.waiting:
            self._requeue(key, SOON_S)
        self._signals.emit(PARTITIONS_APPLIED, key)

    async def revert(
        self,
        cluster: ClusterInputs,
        link: SlurmConnection,
        name: str,
        found: tuple[Difference, ...],
    ) -> str:
        """Put a partition back as it is declared; why that is not possible, or nothing."""
        line, client = declared_in(slurm_conf(cluster)).get(name), link.client
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

    def members(self, cluster: ClusterInputs, link: SlurmConnection) -> dict[str, frozenset[str]]:
        """The nodes that Partitions have one by one, by the node set that stands for them.

        Of those that stay as they were, as slurmctld refuses what is declared, none are told.
        """
        nodes = link.mirror.snapshot.nodes
        if isinstance(nodes, Unknown):
            return {}
        kubernetes = workers(self._caches, cluster)
        model = cluster.model
        return {
            node_set_of(one.name): render.members(model, one, nodes.value, kubernetes)
            for one in render.served(model)
            if render.marked(model, one) and one.name not in cluster.rejected_partitions
        }

    def file_only_reason(self, controller: Controller) -> str:
        """Why the last change did not go by slurmrestd; empty when it did."""
        return self._states.of(controller).by_file

    async def apply(self, controller: Controller, events: Events) -> AppliedPartitions:
        """Change slurmctld's partitions to what is declared, as far as it takes them.

        What is declared meanwhile waits for the next time: of the cluster that is returned, each
        partition was told to slurmctld, or is as it was.
        """
        key, clusters = controller.metadata.key, self._clusters
        state, overrides = self._states.of(controller), self._overrides.of(controller)
        overrides.freed = state.freed
        cluster = replace(clusters.cluster(controller), rejected_partitions=frozenset[str]())
        invalid = render.invalid(cluster.model)
        old = clusters.slurm_conf(controller)
        if old is None or controller.spec.external:
            overrides.kept, overrides.slurm_conf = frozenset(), ""
            return AppliedPartitions(cluster)
        wanted = slurm_conf(cluster)
        if invalid:
            wanted = with_partitions_of(state.base(old), wanted, invalid)
        self._tidy(state, old, wanted)
        overrides.freed = state.freed
        link = self._connections.get(key)
        accepted, text = cluster, wanted
        if (found := clusters.accepted(controller)) is not None:
            # A removed partition does not wait for somebody's mistake in the Controller's lines.
            accepted = replace(found, rejected_partitions=frozenset[str]())
            text = slurm_conf(accepted)
            if invalid:
                text = with_partitions_of(state.base(old), text, invalid)
        if await self._free(controller, accepted, link, (old, text), events, overrides):
            cluster = replace(accepted, freed=overrides.freed)
            wanted = slurm_conf(cluster)
            if invalid:
                wanted = with_partitions_of(state.base(old), wanted, invalid)
        changed = self._changes(state, old, wanted)
        if not (link is not None and link.has_answered) and live_only(old, wanted) and changed:
            # This process has not heard of slurmrestd yet: the file can wait that long.
            names = invalid | {one.name for one in changed}
            overrides.kept, overrides.slurm_conf = names, old
            self._requeue(key, SOON_S)
            return self._keeping(controller, cluster, old, overrides)
        state.has_compared = True
        if changed and live_only(old, wanted) and self._reads_soon(controller):
            names = invalid | state.refused.keys() | {one.name for one in changed}
            overrides.kept, overrides.slurm_conf = names, state.base(old)
            self._requeue(key, SOON_S)
            return self._keeping(controller, cluster, old, overrides)
        members: Mapping[str, frozenset[str]] = {}
        held = retained_partitions(cluster)
        if link is not None and link.client is not None:
            kubernetes = workers(self._caches, cluster)
            marked = await mark(link, cluster, kubernetes, held | overrides.kept)
            members = marked.members
            if marked.trouble:
                state.by_file = marked.trouble
                self._requeue(key, AGAIN_S)
        if changed and not live_only(old, wanted):
            state.by_file = ""
        elif changed:
            told, before = Told(events, controller, wanted), state.base(old)
            state.file = old
            done = await self._call(told, link, changed, members, state)
            partition_gone.tell(self._caches, events, controller, (before, wanted), only=done)
        overrides.kept, overrides.slurm_conf = invalid | state.refused.keys(), state.base(old)
        if state.refused:
            self._requeue(key, AGAIN_S)
        if held:
            self._requeue(key, HELD_S)
        if changed:
            self._signals.emit(PARTITIONS_APPLIED, key)
        return self._keeping(controller, cluster, old, overrides)

    async def _free(
        self,
        controller: Controller,
        cluster: ClusterInputs,
        link: SlurmConnection | None,
        texts: tuple[str, str],
        events: Events,
        overrides: PartitionOverrides,
    ) -> bool:
        """Have slurmctld delete the partitions that nobody declares, once no job is in them.

        That is the last step: until slurmctld runs with a file that has all else, and in which
        they are drained, a job may enter whenever it reads its file. Whether any is in them is
        asked anew. Returns whether one is gone.
        """
        key, (old, wanted) = controller.metadata.key, texts
        state, now = self._states.of(controller), self._clock.monotonic()
        waiting = {
            name
            for name in retained_partitions(cluster) - render.invalid(cluster.model)
            if is_drained(old, name)
            and not (name in state.kept_by and state.kept_by[name].at > now - AGAIN_S)
        }
        # What slurmctld refuses of another partition does not keep this one.
        differing = {one.name for one in partition_changes(old, wanted)} - state.refused.keys()
        settled = live_only(old, wanted) and not differing and self._taken(controller)
        client = link.client if link is not None else None
        if not waiting or link is None or client is None or not settled:
            return False
        if self._reads_soon(controller):
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
                    state.kept_by[name] = Refusal(None, str(error), now)
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
        overrides.freed = state.freed
        if not gone:
            return False
        without = slurm_conf(replace(cluster, freed=state.freed))
        state.lines.update(dict.fromkeys(gone, without))
        told = f"Deleted partition {', '.join(gone)}: it is declared no more and has no job"
        events.normal(controller, "PartitionUpdated", told, "Configure")
        link.partitions.poll_soon()
        self._signals.emit(PARTITIONS_APPLIED, key)
        return True

    def _requeue(self, key: str, after_s: float) -> None:
        self._signals.emit(PARTITIONS_PENDING, key, after_s)

    def _reads_soon(self, controller: Controller) -> bool:
        """Whether slurmctld would forget what it is told now: it reads its files, or ends."""
        pods = self._clusters.slurmctld_pods(controller)[:1]
        leaves = any(pod.metadata.deleting for pod in pods)
        return leaves or self.reads(controller)

    def _taken(self, controller: Controller) -> bool:
        """Whether slurmctld was seen to run with its file."""
        space = controller.metadata.namespace
        ours = (names.config_map(controller), names.config_map_alias(controller))
        real, alias = (self._caches.config_map(f"{space}/{name}") for name in ours)
        return real is not None and alias is not None and real.data == alias.data

    def held(self, controller: Controller) -> Finding | None:
        """What is told of partitions that nobody declares and that stay for their jobs."""
        key = controller.metadata.key
        link, state = self._connections.get(key), self._states.of(controller)
        cluster = self._clusters.cluster(controller)
        found = retained_partitions(cluster) - render.invalid(cluster.model)
        jobs = link.mirror.snapshot.jobs if link is not None else UNCONNECTED
        words = {name: one.words for name, one in state.kept_by.items() if name in found}
        return held_finding(found, jobs, words, restapi=any(self._caches.restapis_of.get(key)))

    def _keeping(
        self,
        controller: Controller,
        cluster: ClusterInputs,
        old: str,
        overrides: PartitionOverrides,
    ) -> AppliedPartitions:
        """The cluster with what is kept; slurmctld was told all if it was told each difference."""
        kept, base = overrides.kept, overrides.slurm_conf
        found = replace(cluster, rejected_partitions=kept, slurm_conf=base if kept else "")
        text, sent = slurm_conf(found), self._states.of(controller).sent
        live = live_only(old, text) and all(
            one.name in sent and sent[one.name] == one.new for one in partition_changes(old, text)
        )
        return AppliedPartitions(found, live)

    def findings(self, controller: Controller) -> list[Finding]:
        """What slurmctld refused of partitions that have no object of their own."""
        key = controller.metadata.key
        owned = {one.slurm_name for one in self._caches.partitions_of.get(key)}
        return [
            refused_finding(words, CONFIG_APPLIED)
            for name, words in sorted(self.refusals(controller).items())
            if name not in owned
        ]

    def _changes(self, state: State, old: str, wanted: str) -> list[Change]:
        """What slurmctld has to be told: against the file, and against what it was told since."""
        now = declared_in(wanted)
        found = {one.name: one for one in partition_changes(old, wanted)}
        for name, sent in state.sent.items():
            if sent == now.get(name):
                found.pop(name, None)
            else:
                found[name] = Change(name, sent, now.get(name))
        fresh = self._clock.monotonic() - AGAIN_S
        for name, known in state.refused.items():
            if known.declared == now.get(name) and known.at > fresh:
                found.pop(name, None)
        return [found[name] for name in sorted(found)]

    def _tidy(self, state: State, old: str, wanted: str) -> None:
        """Forget what the file shows by now, and refusals of what nobody asks for any more."""
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
        for name, one in list(state.refused.items()):
            # slurmctld takes what the file says with the file, whatever it said before.
            if one.declared != now.get(name) or one.declared == before.get(name):
                del state.refused[name]

    async def _call(
        self,
        told: Told,
        link: SlurmConnection | None,
        changed: list[Change],
        members: Mapping[str, frozenset[str]],
        state: State,
    ) -> list[str]:
        """One call for each change; returns the partitions that slurmctld has taken."""
        client = link.client if link is not None else None
        if link is None or client is None:
            known = link.mirror.snapshot.nodes if link is not None else None
            state.by_file = known.why if isinstance(known, Unknown) else "slurmrestd is not there"
            return []
        state.by_file = client.lacks(PARTITION_CALLS_SINCE)
        if state.by_file:
            return []
        done: list[str] = []
        drifted = await self._drifted(told.controller.metadata.key, client, changed)
        for change in changed:
            over = drifted.get(change.name, ())
            try:
                why = await _one(client, change, members, over)
            except SlurmError as error:
                if not error.is_rejection:
                    state.by_file = str(error)
                    break
                # slurmctld sets one value after the other and stops at the one that it refuses.
                if change.old is not None and change.new is not None:
                    with contextlib.suppress(SlurmError):
                        await _one(client, Change(change.name, change.new, change.old), members)
                at = self._clock.monotonic()
                line = Document.parse(told.text).record(PARTITION, change.name)
                words = refusal(change.name, line.render() if line else "", str(error))
                state.refused[change.name] = Refusal(change.new, words, at)
                continue
            state.refused.pop(change.name, None)
            if why:
                state.by_file = why
                continue
            state.sent[change.name] = change.new
            state.lines[change.name] = told.text
            done.append(change.name)
            if over:
                words = f"Put back with what was declared: {said(change.name, over)}"
                told.events.warning(told.controller, "PartitionReverted", words, "Configure")
        if done:
            told.events.normal(
                told.controller,
                "PartitionUpdated",
                f"Changed in slurmctld without a reconfigure: partition {', '.join(done)}",
                "Configure",
            )
        link.partitions.poll_soon()
        return done

    async def _drifted(
        self, key: str, client: Slurmrestd, changed: list[Change]
    ) -> dict[str, tuple[Difference, ...]]:
        """What somebody changed in Slurm of partitions that are about to be changed: it goes."""
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


async def _one(
    client: Slurmrestd,
    change: Change,
    members: Mapping[str, frozenset[str]],
    drifted: tuple[Difference, ...] = (),
) -> str:
    """Make one change; why it has to go by the file, or nothing. Raises SlurmError."""
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


def _conf(version: Version) -> str:
    return version.data.get("slurm.conf", "")
