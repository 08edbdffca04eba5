"""slurmctld of a SlurmCluster: its configuration on the way to it, its pod, and its status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.api.cluster import marks as own_marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster, SlurmClusterStatus
from penstock.base.text import list_some
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.cluster import claim_templates
from penstock.controllers.cluster.release import Releases
from penstock.controllers.config.delayed_template import delay
from penstock.controllers.config.status import config_status
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.config.triggers import Triggers
from penstock.controllers.nebius import workloads
from penstock.controllers.nebius.accounting import ClusterAccounting
from penstock.controllers.nebius.adoption import AdoptedWorkload, Adoption, AdoptionReport
from penstock.controllers.nebius.config_source import ClusterConfig
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.decide.config import conditions as config_findings
from penstock.decide.config.conditions import has_worked
from penstock.decide.config.triggers import TriggerStep, is_pending
from penstock.decide.config.view import ConfigStep, ConfigView, Stage
from penstock.decide.partition.retention import DRAINING
from penstock.decide.pod.workload import workload
from penstock.render.config.content import content_hash, observed_at
from penstock.render.nebius import adopted_workload as adopted
from penstock.render.nebius.cluster import slurmctld as render
from penstock.render.nebius.config import config_maps
from penstock.render.nebius.config.files import TOPOLOGY_CONF, files
from penstock.render.nebius.config.left_out import left_out
from penstock.render.nebius.config.slurm_conf import retained_partitions
from penstock.render.nebius.config.static_nodes import lost_nodes
from penstock.render.nebius.inputs import ClusterInputs
from penstock.slurm.conf.includes import SLURM_CONF, resolved
from penstock.translate.nebius.cluster import MARKS

_VOLUMES = "spec.slurmNodes.controller.volumes"
REPORTED_S = 0.2
"""Pause until the cache has a rejection in the status."""
_REJECTED = frozenset({Stage.REJECTED, Stage.ROLLED_BACK})


@dataclass(slots=True)
class _State:
    decision: ConfigStep | None = None
    triggered: TriggerStep | None = None
    wanted: str = ""
    """Hash of the declared files."""
    rejection: str = ""
    """Slurmctld's words about the declared files, while others are on their way."""
    is_adopted: bool = False
    has_delayed: bool = False
    """Whether a changed template waits for the files."""


