"""slurmctld of a SlurmCluster: its configuration on the way to it, its pod, and its status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster, SlurmClusterStatus
from penstock.controllers.cluster import claim_templates
from penstock.controllers.cluster.release import Releases
from penstock.controllers.config.status import config_status
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.config.triggers import Triggers
from penstock.controllers.nebius.accounting import ClusterAccounting
from penstock.controllers.nebius.config_source import ClusterConfig
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.partition_source import ClusterPartitions
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.state import State as PartitionState
from penstock.controllers.runtime.report import Events
from penstock.decide.config import conditions as config_findings
from penstock.decide.config.conditions import has_worked
from penstock.decide.config.transaction import ConfigStep, ConfigView, Stage
from penstock.decide.config.triggers import TriggerStep, is_pending
from penstock.decide.partition.retention import DRAINING
from penstock.decide.pod.workload import workload
from penstock.render.nebius.cluster import slurmctld as render
from penstock.render.nebius.config import config_maps
from penstock.render.nebius.config.left_out import left_out
from penstock.render.nebius.config.slurm_conf import retained_partitions
from penstock.render.nebius.inputs import ClusterInputs
from penstock.slurm.conf.includes import SLURM_CONF, resolved
from penstock.translate.nebius.cluster import MARKS

_VOLUMES = "spec.slurmNodes.controller.volumes"
_REJECTED = frozenset({Stage.REJECTED, Stage.ROLLED_BACK})


@dataclass(slots=True)
class _State:
    decision: ConfigStep | None = None
    triggered: TriggerStep | None = None
    wanted: str = ""


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
        self._releases = Releases(context, SLURM_CLUSTERS, context.connections, self._configuration)
        self._partitions = PartitionChanges(
            ClusterPartitions(context.clusters),
            context.states(SLURM_CLUSTERS, PartitionState),
            context.connections,
            context.client.clock,
            context.signals,
        )
        self._partitions.reads = self._configuration.reads

    def begin(self, obj: SlurmCluster) -> None:
        """Forget the decision of the last reconcile."""
        state = self._states.of(obj)
        state.decision = state.triggered = None

    async def reconcile(
        self, obj: SlurmCluster, cluster: ClusterInputs, runs: Finding, *, may_start: bool
    ) -> list[Finding]:
        """Hand over what changed of its configuration, and make its StatefulSet.

        `runs` is about its pod. A StatefulSet that does not exist is created once it `may_start`.
        Raises KubeError.
        """
        brought = await self._partitions.apply(obj, self._events)
        source, state = ClusterConfig(obj, brought.cluster, self._clusters), self._states.of(obj)
        worked = has_worked(obj.status.conditions)
        noted = self._triggers.noted(source, worked=worked)
        if noted != obj.status.triggers:
            state.triggered = TriggerStep(noted)
        asked = is_pending(MARKS, obj.metadata.annotations, noted)
        view, decision = await self._configuration.evaluate(
            source,
            worked=worked,
            runs=runs,
            ask=asked,
            live=brought.live,
            parser=self._releases.parser(obj.metadata.key),
        )
        self._configuration.note(obj, decision, view.candidate.hash, asked=asked)
        state.decision, state.wanted = decision, view.candidate.hash
        await self._verify(obj, source, view, decision)
        await self._write(obj, source, view, decision)
        manifest, refused = render.stateful_set(cluster), list[Finding]()
        live = self._objects.live(manifest)
        if may_start or live is not None:
            written, refused = self._releases.withhold(source, [manifest])
            for one in written:
                kept, findings = claim_templates.keep(one, live, _VOLUMES)
                refused += findings
                await self._objects.apply(obj, self._events, [kept])
        pod = next(iter(source.slurmctld_pods()), None)
        self._releases.learn(source, pod, serves=bool(runs.ok))
        await self._configuration.deliver(source, self._events, view, decision, worked=worked)
        if asked and worked:
            state.triggered = await self._triggers.advance(source, self._events, view)
        held = (
            retained_partitions(source.inputs) if decision.stage in _REJECTED else frozenset[str]()
        )
        draining = filter(None, [self._partitions.draining_finding(obj)])
        return [
            *refused,
            *config_findings.findings(decision, view.candidate.data, held),
            *self._partitions.findings(obj),
            *draining,
            *left_out(source.inputs),
        ]

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
            manifests += [startup, config_maps.jailed_config(obj, decision.startup)]
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
            rejection=decision.words if decision.stage in _REJECTED else "",
            triggered=triggered,
            now=self._client.clock.time(),
        )
        return self._releases.status(obj, found)
