"""A slurmctld of ours: its configuration on the way to it, its objects and its status."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller, ControllerStatus
from penstock.controllers.cluster import adopted_workload as hold
from penstock.controllers.cluster import claim_templates
from penstock.controllers.cluster import release as releases
from penstock.controllers.cluster.release import Releases
from penstock.controllers.config.delayed_template import delay
from penstock.controllers.config.status import config_status
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.config.triggers import Triggers
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.partition.state import AppliedPartitions
from penstock.controllers.runtime.reconciler import soonest
from penstock.controllers.slinky import chart_labels, missing, removed_keys
from penstock.controllers.slinky.config_source import ControllerConfig
from penstock.controllers.slinky.controller_services import (
    ControllerServices,
    has_worked,
    registration_target,
)
from penstock.controllers.slinky.slurmctld_pods import SlurmctldPods
from penstock.decide.accounting import conditions as accounting
from penstock.decide.config import conditions as config_findings
from penstock.decide.config import files as config_files
from penstock.decide.config.triggers import TriggerStep, is_pending
from penstock.decide.config.view import ConfigStep, ConfigView, Stage
from penstock.decide.drift import choice
from penstock.decide.drift import findings as drift_finding
from penstock.decide.pod.workload import workload
from penstock.render.config.content import Contents
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.config.config_maps import declared, files, mounted, partition_record
from penstock.render.slinky.config.slurm_conf import retained_partitions
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.translate.slinky.cluster import MARKS, accounting_link
from penstock.translate.slinky.image_sources import image_sources

_REJECTED = frozenset({Stage.REJECTED, Stage.ROLLED_BACK})


class InternalSlurmctld:
    """Those of all Controllers."""

    def __init__(self, services: ControllerServices) -> None:
        context = services.context
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters
        self._objects = context.objects
        self._rejected_files = context.rejected_files
        self._partitions = context.changes
        self._drift = context.drift
        self._events = services.events
        self._monitor = services.monitor
        self._backups = services.backups
        self._registrations = services.registrations
        self._states = services.states
        self._configuration = ConfigTransaction(context, CONTROLLERS)
        context.changes.reads = self._configuration.reads
        self._triggers = Triggers(context.client)
        self._pods = SlurmctldPods(services)
        self._releases = Releases(context, CONTROLLERS, context.connections, self._configuration)

    async def reconcile(
        self, obj: Controller, brought: AppliedPartitions[ClusterInputs], keys: list[Finding]
    ) -> list[Finding]:
        """Its configuration, its objects, and the findings about them."""
        cluster = brought.cluster
        source = ControllerConfig(obj, cluster, self._clusters)
        pods, runs, late = await self._pods.observe(obj, cluster)
        serves = workload("slurmctld", 1, pods[:1], image_sources(obj))
        noted = self._triggers.noted(source, worked=has_worked(obj))
        if noted != obj.status.triggers:
            self._states.of(obj).triggered = TriggerStep(noted)
        asked = is_pending(MARKS, obj.metadata.annotations, noted)
        manifest = render.stateful_set(cluster)
        pod = hold.inspect(
            self._objects, obj, [manifest], render.declared_pods(cluster), asked=asked
        )
        trial = releases.trial(manifest)
        view, decision = await self._configuration.evaluate(
            source,
            worked=has_worked(obj) or pod.is_foreign,
            runs=serves,
            ask=asked,
            live=brought.live,
            has_unsaved=brought.has_unsaved,
            is_adopted=pod.keeps_pods,
            parser=self._releases.parser(obj.metadata.key),
            other_release=bool(trial),
        )
        self._configuration.note(obj, decision, view.candidate.hash, asked=asked)
        self._note(obj, cluster, view, decision)
        await self._verify(obj, cluster, view, decision)
        refused, kept = await self._make(obj, source, cluster, view, decision, pod)
        self._releases.learn(source, pods[0] if pods else None, serves=bool(serves.ok))
        await self._hand_over(obj, source, view, decision)
        await chart_labels.label(self._client, obj, pods)
        monitored = await self._monitor.apply(obj, cluster, self._events)
        if asked and has_worked(obj):
            self._states.of(obj).triggered = await self._triggers.advance(
                source,
                self._events,
                view,
                is_delayed=self._configuration.delays_restart(obj),
            )
        settled = bool(serves.ok) and decision.stage is Stage.EFFECTIVE
        of_config = [
            *accounting.findings(
                accounting_link(obj, cluster.accounting), has_worked=has_worked(obj)
            ),
            *self._config_findings(obj, cluster, view, decision),
        ]
        drifted = await self._drifted(obj, cluster)
        slurmdbd = registration_target(obj, cluster)
        recorded = await self._registrations.reconcile(obj, slurmdbd, self._events, settled=settled)
        users = await self._pods.deliver_sssd_conf(obj, pods)
        draining = filter(None, [self._partitions.draining_finding(obj)])
        return [
            *(*late, *refused, runs, *of_config, *recorded, *trial),
            *(*users, *self._partitions.findings(obj), *kept, *keys, *draining),
            *config_files.hidden_files(missing.of_user(cluster)),
            *(*monitored, *drifted, *pod.findings),
        ]

    async def _verify(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Compare slurmctld's partitions with its file before that is the last known good one."""
        if view.startup is not None and view.last_known_good is not None:
            self._partitions.expect(obj, view.startup, view.last_known_good)
        if decision.stage is Stage.EFFECTIVE or decision.stage in _REJECTED:
            await self._partitions.prove(obj, cluster, self._events)

    async def _make(
        self,
        obj: Controller,
        source: ControllerConfig,
        cluster: ClusterInputs,
        view: ConfigView,
        decision: ConfigStep,
        pod: hold.WorkloadAdoption,
    ) -> tuple[list[Finding], list[Finding]]:
        """Write slurmctld's objects; what is left out of them, and what could not be changed."""
        # With its state in the pod slurmctld would lose every job: that is for somebody to decide.
        stays = pod.keeps_pods and not (decision.stage is Stage.TRYING and obj.spec.persistent)
        candidate = declared(cluster).candidate
        contents = Contents(
            decision.startup,
            decision.last_known_good,
            candidate,
            decision.rejected,
            view.startup_at,
        )
        manifests = replace(pod, manifests=tuple(render.objects(cluster, contents)))
        if obj.spec.persistent and self._clusters.served(obj) and decision.startup is not None:
            # Before slurmctld reads the file: jobs enter a partition as soon as it has it.
            record = partition_record(cluster, decision.startup)
            await self._objects.apply(obj, self._events, [record])
        written, refused = self._releases.withhold(source, manifests.apply(stays=stays))
        state = self._states.of(obj)
        state.has_delayed = False
        if self._configuration.delays_restart(obj):
            written, state.has_delayed = delay(written, pod.live)
        return refused, await self._ensure(obj, written)

    async def _hand_over(
        self, obj: Controller, source: ControllerConfig, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Report removed keys, replace outdated standbys, and have slurmctld read its files."""
        self._report_removed_keys(obj, view, decision)
        await self._backups.only(obj)
        if decision.stage is Stage.EFFECTIVE:
            await self._backups.retire(obj, self._events)
        await self._configuration.deliver(
            source, self._events, view, decision, worked=has_worked(obj)
        )

    def _note(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Note the decision and what Slurm rejects, for the status and the next reconcile."""
        state = self._states.of(obj)
        waits = cluster.controller is not obj or decision.stage is Stage.TRYING
        state.rejection = self._clusters.rejection(obj) if waits else ""
        state.decision = decision
        if decision.stage in _REJECTED and cluster.controller is obj:
            self._rejected_files.of(obj).files = mounted(cluster, view.candidate.data)

    def _report_removed_keys(self, obj: Controller, view: ConfigView, decision: ConfigStep) -> None:
        """Report keys of partitions that left the file, as slurmctld keeps their values."""
        if view.startup is None or decision.startup is None:
            return
        texts = view.startup.data.get(SLURM_CONF, ""), decision.startup.get(SLURM_CONF, "")
        sent = self._partitions.sent_names(obj)
        removed_keys.emit_removed_keys(self._caches, self._events, obj, texts, but=sent)

    async def _ensure(self, obj: Controller, manifests: list[Json]) -> list[Finding]:
        """Apply the objects; a PVC template that cannot be changed delays nothing else."""
        key = f"{obj.metadata.namespace}/{names.controller_workload(obj)}"
        findings: list[Finding] = []
        for manifest in manifests:
            if manifest["kind"] == "StatefulSet":
                manifest, findings = claim_templates.keep(
                    manifest, self._caches.stateful_sets.raw(key)
                )
            await self._objects.apply(obj, self._events, [manifest])
        return findings

    async def _drifted(self, obj: Controller, cluster: ClusterInputs) -> list[Finding]:
        """What was changed in Slurm of partitions that are nobody else's."""
        chosen, wrong = choice(obj.metadata.annotations)
        words = await self._drift.resolve(obj, cluster, chosen)
        return [*wrong, *drift_finding(words, obj.status.conditions)]

    def _config_findings(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> list[Finding]:
        """The state of the configuration. A rejection is reported until another one is accepted."""
        state = self._states.of(obj)
        words = state.rejection
        rejected = words or decision.stage in _REJECTED
        retained = retained_partitions(cluster) if rejected else frozenset[str]()
        if not words:
            found = config_findings.findings(decision, view.candidate.data, retained)
            asked = state.triggered is not None and state.triggered.is_delayed
            return config_findings.with_delay(found) if state.has_delayed or asked else found
        return config_findings.findings_beside_rejection(
            decision,
            words,
            files(self._clusters.declared(obj)),
            retained,
            obj.status.conditions,
            kind=CONTROLLERS.kind,
        )

    def requeue_after(self, obj: Controller) -> float | None:
        """Soon while an answer of the reconfigure container is waited for."""
        return soonest(
            self._requeue_after(obj),
            self._monitor.requeue_after(obj),
            self._backups.requeue_after(obj),
            self._registrations.requeue_after(obj),
        )

    def _requeue_after(self, obj: Controller) -> float | None:
        decision = self._states.of(obj).decision
        triggered = self._states.of(obj).triggered
        if triggered is not None and triggered.is_waiting:
            return 0.5
        if decision is None or (
            decision.stage is Stage.STARTING and not _serves(self._clusters, obj)
        ):
            declared = self._clusters.declared(obj)
            return accounting.requeue_after(accounting_link(obj, declared.accounting))
        if decision.stage in _REJECTED and not self._clusters.rejection(obj):
            # The status reports it from now on, and the rest continues without it.
            return 0.2
        return self._configuration.requeue_after(obj, decision.stage)

    def status(self, obj: Controller, wanted: str) -> ControllerStatus:
        """The hashes of the wanted configuration and of that which slurmctld runs with."""
        old, state = obj.status, self._states.of(obj)
        decision, triggered = state.decision, state.triggered
        if decision is None:
            return msgspec.structs.replace(old, config_hash=wanted)
        words = state.rejection
        if decision.stage in _REJECTED:
            words = words or decision.words
        status = config_status(
            old,
            decision,
            wanted=wanted,
            rejection=words,
            triggered=triggered,
            now=self._client.clock.time(),
        )
        return self._releases.status(obj, status)


def _serves(clusters: SlinkyClusters, controller: Controller) -> bool:
    return bool(workload("slurmctld", 1, clusters.slurmctld_pods(controller)[:1]).ok)