class ClusterSlurmctld:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._objects = context.objects
        self._events = events
        self._states = context.states(SLURM_CLUSTERS, _State)
        self._configuration = ConfigTransaction(context, SLURM_CLUSTERS)
        self._triggers = Triggers(context.client)
        self._adoption = Adoption(context, events)
        self._releases = Releases(context, SLURM_CLUSTERS, context.connections, self._configuration)
        self._partitions = context.changes
        self._partitions.reads = self._configuration.reads

    def begin(self, obj: SlurmCluster) -> None:
        """Forget the decision of the last reconcile."""
        state = self._states.of(obj)
        state.decision = state.triggered = None
        state.has_delayed = False

    async def reconcile(
        self,
        obj: SlurmCluster,
        cluster: ClusterInputs,
        report: AdoptionReport,
        *,
        may_start: bool,
    ) -> list[Finding]:
        """Hand over what changed of its configuration, and make its StatefulSet.

        A StatefulSet that does not exist is created once it `may_start`. Raises KubeError.
        """
        manifest, state = render.stateful_set(cluster), self._states.of(obj)
        worked = has_worked(obj.status.conditions)
        asked = self._is_asked(obj, worked=worked)
        found = await self._adoption.inspect(obj, manifest, adopted.slurmctld(cluster), asked=asked)
        stays = found.is_handed_over or self._must_stay(obj, found, report)
        state.is_adopted = stays or found.keeps_pods
        worked = worked or state.is_adopted or found.is_foreign
        kept = self._clusters.kept_files(obj) if state.is_adopted else None
        if kept is not None and not kept:
            report.note(found, stays=stays)
            name = names.slurm_configs(obj.metadata.name)
            words = f"ConfigMap {name} is gone. Restore it: slurmctld of the original runs with it"
            return [Finding(False, ObjectReason.CONFIG_MAP_NOT_FOUND, words)]
        if kept is not None:
            # The original's partitions are the declared ones, in its own words.
            source = ClusterConfig(obj, self._clusters.config(obj), self._clusters, kept)
            live = has_unsaved = False
        else:
            brought = await self._partitions.apply(obj, self._events)
            source = ClusterConfig(obj, brought.cluster, self._clusters)
            live, has_unsaved = brought.live, brought.has_unsaved
        noted = self._triggers.noted(source, worked=worked)
        if noted != obj.status.triggers:
            state.triggered = TriggerStep(noted)
        # Slurm may have taken seconds to answer: one that serves by now gets no untried files.
        runs = workloads.slurmctld(self._clusters, obj)
        view, decision = await self._configuration.evaluate(
            source,
            worked=worked,
            runs=runs,
            ask=asked,
            live=live,
            has_unsaved=has_unsaved,
            is_adopted=state.is_adopted,
            parser=self._releases.parser(obj.metadata.key),
        )
        self._configuration.note(obj, decision, view.candidate.hash, asked=asked)
        self._note(obj, source, view, decision)
        if not state.is_adopted:
            await self._verify(obj, source, view, decision)
        await self._write(obj, source, view, decision)
        refused = await self._make(obj, source, found, may_start=may_start, stays=stays)
        report.note(found, stays=stays)
        pod = next(iter(source.slurmctld_pods()), None)
        self._releases.learn(source, pod, serves=bool(runs.ok))
        if not state.is_adopted:
            await self._configuration.deliver(source, self._events, view, decision, worked=worked)
        if asked and worked and not state.is_adopted:
            state.triggered = await self._triggers.advance(
                source,
                self._events,
                view,
                is_delayed=self._configuration.delays_restart(obj),
            )
        draining = filter(None, [self._partitions.draining_finding(obj)])
        return [
            *refused,
            *self._config_findings(obj, source, view, decision),
            *self._partitions.findings(obj),
            *draining,
            *left_out(source.inputs),
        ]

    def is_adopted(self, obj: SlurmCluster) -> bool:
        """Whether its pod stays as the original made it, by the last reconcile."""
        return self._states.of(obj).is_adopted

    def _is_asked(self, obj: SlurmCluster, *, worked: bool) -> bool:
        """Whether an annotation asks for a reconfigure or a restart."""
        source = ClusterConfig(obj, self._clusters.config(obj), self._clusters)
        noted = self._triggers.noted(source, worked=worked)
        return is_pending(MARKS, obj.metadata.annotations, noted)

    def _must_stay(self, obj: SlurmCluster, found: AdoptedWorkload, report: AdoptionReport) -> bool:
        """Whether slurmctld of the original would lose jobs with Penstock's files."""
        pods = self._clusters.slurmctld_pods(obj)
        own = any(own_marks.TRIES_CONFIG in one.metadata.annotations for one in pods)
        if not found.is_foreign or found.keeps_pods or own:
            return False
        workers = [one.metadata.name for one in self._clusters.worker_pods(obj)]
        ours = files(self._clusters.config(obj))
        lost = lost_nodes(self._clusters.published(obj), ours, workers)
        if lost:
            report.waits = (
                f"slurm.conf of the original names Slurm nodes {list_some(sorted(lost))}, whose "
                "jobs would end: slurmctld is replaced once they have no pods, such as by "
                "spec.maintenance: downscale"
            )
        return bool(lost)

    async def _make(
        self,
        obj: SlurmCluster,
        source: ClusterConfig,
        found: AdoptedWorkload,
        *,
        may_start: bool,
        stays: bool,
    ) -> list[Finding]:
        """Write its StatefulSet; what is left out of it, and what could not be changed."""
        if found.is_handed_over or not (may_start or found.live is not None):
            return []
        written, refused = self._releases.withhold(source, [found.apply(stays=stays)])
        if self._configuration.delays_restart(obj):
            written, self._states.of(obj).has_delayed = delay(written, found.live)
        for one in written:
            kept, findings = one, list[Finding]()
            if "template" in one["spec"]:
                kept, findings = claim_templates.keep(one, found.live, _VOLUMES)
            refused += findings
            await self._objects.apply(obj, self._events, [kept])
        return refused

    def _note(
        self, obj: SlurmCluster, source: ClusterConfig, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Note the decision and what slurmctld rejects, for the status and the next reconcile."""
        state, accepted = self._states.of(obj), source.inputs.accepted
        waits = accepted or decision.stage is Stage.TRYING
        state.rejection = self._clusters.rejection(obj) if waits else ""
        state.decision, state.wanted = decision, view.candidate.hash
        if accepted:
            state.wanted = content_hash(files(self._clusters.declared(obj)))
        elif decision.stage in _REJECTED:
            self._clusters.rejected_files.of(obj).files = view.candidate.data

    def _config_findings(
        self, obj: SlurmCluster, source: ClusterConfig, view: ConfigView, decision: ConfigStep
    ) -> list[Finding]:
        """The state of the configuration. A rejection is reported until another one is accepted."""
        state = self._states.of(obj)
        words = state.rejection
        rejected = words or decision.stage in _REJECTED
        held = retained_partitions(source.inputs) if rejected else frozenset[str]()
        if not words:
            found = config_findings.findings(decision, view.candidate.data, held)
            asked = state.triggered is not None and state.triggered.is_delayed
            return config_findings.with_delay(found) if state.has_delayed or asked else found
        return config_findings.findings_beside_rejection(
            decision,
            words,
            files(self._clusters.declared(obj)),
            held,
            obj.status.conditions,
            kind=SLURM_CLUSTERS.kind,
        )

    async def _verify(
        self, obj: SlurmCluster, source: ClusterConfig, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Compare slurmctld's partitions with its file before that is the last known good one."""
        if view.startup is not None and view.last_known_good is not None:
            startup, good = (
                replace(one, data={SLURM_CONF: resolved(one.data)})
                for one in (view.startup, view.last_known_good)
            )
            self._partitions.expect(obj, startup, good)
        if decision.stage is Stage.EFFECTIVE or decision.stage in _REJECTED:
            await self._partitions.prove(obj, source.inputs, self._events)

    def outdated(self, obj: SlurmCluster) -> frozenset[str]:
        """Types of conditions that describe the cluster no longer."""
        held = self._partitions.draining_finding(obj) is not None
        return frozenset[str]() if held else frozenset({DRAINING})

    async def follow_accounting(
        self, obj: SlurmCluster, accounting: ClusterAccounting
    ) -> list[Finding]:
        """Have slurmctld registered with slurmdbd, and restarted where it waited in vain."""
        decision, pods = self._states.of(obj).decision, self._clusters.slurmctld_pods(obj)
        serves = bool(workload("slurmctld", 1, pods).ok)
        settled = serves and decision is not None and decision.stage is Stage.EFFECTIVE
        persistent = ClusterConfig(obj, self._clusters.config(obj), self._clusters).persistent
        return [
            *await accounting.release_slurmctld(obj, pods, persistent=persistent),
            *await accounting.registration(obj, settled=settled),
        ]

    async def _write(
        self, obj: SlurmCluster, source: ClusterConfig, view: ConfigView, decision: ConfigStep
    ) -> None:
        """The record of partitions before the files that have them; the candidate last."""
        manifests: list[Json] = []
        if decision.startup is not None:
            if self._clusters.served(obj) and source.persistent:
                manifests.append(config_maps.partition_record(obj, decision.startup))
            startup = config_maps.config_map(
                obj, source.startup, decision.startup, decision.rejected
            )
            manifests.append(observed_at(startup, view.startup_at))
            if obj.spec.has_jail and not self._states.of(obj).is_adopted:
                # That of the original has the same files, in its own order.
                manifests.append(config_maps.jailed_config(obj, decision.startup))
            if TOPOLOGY_CONF in decision.startup and not self._states.of(obj).is_adopted:
                prefix = self._clusters.prefix(obj)
                manifests.append(config_maps.topology_config(obj, prefix, decision.startup))
        if decision.last_known_good is not None:
            good = config_maps.config_map(obj, source.last_known_good, decision.last_known_good)
            manifests.append(good)
        candidate = names.candidate_configs(obj.metadata.name)
        manifests.append(config_maps.config_map(obj, candidate, view.candidate.data))
        await self._objects.apply(obj, self._events, manifests)

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Soon while an answer of the reconfigure container is waited for."""
        state = self._states.of(obj)
        if state.triggered is not None and state.triggered.is_waiting:
            return 0.5
        if state.decision is None:
            return None
        serves = workload("slurmctld", 1, self._clusters.slurmctld_pods(obj)).ok
        if state.decision.stage is Stage.STARTING and not serves:
            return None
        if state.decision.stage in _REJECTED and not self._clusters.rejection(obj):
            # The status reports it from now on, and the rest continues without it.
            return REPORTED_S
        return self._configuration.requeue_after(obj, state.decision.stage)

    def status(self, obj: SlurmCluster, status: SlurmClusterStatus) -> SlurmClusterStatus:
        """The hashes of the declared configuration and of the active one, and its release."""
        state = self._states.of(obj)
        decision, triggered = state.decision, state.triggered
        if decision is None:
            return status
        found = config_status(
            status,
            decision,
            wanted=state.wanted,
            rejection=state.rejection or (decision.words if decision.stage in _REJECTED else ""),
            triggered=triggered,
            now=self._client.clock.time(),
        )
        return self._releases.status(obj, found)
