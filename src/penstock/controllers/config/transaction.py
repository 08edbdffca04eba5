"""Configuration transaction of a cluster: observes its progress and does the next step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.api.cluster import marks as own_marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, ConfigMap, Node, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.event import Event
from penstock.controllers.config.source import ConfigSource, ConfigStatus
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.cluster.release import unknown, unknown_words
from penstock.decide.config import conditions as config_findings
from penstock.decide.config.reconfigure_log import Acknowledgements, read
from penstock.decide.config.start import SLURMCTLD, Start, StartResult, observe
from penstock.decide.config.transaction import is_settled, next_step
from penstock.decide.config.view import ConfigStep, ConfigView, Stage, Version
from penstock.decide.pod.workload import restarts, stuck
from penstock.kube import ForbiddenError, KubeError, NotFoundError
from penstock.render.config.content import content_hash, rejections_in
from penstock.slurm import versions
from penstock.slurm.conf.apply_method_table import table
from penstock.slurm.conf.includes import resolved

LINES = 200
"""Lines of the log of container `reconfigure` to read: more than one change has."""
REFRESH_S = 3.0
"""Seconds until the kubelet is made to refresh the files once more; tripled each time."""
RECONFIGURE = "reconfigure"
HOLDS_S = 60.0
"""Seconds that a requested restart waits for files with partitions that REST calls made."""
READS_S = 15.0
"""Seconds that a slurmctld may take to read new files."""


@dataclass(slots=True)
class _Wait:
    """Since when a step of one cluster is in progress."""

    what: tuple[Stage, str]
    since: float
    refreshed: int = 0


@dataclass(slots=True)
class _State:
    wait: _Wait | None = None
    start: Start | None = None
    release: tuple[str, str] = ("", "")
    mpi: tuple[str, ...] = ()
    """uid of the pod whose reconfigure container was queried, and its version of Slurm."""
    unsaved_since: float | None = None
    """Since when slurmctld has partitions that its files lack (monotonic seconds)."""
    reads_since: float | None = None
    """Since when slurmctld is about to read its files (monotonic seconds)."""


class ConfigTransaction:
    """Carries out the transactions of all clusters that objects of one resource declare."""

    def __init__(self, context: Context, resource: Resource[Any]) -> None:
        self._client = context.client
        self._caches = context.caches
        self._kind = resource.kind
        self._restarter = PodRestarter(context.client)
        self._states = context.states(resource, _State)

    async def evaluate(
        self,
        source: ConfigSource,
        *,
        worked: bool,
        runs: Finding,
        ask: bool,
        live: bool,
        has_unsaved: bool = False,
        is_adopted: bool = False,
        parser: versions.Version | None = None,
        other_release: bool = False,
    ) -> tuple[ConfigView, ConfigStep]:
        """Return the observed state and the next step. `runs` is about the active slurmctld's pod.

        Reads the log of container `reconfigure` if the step depends on it, or if `ask`. `live`:
        slurmctld got all differences from the startup configuration by REST calls. `has_unsaved`:
        it got changes by REST calls that this configuration does not have. `is_adopted`: its pod
        is another operator's. `parser` is the release of slurmrestd's data parser. A trial start by
        an image of an `other_release` than slurmctld's does not count as a verdict.
        """
        pod = next(iter(source.slurmctld_pods()), None)
        wanted, serves = source.candidate(), bool(runs.ok)
        data = wanted.data
        marks = pod.metadata.annotations if pod and not pod.metadata.deleting else None
        real = self._version(source, source.startup)
        version = source.release()
        start = self._start(source.object, pod, real, serves=serves)
        view = ConfigView(
            candidate=wanted,
            startup=real,
            startup_at=self._observed_at(source),
            last_known_good=self._version(source, source.last_known_good),
            has_started=worked,
            is_ready=serves,
            has_own_sidecar=source.has_own_sidecar(),
            active=source.status.effective_config_hash,
            marks=marks,
            persistent=source.persistent,
            applied_live=live,
            has_unsaved=has_unsaved,
            is_adopted=is_adopted,
            down=start.down,
            hung=start.hung,
            starting="" if serves else runs.message,
            rejected=self._rejected(source),
            unfit=source.unfit(resolved(data)),
            is_complete=source.is_complete(),
            table=table(version, parser),
            unknown=unknown_words(unknown(data, version), version) if worked else "",
        )
        if (
            (ask or not is_settled(view))
            and view.has_own_sidecar
            and not is_adopted
            and (worked or serves)
        ):
            acks, why = await self._acks(source, pod)
            if acks is not None and other_release:
                every = dict.fromkeys([*acks.tried, *acks.untried])
                acks = replace(acks, tried=every, untried={})
            if acks is None and (words := rejected_before(source.status, view.candidate.hash)):
                # A rejection stays valid after the log was lost.
                acks = Acknowledgements(tried={view.candidate.hash: words})
            view = replace(view, acks=acks, why=why)
        elif (
            view.has_own_sidecar
            and not is_adopted
            and pod is not None
            and not self._knows(source.object, pod)
        ):
            # A slurmctld that never becomes ready may be one that answers no probe.
            await self._acks(source, pod)
        return view, next_step(view)

    def release(self, obj: KubeObject, pod: Pod) -> tuple[str, tuple[str, ...]]:
        """Return version of Slurm and MPI plug-ins in the pod's container `reconfigure`.

        Both are empty while they are unknown.
        """
        state = self._states.of(obj)
        uid, found = state.release
        return (found, state.mpi) if uid == pod.metadata.uid else ("", ())

    def _note_release(self, obj: KubeObject, pod: Pod, acks: Acknowledgements) -> None:
        if acks.has_lines:
            state = self._states.of(obj)
            state.release, state.mpi = (pod.metadata.uid, acks.release), acks.mpi

    def _knows(self, obj: KubeObject, pod: Pod) -> bool:
        uid, found = self._states.of(obj).release
        return uid == pod.metadata.uid and bool(found)

    async def deliver(
        self,
        source: ConfigSource,
        events: Events,
        view: ConfigView,
        decision: ConfigStep,
        *,
        worked: bool,
    ) -> None:
        """Have the kubelet refresh the files of slurmctld's pods; restart slurmctld only if needed.

        A slurmctld that ended on the former configuration does not wait for the kubelet's back-off:
        its pod is recreated, unless it has `worked` and its state would be lost with it.
        """
        key = f"{source.object.metadata.namespace}/{source.workload}"
        found = self._caches.stateful_sets.get(key)
        revision = found.status.update_revision if found is not None else None
        handed = decision.marks.get(own_marks.CONFIG_HASH, "")
        for pod in source.slurmctld_pods():
            meta = pod.metadata
            if not meta.deleting and stuck(pod, SLURMCTLD, revision):
                note = f"Recreating pod {meta.name} with the current template: it could not start"
                await self._restarter.restart(source.object, events, pod, note)
                return
            if handed and (source.persistent or not worked):
                restarted = await self._restarter.restart_if_crashed(
                    source.object, events, pod, SLURMCTLD, handed
                )
                if restarted:
                    return
        if decision.restart or decision.recreate:
            await self._restart(source, events, decision)
        else:
            await self.mark(source, events, view, decision)

    async def mark(
        self, source: ConfigSource, events: Events, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Annotate slurmctld's pod, which makes the kubelet refresh its files at once.

        Standbys are not annotated: they get new pods instead.
        """
        refresh = self._refresh(source.object, decision, view.candidate.hash)
        for pod in source.slurmctld_pods()[:1]:
            meta = pod.metadata
            if meta.deleting:
                continue
            old = meta.annotations
            patch = {
                key: value or None
                for key, value in decision.marks.items()
                if old.get(key, "") != value
            }
            handed = patch.get(own_marks.CONFIG_HASH)
            if handed:
                patch[own_marks.CONFIG_DELIVERED_TO] = str(restarts(pod, SLURMCTLD))
            if refresh and not patch:
                patch[own_marks.CONFIG_REFRESH] = refresh
            if not patch:
                continue
            body = {"metadata": {"uid": meta.uid, "annotations": patch}}
            try:
                await self._client.patch(PODS, meta.namespace, meta.name, body)
            except NotFoundError:
                continue
            if handed == view.candidate.hash and own_marks.CONFIG_HASH in old:
                note = config_findings.step(
                    decision,
                    meta.name,
                    kind=self._kind,
                    live=old.get(own_marks.CONFIG_LIVE) == view.candidate.hash,
                    persistent=view.persistent,
                )
                message = f"Configuration {view.candidate.hash[:12]}: {note}"
                events.normal(source.object, Event.CONFIG_DELIVERED, message, "Configure")

    async def _restart(self, source: ConfigSource, events: Events, decision: ConfigStep) -> None:
        """Restart slurmctld by a new pod; its state is on a PVC."""
        for pod in source.slurmctld_pods():
            if pod.metadata.deleting:
                continue
            name = pod.metadata.name
            if decision.recreate:
                note = f"Recreating pod {name}: {decision.recreate}"
            else:
                named = ", ".join(str(one) for one in decision.plan.items) or "its configuration"
                note = f"Recreating pod {name}: slurmctld has to restart for {named}"
            await self._restarter.restart(source.object, events, pod, note)

    def requeue_after(self, obj: KubeObject, stage: Stage) -> float | None:
        """Return the seconds until the log is read again; None while no step is in progress."""
        if stage in {Stage.REJECTED, Stage.ROLLED_BACK}:
            return 30.0
        if stage not in {Stage.TRYING, Stage.DELIVERING, Stage.RETURNING, Stage.STARTING}:
            return None
        waited = self._waited(obj)
        # So the pauses make a wait a tenth longer at most.
        return min(max(0.1, waited / 10.0), 10.0)

    def note(self, obj: KubeObject, decision: ConfigStep, wanted: str, *, asked: bool) -> None:
        """Record since when a step is in progress; `asked` is a reconfigure by annotation."""
        what = (decision.stage, wanted)
        state, now = self._states.of(obj), self._client.clock.monotonic()
        if state.wait is None or state.wait.what != what:
            state.wait = _Wait(what, now)
        if decision.reloads or asked:
            state.reads_since = now if state.reads_since is None else state.reads_since
        else:
            state.reads_since = None
        if not decision.is_unsaved:
            state.unsaved_since = None
        elif state.unsaved_since is None:
            state.unsaved_since = now

    def delays_restart(self, obj: KubeObject) -> bool:
        """Return whether a restart or a reconfigure that is not urgent has to wait."""
        since = self._states.of(obj).unsaved_since
        return since is not None and self._client.clock.monotonic() - since < HOLDS_S

    def reads(self, obj: KubeObject) -> bool:
        """Return whether slurmctld may be about to read its files, and lose REST changes."""
        since = self._states.of(obj).reads_since
        return since is not None and self._client.clock.monotonic() - since < READS_S

    def _waited(self, obj: KubeObject) -> float:
        wait = self._states.of(obj).wait
        return self._client.clock.monotonic() - wait.since if wait else 0.0

    def _version(self, source: ConfigSource, name: str) -> Version | None:
        """Return the content of one of our ConfigMaps; None if somebody else wrote it."""
        found = self._config_map(source, name)
        if found is None or found.binary_data:
            return None
        data = found.data or {}
        mark = found.metadata.annotations.get(own_marks.CONTENT_HASH)
        if mark is not None and mark != content_hash(data):
            return None
        return source.version(data)

    def _rejected(self, source: ConfigSource) -> dict[str, str]:
        """Return the rejections that the startup ConfigMap records."""
        found = self._config_map(source, source.startup)
        return rejections_in(found.metadata.annotations) if found is not None else {}

    def _observed_at(self, source: ConfigSource) -> str:
        found = self._config_map(source, source.startup)
        return found.metadata.resource_version if found is not None else ""

    def _config_map(self, source: ConfigSource, name: str) -> ConfigMap | None:
        found = self._caches.config_map(f"{source.object.metadata.namespace}/{name}")
        return None if found is None or found.metadata.deleting else found

    async def _acks(
        self, source: ConfigSource, pod: Pod | None
    ) -> tuple[Acknowledgements | None, str]:
        """Return the acknowledgements of container `reconfigure`, or why they are unknown."""
        if pod is None or pod.metadata.deleting:
            return None, "slurmctld's pod is not there"
        space, name = pod.metadata.namespace, pod.metadata.name
        if own_marks.TRIES_CONFIG not in pod.metadata.annotations:
            return None, f"{name} is of an older version and is to be replaced"
        every = pod.status.init_container_statuses or ()
        if not any(one.name == RECONFIGURE and one.state.running for one in every):
            return None, f"container {RECONFIGURE} of {name} does not run"
        try:
            log = await self._client.log(space, name, RECONFIGURE, LINES)
            acks = read(log)
            if acks.active in ("", source.status.effective_config_hash):
                self._note_release(source.object, pod, acks)
                return acks, ""
            # The log is read by the pod's name. The log of a newer pod is not about this one.
            live = await self._client.get(PODS, space, name)
        except KubeError as error:
            return None, unreadable(pod, RECONFIGURE, error)
        if live.metadata.uid != pod.metadata.uid:
            return None, f"{name} was replaced just now"
        self._note_release(source.object, pod, acks)
        return acks, ""

    def _start(
        self, obj: KubeObject, pod: Pod | None, real: Version | None, *, serves: bool
    ) -> StartResult:
        """Return how slurmctld starts with the startup files, if it does not serve yet."""
        state, found = self._states.of(obj), StartResult()
        if real is not None and not serves:
            node = self._caches.nodes.get(pod.spec.node_name or "") if pod else None
            now = self._client.clock.monotonic()
            found = observe(state.start, pod, real.hash, node_ready=_is_ready(node), now=now)
        state.start = found.start
        return found

    def _refresh(self, obj: KubeObject, decision: ConfigStep, wanted: str) -> str:
        """Return a new annotation when the kubelet may have missed a change; else empty.

        The kubelet has its own watch of ConfigMaps, which the pod's change may overtake.
        """
        wait = self._states.of(obj).wait
        if wait is None or wait.what != (decision.stage, wanted):
            return ""
        if decision.stage not in {Stage.TRYING, Stage.DELIVERING}:
            return ""
        if self._waited(obj) < REFRESH_S * 3**wait.refreshed:
            return ""
        wait.refreshed += 1
        return f"{wanted[:12]}-{wait.refreshed}"


def rejected_before(status: ConfigStatus, wanted: str) -> str:
    """Return slurmctld's words if the status records that it rejected this configuration."""
    return status.last_error if status.config_hash == wanted else ""


def unreadable(pod: Pod, container: str, error: KubeError) -> str:
    """Return why a container's log cannot be read, and the next step."""
    problem = f"the log of container {container} of {pod.metadata.name} cannot be read: {error}"
    if isinstance(error, ForbiddenError):
        return f"{problem}. Allow the operator's service account to get pods/log"
    return f"{problem}. The kubelet of Kubernetes node {pod.spec.node_name} has to answer"


def _is_ready(node: Node | None) -> bool:
    conditions = (node.status.conditions or ()) if node else ()
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
