"""The configuration of one cluster on its way to slurmctld: what is seen, the next step done."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.api.cluster import marks as own_marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import PODS, Node, Pod
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller, ControllerStatus
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.decide.cluster.release import unknown, unknown_words
from penstock.decide.config import conditions as config_findings
from penstock.decide.config.acknowledgement import Acknowledgements, read
from penstock.decide.config.start import SLURMCTLD, Start, StartResult, observe
from penstock.decide.config.transaction import (
    ConfigStep,
    ConfigView,
    Stage,
    Version,
    is_settled,
    next_step,
)
from penstock.decide.pod.workload import restarts
from penstock.kube import ForbiddenError, KubeError, NotFoundError
from penstock.render.config.content import content_hash, rejections_in
from penstock.render.slinky.cluster import release
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.config.config_maps import config_hash, files, mounted, own_hash
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import versions
from penstock.slurm.conf.apply_method import SLURM_CONF
from penstock.slurm.conf.apply_method_table import table
from penstock.slurm.conf.slurmctld_port import unfit

LINES = 200
"""Of the reconfigure container's log: more than it says of one change."""
REFRESH_S = 3.0
"""After which the kubelet is asked once more to look at the files; then after three times that."""
RECONFIGURE = "reconfigure"
READS_S = 15.0
"""For so long a slurmctld may take to read new files."""


@dataclass(slots=True)
class _Wait:
    """How long a step of one cluster is waited for."""

    what: tuple[Stage, str]
    since: float
    refreshed: int = 0


@dataclass(slots=True)
class _State:
    wait: _Wait | None = None
    start: Start | None = None
    release: tuple[str, str] = ("", "")
    """uid of the pod whose reconfigure container was queried, and its version of Slurm."""
    reads_since: float | None = None
    """Since when slurmctld is about to read its files (monotonic seconds)."""


