"""Controller: keys, configuration and slurmctld of one cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from penstock.api.cluster import marks
from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.kinds import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    Pod,
)
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.penstock.partition import PARTITIONS
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting
from penstock.api.slinky.controller import CONTROLLERS, Controller, ControllerStatus
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.token import TOKENS
from penstock.base.times import write
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.auth.generated_keys import GeneratedKeys
from penstock.controllers.auth.key_rotation import KeyRotation
from penstock.controllers.cluster import adopted_workload as hold
from penstock.controllers.cluster import claim_templates
from penstock.controllers.cluster import release as releases
from penstock.controllers.cluster.accounting_registration import Registrations
from penstock.controllers.cluster.backups import Backups
from penstock.controllers.cluster.external import ExternalCluster
from penstock.controllers.cluster.metrics_monitor import ServiceMonitors
from penstock.controllers.cluster.release import Releases
from penstock.controllers.config.transaction import ConfigTransaction
from penstock.controllers.config.triggers import Triggers
from penstock.controllers.observed.members import (
    cluster_keys,
    clusters_following_nodes,
    clusters_selecting_node,
    clusters_selecting_worker,
    same_key,
)
from penstock.controllers.observed.references import (
    controllers_accepting_token,
    controllers_recording_in,
    controllers_using_accounting,
    controllers_using_config_map,
    controllers_using_secret,
    controllers_using_sssd_conf,
)
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.observed.watching import (
    any_of,
    instance_of,
    labels_or_node_changed,
    own_key,
    owner_of,
    spec_changed,
)
from penstock.controllers.partition import removed_keys as partition_gone
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.partition.state import AppliedPartitions
from penstock.controllers.runtime import chart_labels
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.signals import (
    PARTITION_DRIFT,
    PARTITIONS_PENDING,
    REGISTRATION,
    SLURM,
)
from penstock.controllers.slinky import missing
from penstock.controllers.slinky.prerequisites import sssd_conf_hash
from penstock.decide.accounting import conditions as accounting
from penstock.decide.cluster import release
from penstock.decide.config import conditions as config_findings
from penstock.decide.config import files as config_files
from penstock.decide.config.conditions import APPLIED
from penstock.decide.config.transaction import ConfigStep, ConfigView, Stage
from penstock.decide.config.triggers import TriggerStep, initial_triggers, is_pending
from penstock.decide.drift import DRIFTED, choice
from penstock.decide.drift import findings as drift_finding
from penstock.decide.partition.retention import DRAINING
from penstock.decide.pod.workload import stuck, workload
from penstock.kube import Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.render.config.content import Contents
from penstock.render.slinky.cluster import release as of_release
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.config.config_maps import (
    config_hash,
    declared,
    files,
    mounted,
    partition_record,
)
from penstock.render.slinky.config.slurm_conf import retained_partitions
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.conf.apply_method import SLURM_CONF
from penstock.translate.slinky.cluster import MARKS, accounting_link
from penstock.translate.slinky.cluster import cluster as translated
from penstock.translate.slinky.image_sources import image_sources

_REFUSED = frozenset({Stage.REJECTED, Stage.ROLLED_BACK})
_OF_OURS = frozenset({config_findings.VALID, config_findings.APPLIED, DRIFTED})


def _spec_or_size_changed(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether more than the status changed, or a NodeSet in DaemonSet mode has other nodes."""
    if spec_changed(old, new) or old is None or new is None:
        return True
    return new.spec.scaling_mode == "DaemonSet" and old.status.desired != new.status.desired


def _spec_or_conditions_changed(old: Accounting | None, new: Accounting | None) -> bool:
    """Whether the spec or the status of a condition changed."""
    if spec_changed(old, new) or old is None or new is None:
        return True
    before, after = ({one.type: one.status for one in obj.status.conditions} for obj in (old, new))
    return before != after


@dataclass(slots=True)
class _State:
    decision: ConfigStep | None = None
    refused: str = ""
    """What Slurm said of what is declared, while something else is on its way."""
    triggered: TriggerStep | None = None


class ControllerReconciler(Reconciler[Controller]):
    """Brings Controllers about."""

    name = "controller"
    resource = CONTROLLERS
    watches = (
        Watch(CONTROLLERS, own_key),
        Watch(NODESETS, cluster_keys, _spec_or_size_changed),
        Watch(
            SECRETS,
            any_of(controllers_using_secret, controllers_using_sssd_conf, owner_of(CONTROLLERS)),
        ),
        Watch(CONFIG_MAPS, controllers_using_config_map),
        Watch(CONFIG_MAPS, controllers_recording_in),
        *(
            Watch(one, owner_of(CONTROLLERS))
            for one in (SERVICES, CONFIG_MAPS, STATEFUL_SETS, SERVICE_MONITORS)
        ),
        Watch(PODS, instance_of("slurmctld")),
        # slurm.conf permits tokens that contain their user.
        Watch(TOKENS, controllers_accepting_token, spec_changed),
        Watch(ACCOUNTINGS, controllers_using_accounting, _spec_or_conditions_changed),
        Watch(PARTITIONS, cluster_keys, spec_changed),
        Watch(PODS, clusters_selecting_worker, labels_or_node_changed),
        Watch(NODES, clusters_selecting_node, labels_or_node_changed),
    )
    signals = (
        Signal(SLURM, clusters_following_nodes),
        Signal(REGISTRATION, same_key),
        Signal(PARTITIONS_PENDING, same_key),
        Signal(PARTITION_DRIFT, same_key),
    )

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._rejected_files = context.rejected_files
        OverriddenFieldDetector(context, self.resource)
        connections, partitions, drift = context.connections, context.changes, context.drift
        self.partitions = partitions
        self.drift = drift
        self.anew = PodRestarter(context.client)
        self.outside = ExternalCluster(context, connections)
        self.monitor = ServiceMonitors(context)
        self.backups = Backups(context, connections)
        self.configuration = ConfigTransaction(context)
        partitions.reads = self.configuration.reads
        self.triggers = Triggers(context)
        self.generated = GeneratedKeys(context)
        self.keys = KeyRotation(context, connections)
        self.registrations = Registrations(context, connections)
        self.releases = Releases(context, connections, self.configuration)
        self._states = context.states(CONTROLLERS, _State)

    async def reconcile(self, key: str) -> Result:
        """Look at one Controller.

        A process that has just started would tell that an outside slurmctld is silent, and take it
        back.
        """
        obj = self._caches.controllers.get(key)
        told = obj is not None and obj.spec.external and obj.status.observed_generation
        if obj is not None and told and not self.outside.heard(obj):
            return Result(requeue_after=1.0)
        return await super().reconcile(key)

    async def reconcile_object(self, obj: Controller) -> list[Finding]:
        """Make keys, Services, configuration and slurmctld; hand over what changed."""
        state = self._states.of(obj)
        state.decision = state.triggered = None
        if not obj.spec.external:
            await self.generated.apply(obj, self.events)
        cluster = self._clusters.cluster(obj)
        first = accounting.first_waits(translated(obj, cluster.accounting))
        waiting = missing.prerequisite_findings(self._clusters, obj, cluster) or first
        if not waiting and not obj.spec.external and not _worked(obj):
            version = of_release.of_slurmctld(cluster)
            keys_unknown = release.unknown(files(cluster), version)
            waiting = release.unknown_findings(keys_unknown, version)
        if waiting:
            return waiting
        # Before anything is made of the keys: slurmctld begins with those that the ring knows.
        keys = [] if obj.spec.external else await self.keys.advance(obj, self.events)
        brought = await self.partitions.apply(obj, self.events)
        if not (brought.cluster.slurm_key_hash and brought.cluster.jwt_key_hash):
            # One went meanwhile: a template without its hash would end slurmctld.
            return missing.prerequisite_findings(
                self._clusters, obj, brought.cluster
            ) or await self.reconcile_object(obj)
        if obj.spec.external:
            state.triggered = self.outside.triggers(obj, self.events)
            findings = await self.outside.reconcile(obj, brought.cluster, self.events)
            findings += await self.registrations.reconcile(
                obj, brought.cluster, self.events, settled=bool(findings[0].ok)
            )
            await self.backups.retire(obj, self.events)
            return findings + await self.monitor.apply(obj, brought.cluster, self.events)
        return await self._inside(obj, brought, keys)

    async def _inside(
        self, obj: Controller, brought: AppliedPartitions, keys: list[Finding]
    ) -> list[Finding]:
        """A slurmctld of ours: its configuration, its objects, and what is said of them."""
        cluster = brought.cluster
        pods, runs, late = await self._daemons(obj, cluster)
        serves = workload("slurmctld", 1, pods[:1], image_sources(obj))
        asked = is_pending(MARKS, obj.metadata.annotations, self._noted(obj))
        manifest = render.stateful_set(cluster)
        pod = hold.inspect(
            self.objects, obj, [manifest], render.declared_pods(cluster), asked=asked
        )
        trial = releases.trial(manifest)
        view, decision = await self.configuration.evaluate(
            obj,
            cluster,
            worked=_worked(obj) or pod.is_foreign,
            runs=serves,
            ask=asked,
            live=brought.live,
            held=pod.keeps_pods,
            parser=self.releases.parser(obj.metadata.key),
            other_release=bool(trial),
        )
        self.configuration.note(obj, decision, view.candidate.hash, asked=asked)
        self._note(obj, cluster, view, decision)
        await self._prove(obj, cluster, view, decision)
        refused, kept = await self._make(obj, cluster, decision, pod)
        self.releases.learn(obj, pods[0] if pods else None, serves=bool(serves.ok))
        await self._hand_over(obj, view, decision)
        await chart_labels.label(self.client, obj, pods)
        monitored = await self.monitor.apply(obj, cluster, self.events)
        if asked and _worked(obj):
            self._states.of(obj).triggered = await self.triggers.advance(obj, self.events, view)
        settled = bool(serves.ok) and decision.stage is Stage.EFFECTIVE
        of_config = [
            *accounting.findings(accounting_link(obj, cluster.accounting), has_worked=_worked(obj)),
            *self._told(obj, cluster, view, decision),
        ]
        drifted = await self._drifted(obj, cluster)
        recorded = await self.registrations.reconcile(obj, cluster, self.events, settled=settled)
        users = await self._sssd(obj, pods)
        draining = filter(None, [self.partitions.held(obj)])
        return [
            *(*late, *refused, runs, *of_config, *recorded, *trial),
            *(*users, *self.partitions.findings(obj), *kept, *keys, *draining),
            *config_files.hidden_files(missing.of_user(cluster)),
            *(*monitored, *drifted, *pod.findings),
        ]

    async def _daemons(
        self, obj: Controller, cluster: ClusterInputs
    ) -> tuple[tuple[Pod, ...], Finding, list[Finding]]:
        """Slurmctld's pods, the one that works first; whether all run, and what they wait for."""
        pods = self._clusters.slurmctld_pods(obj)
        runs = workload("slurmctld", obj.spec.replicas, pods, image_sources(obj))
        late = await self._late_slurmdbd(obj, cluster, pods) if not runs.ok else []
        if obj.spec.replicas > 1:
            await self.backups.reconcile(obj, cluster, self.events)
            pods = self._clusters.slurmctld_pods(obj)
            late += [] if runs.ok else await self.backups.claim(obj)
        return pods, runs, late

    async def _prove(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> None:
        """See whether slurmctld has the partitions of its file, before the alias says so."""
        if view.startup is not None and view.last_known_good is not None:
            self.partitions.expect(obj, view.startup, view.last_known_good)
        if decision.stage is Stage.EFFECTIVE or decision.stage in _REFUSED:
            await self.partitions.prove(obj, cluster, self.events)

    async def _make(
        self,
        obj: Controller,
        cluster: ClusterInputs,
        decision: ConfigStep,
        pod: hold.WorkloadAdoption,
    ) -> tuple[list[Finding], list[Finding]]:
        """Write slurmctld's objects; what is left out of them, and what could not be changed."""
        # With its state in the pod slurmctld would lose every job: that is for somebody to decide.
        stays = pod.keeps_pods and not (decision.stage is Stage.TRYING and obj.spec.persistent)
        candidate = declared(cluster).candidate
        contents = Contents(
            decision.startup, decision.last_known_good, candidate, decision.rejected
        )
        manifests = replace(pod, manifests=tuple(render.objects(cluster, contents)))
        if obj.spec.persistent and self._clusters.served(obj) and decision.startup is not None:
            # Before slurmctld reads the file: jobs enter a partition as soon as it has it.
            record = partition_record(cluster, decision.startup)
            await self.objects.apply(obj, self.events, [record])
        written, refused = self.releases.withhold(obj, cluster, manifests.apply(stays=stays))
        return refused, await self._ensure(obj, written)

    async def _hand_over(self, obj: Controller, view: ConfigView, decision: ConfigStep) -> None:
        """Tell of what went, replace outdated standbys, and have slurmctld read its files."""
        self._tell_gone(obj, view, decision)
        await self.backups.only(obj)
        if decision.stage is Stage.EFFECTIVE:
            await self.backups.retire(obj, self.events)
        await self._deliver(obj, view, decision)

    def _note(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Keep what was decided and what Slurm refuses, for whoever looks next."""
        state = self._states.of(obj)
        waits = cluster.controller is not obj or decision.stage is Stage.TRYING
        state.refused = self._clusters.refused(obj) if waits else ""
        state.decision = decision
        if decision.stage in _REFUSED and cluster.controller is obj:
            self._rejected_files.of(obj).files = mounted(cluster, view.candidate.data)

    def _tell_gone(self, obj: Controller, view: ConfigView, decision: ConfigStep) -> None:
        """Tell of keys of partitions that are in the file no more, as slurmctld keeps them."""
        if view.startup is None or decision.startup is None:
            return
        texts = view.startup.data.get(SLURM_CONF, ""), decision.startup.get(SLURM_CONF, "")
        told_of = self.partitions.sent_names(obj)
        partition_gone.tell(self._caches, self.events, obj, texts, but=told_of)

    def _noted(self, obj: Controller) -> tuple[Trigger, ...]:
        """What was done of what annotations ask for, those included that slurmctld began with."""
        done = obj.status.triggers
        if _worked(obj):
            return done
        now = write(self.client.clock.time())
        noted = initial_triggers(MARKS, obj.metadata.annotations, done, now)
        if noted != done:
            self._states.of(obj).triggered = TriggerStep(noted)
        return noted

    async def _ensure(self, obj: Controller, manifests: list[Json]) -> list[Finding]:
        """Make the objects; a claim template that cannot be changed keeps nothing else back."""
        key = f"{obj.metadata.namespace}/{names.controller_workload(obj)}"
        told: list[Finding] = []
        for manifest in manifests:
            if manifest["kind"] == "StatefulSet":
                manifest, told = claim_templates.keep(manifest, self._caches.stateful_sets.raw(key))
            await self.objects.apply(obj, self.events, [manifest])
        return told

    async def _sssd(self, obj: Controller, pods: tuple[Pod, ...]) -> list[Finding]:
        """Have a changed sssd.conf come to slurmctld's pods at once; say that it is missing."""
        found = sssd_conf_hash(self._secrets, obj.metadata.namespace, obj.spec.sssd_conf_ref)
        if isinstance(found, Finding):
            return [found]
        for pod in pods if found else ():
            await self.anew.annotate(pod, found, slinky_labels.SSSD_CONF_HASH)
        return []

    async def _late_slurmdbd(
        self, controller: Controller, cluster: ClusterInputs, pods: tuple[Pod, ...]
    ) -> list[Finding]:
        """What slurmctld waits for at its first start; when that is there it waits no longer."""
        found = accounting_link(controller, cluster.accounting)
        if found is None or not found.exists:
            return []
        pod = accounting.in_vain(found, pods, self.client.clock.time())
        if pod is not None and not _has_state_in_pod(controller):
            note = f"{pod.metadata.name} is made anew: slurmdbd, for which it waited, is there"
            await self.anew.restart(controller, self.events, pod, note)
        return accounting.waits(found)

    async def _drifted(self, obj: Controller, cluster: ClusterInputs) -> list[Finding]:
        """What was changed in Slurm of partitions that are nobody else's."""
        chosen, wrong = choice(obj.metadata.annotations)
        words = await self.drift.resolve(obj, cluster, chosen)
        return [*wrong, *drift_finding(words, obj.status.conditions)]

    def _told(
        self, obj: Controller, cluster: ClusterInputs, view: ConfigView, decision: ConfigStep
    ) -> list[Finding]:
        """How the configuration is doing; a refusal is told until something else is taken."""
        words = self._states.of(obj).refused
        refused = words or decision.stage in _REFUSED
        held = retained_partitions(cluster) if refused else frozenset[str]()
        if not words:
            return config_findings.findings(decision, view.candidate.data, held)
        valid = find(obj.status.conditions, config_findings.VALID)
        tried = valid is not None and valid.status == "True"
        if decision.stage in _REFUSED:
            words += f"; and without the Controller's changed lines: {decision.words}"
        found = files(self._clusters.declared(obj))
        return config_findings.rejected_findings(words, found, held, tried=tried)

    def requeue_after(self, obj: Controller) -> float | None:
        """Soon while an answer of the reconfigure container is waited for."""
        if obj.spec.external:
            waits = (self.outside.requeue_after(obj), self.monitor.requeue_after(obj))
            waits = (*waits, self.registrations.requeue_after(obj))
            return min((one for one in waits if one is not None), default=None)
        waits = (
            self._requeue_after(obj),
            self.monitor.requeue_after(obj),
            self.backups.requeue_after(obj),
        )
        waits = (*waits, self.keys.requeue_after(obj), self.registrations.requeue_after(obj))
        return min((one for one in waits if one is not None), default=None)

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
        if decision.stage in _REFUSED and not self._clusters.refused(obj):
            # The status tells of it from now on: then the rest goes on without it.
            return 0.2
        return self.configuration.requeue_after(obj, decision.stage)

    def outdated(self, obj: Controller) -> frozenset[str]:
        """What slurmctld took over is not known of an outside one."""
        known = _OF_OURS if obj.spec.external else frozenset[str]()
        held = not obj.spec.external and self.partitions.held(obj) is not None
        draining = frozenset[str]() if held else frozenset({DRAINING})
        mine = self.monitor.outdated(obj) | self.registrations.outdated(obj)
        return known | draining | mine

    def status(self, obj: Controller) -> Status:
        """The hashes of the wanted configuration and of that which slurmctld runs with."""
        old, decision = obj.status, self._states.of(obj).decision
        wanted = config_hash(self._clusters.declared(obj))
        triggered = self._states.of(obj).triggered
        if obj.spec.external:
            told = triggered.status if triggered is not None else old.triggers
            return ControllerStatus(config_hash=wanted, triggers=told)
        if decision is None:
            return msgspec.structs.replace(old, config_hash=wanted)
        words = self._states.of(obj).refused
        if decision.stage in _REFUSED:
            words = words or decision.words
        learned = self.releases.learned(obj)
        since = old.config_since
        if decision.active != old.effective_config_hash:
            since = write(self.client.clock.time()) if decision.active else ""
        return msgspec.structs.replace(
            old,
            config_hash=wanted,
            effective_config_hash=decision.active,
            config_since=since,
            last_error=words,
            slurm_image=learned.image,
            slurm_version=learned.version,
            state_version=learned.state,
            triggers=triggered.status if triggered is not None else old.triggers,
        )

    async def _deliver(
        self, controller: Controller, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Have slurmctld's pods look at their files, and restart slurmctld where nothing less does.

        A slurmctld that ended on the former configuration is not kept waiting for the kubelet's
        back-off: its pod is made anew, unless that would take the state with it.
        """
        workload = f"{controller.metadata.namespace}/{names.controller_workload(controller)}"
        found = self._caches.stateful_sets.get(workload)
        revision = found.status.update_revision if found is not None else None
        handed = decision.marks.get(marks.CONFIG_HASH, "")
        for pod in self._clusters.slurmctld_pods(controller):
            meta = pod.metadata
            if not meta.deleting and stuck(pod, "slurmctld", revision):
                note = f"{meta.name} could not start; it is made anew as it is declared now"
                await self.anew.restart(controller, self.events, pod, note)
                return
            if handed and not _has_state_in_pod(controller):
                anew = await self.anew.restart_if_crashed(
                    controller, self.events, pod, "slurmctld", handed
                )
                if anew:
                    return
        if decision.restart or decision.recreate:
            await self.configuration.restart(controller, self.events, decision)
        else:
            await self.configuration.mark(controller, self.events, view, decision)


def _worked(controller: Controller) -> bool:
    """Whether slurmctld has worked: the condition ConfigApplied is there from then on."""
    return find(controller.status.conditions, APPLIED) is not None


def _has_state_in_pod(controller: Controller) -> bool:
    """Whether slurmctld has worked and keeps its state, with all jobs, where its pod ends."""
    return _worked(controller) and not controller.spec.persistent


def _serves(clusters: SlinkyClusters, controller: Controller) -> bool:
    return bool(workload("slurmctld", 1, clusters.slurmctld_pods(controller)[:1]).ok)