class ConfigTransaction:
    """Looks at the configuration of a Controller and does what was decided."""

    def __init__(self, context: SlinkyContext) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters
        self._restarter = PodRestarter(context.client)
        self._states = context.states(CONTROLLERS, _State)

    async def evaluate(
        self,
        controller: Controller,
        cluster: ClusterInputs,
        *,
        worked: bool,
        runs: Finding,
        ask: bool,
        live: bool,
        held: bool = False,
        parser: versions.Version | None = None,
        other_release: bool = False,
    ) -> tuple[ConfigView, ConfigStep]:
        """What there is, and the next step. `runs` is about the pod of the slurmctld that works.

        Asks the reconfigure container if that is needed for it, or if it is to `ask`. `live` says
        that slurmctld was told all that differs from the real one already, `held` that its pod is
        still as another operator made it, `parser` the release whose REST calls slurmrestd has.
        A trial by an image of an `other_release` than slurmctld's is no verdict on a line.
        """
        pod = next(iter(self._clusters.slurmctld_pods(controller)), None)
        data, serves = files(cluster), bool(runs.ok)
        marks = pod.metadata.annotations if pod and not pod.metadata.deleting else None
        wanted = Version(data, config_hash(cluster), own_hash(cluster, data))
        real = self._version(cluster, names.config_map(controller))
        version = release.running(cluster)
        start = self._start(controller, pod, real, serves=serves)
        view = ConfigView(
            candidate=wanted,
            startup=real,
            last_known_good=self._version(cluster, names.config_map_alias(controller)),
            has_started=worked,
            is_ready=serves,
            has_own_sidecar=render.tries_configuration(cluster),
            active=controller.status.effective_config_hash,
            marks=marks,
            persistent=controller.spec.persistent,
            applied_live=live,
            is_adopted=held,
            down=start.down,
            hung=start.hung,
            starting="" if serves else runs.message,
            rejected=self._refused(cluster, names.config_map(controller)),
            unfit=unfit(data.get(SLURM_CONF, "")),
            is_complete=cluster.controller is controller,
            table=table(version, parser),
            unknown=unknown_words(unknown(data, version), version) if worked else "",
        )
        if (
            (ask or not is_settled(view))
            and view.has_own_sidecar
            and not held
            and (worked or serves)
        ):
            acks, why = await self._acks(controller, pod)
            if acks is not None and other_release:
                every = dict.fromkeys([*acks.tried, *acks.untried])
                acks = replace(acks, tried=every, untried={})
            if acks is None and (words := refused_before(controller.status, view.candidate.hash)):
                # Not hearing it any more does not undo a refusal.
                acks = Acknowledgements(tried={view.candidate.hash: words})
            view = replace(view, acks=acks, why=why)
        elif (
            view.has_own_sidecar
            and not held
            and pod is not None
            and not self._knows(controller, pod)
        ):
            # A slurmctld that never becomes ready may be one that answers no probe.
            await self._acks(controller, pod)
        return view, next_step(view)

    def release(self, controller: Controller, pod: Pod) -> str:
        """The version of Slurm in the pod's reconfigure container; empty while not known."""
        uid, found = self._states.of(controller).release
        return found if uid == pod.metadata.uid else ""

    def _note_release(self, controller: Controller, pod: Pod, acks: Acknowledgements) -> None:
        if acks.has_lines:
            self._states.of(controller).release = (pod.metadata.uid, acks.release)

    def _knows(self, controller: Controller, pod: Pod) -> bool:
        return self._states.of(controller).release[0] == pod.metadata.uid

    async def mark(
        self, controller: Controller, events: Events, view: ConfigView, decision: ConfigStep
    ) -> None:
        """Annotate slurmctld's pod, upon which the kubelet refreshes its files at once.

        Standbys are told nothing: they get new pods instead.
        """
        refresh = self._refresh(controller, decision, view.candidate.hash)
        for pod in self._clusters.slurmctld_pods(controller)[:1]:
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
                    live=old.get(own_marks.CONFIG_LIVE) == view.candidate.hash,
                    persistent=view.persistent,
                )
                told = f"Configuration {view.candidate.hash[:12]}: {note}"
                events.normal(controller, "ConfigDelivered", told, "Configure")

    async def restart(self, controller: Controller, events: Events, decision: ConfigStep) -> None:
        """Restart slurmctld by a new pod; its state is on a claim."""
        for pod in self._clusters.slurmctld_pods(controller):
            if pod.metadata.deleting:
                continue
            name = pod.metadata.name
            if decision.recreate:
                note = f"Recreating pod {name}: {decision.recreate}"
            else:
                named = ", ".join(str(one) for one in decision.plan.items) or "its configuration"
                note = f"{name} is made anew: slurmctld has to restart for {named}"
            await self._restarter.restart(controller, events, pod, note)

    def requeue_after(self, controller: Controller, stage: Stage) -> float | None:
        """Seconds until the answer is looked for again; None when nothing is waited for."""
        if stage in {Stage.REJECTED, Stage.ROLLED_BACK}:
            return 30.0
        if stage not in {Stage.TRYING, Stage.DELIVERING, Stage.RETURNING, Stage.STARTING}:
            return None
        waited = self._waited(controller)
        return 0.1 if waited < 10.0 else 1.0 if waited < 60.0 else 10.0

    def note(
        self, controller: Controller, decision: ConfigStep, wanted: str, *, asked: bool
    ) -> None:
        """Remember since when this step is waited for; `asked` is for a reconfigure by hand."""
        what = (decision.stage, wanted)
        state, now = self._states.of(controller), self._client.clock.monotonic()
        if state.wait is None or state.wait.what != what:
            state.wait = _Wait(what, now)
        if decision.reloads or asked:
            state.reads_since = now if state.reads_since is None else state.reads_since
        else:
            state.reads_since = None

    def reads(self, controller: Controller) -> bool:
        """Whether slurmctld may be about to read its files, and forget what it is told now."""
        since = self._states.of(controller).reads_since
        return since is not None and self._client.clock.monotonic() - since < READS_S

    def _waited(self, controller: Controller) -> float:
        wait = self._states.of(controller).wait
        return self._client.clock.monotonic() - wait.since if wait else 0.0

    def _version(self, cluster: ClusterInputs, name: str) -> Version | None:
        """What one of our ConfigMaps holds, unless somebody else wrote it."""
        found = self._caches.config_map(f"{cluster.namespace}/{name}")
        if found is None or found.metadata.deleting or found.binary_data:
            return None
        data = found.data or {}
        mark = found.metadata.annotations.get(own_marks.CONTENT_HASH)
        if mark is not None and mark != content_hash(data):
            return None
        return Version(data, content_hash(mounted(cluster, data)), own_hash(cluster, data))

    def _refused(self, cluster: ClusterInputs, name: str) -> dict[str, str]:
        """The verdict that a ConfigMap of ours carries."""
        found = self._caches.config_map(f"{cluster.namespace}/{name}")
        if found is None or found.metadata.deleting:
            return {}
        return rejections_in(found.metadata.annotations)

    async def _acks(
        self, controller: Controller, pod: Pod | None
    ) -> tuple[Acknowledgements | None, str]:
        """What the reconfigure container of slurmctld's pod said, or why that is not known."""
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
            if acks.active in ("", controller.status.effective_config_hash):
                self._note_release(controller, pod, acks)
                return acks, ""
            # A log is asked for by name. What a pod says that came since counts for that one only.
            live = await self._client.get(PODS, space, name)
        except KubeError as error:
            return None, unreadable(pod, RECONFIGURE, error)
        if live.metadata.uid != pod.metadata.uid:
            return None, f"{name} was replaced just now"
        self._note_release(controller, pod, acks)
        return acks, ""

    def _start(
        self, controller: Controller, pod: Pod | None, real: Version | None, *, serves: bool
    ) -> StartResult:
        """How slurmctld comes up with the real files, if it does not serve yet."""
        state, found = self._states.of(controller), StartResult()
        if real is not None and not serves:
            node = self._caches.nodes.get(pod.spec.node_name or "") if pod else None
            now = self._client.clock.monotonic()
            found = observe(state.start, pod, real.hash, node_ready=_is_ready(node), now=now)
        state.start = found.start
        return found

    def _refresh(self, controller: Controller, decision: ConfigStep, wanted: str) -> str:
        """Another mark for the kubelet, when it may have missed the change; else nothing.

        It looks at a ConfigMap through a watch of its own, which the pod's change may overtake.
        """
        wait = self._states.of(controller).wait
        if wait is None or wait.what != (decision.stage, wanted):
            return ""
        if decision.stage not in {Stage.TRYING, Stage.DELIVERING}:
            return ""
        if self._waited(controller) < REFRESH_S * 3**wait.refreshed:
            return ""
        wait.refreshed += 1
        return f"{wanted[:12]}-{wait.refreshed}"


def refused_before(status: ControllerStatus, wanted: str) -> str:
    """Slurmctld's words if the status says that it refused this very configuration."""
    return status.last_error if status.config_hash == wanted else ""


def unreadable(pod: Pod, container: str, error: KubeError) -> str:
    """Why a container's log cannot be read, and what has to be done about it."""
    told = f"the log of container {container} of {pod.metadata.name} cannot be read: {error}"
    if isinstance(error, ForbiddenError):
        return f"{told}. Allow the operator's service account to get pods/log"
    return f"{told}. The kubelet of Kubernetes node {pod.spec.node_name} has to answer"


def _is_ready(node: Node | None) -> bool:
    conditions = (node.status.conditions or ()) if node else ()
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
