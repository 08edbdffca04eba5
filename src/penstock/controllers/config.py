"""The configuration of one cluster on its way to slurmctld: what is seen, the next step done."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.api.core import PODS, Node, Pod
from penstock.api.slinky import names, wellknown
from penstock.api.slinky.controller import Controller, ControllerStatus
from penstock.controllers.anew import Anew
from penstock.controllers.loop import Tools
from penstock.controllers.report import Events
from penstock.decide import config_checks
from penstock.decide.config_acks import Acks, read
from penstock.decide.config_transaction import (
    ConfigView,
    Decision,
    Stage,
    Version,
    decide,
    settled,
)
from penstock.kube import KubeError, NotFoundError
from penstock.render import controller as render
from penstock.render.config import config_hash, content_hash, files, mounted
from penstock.render.context import Cluster

LINES = 200
"""Of the reconfigure container's log: more than it says of one change."""
DEAF_S = 120.0
"""For so long an answer is waited for, while slurmctld and its machine work."""
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
    deaf_since: float | None = None


class Configuration:
    """Looks at the configuration of a Controller and does what was decided."""

    def __init__(self, tools: Tools) -> None:
        self._client = tools.client
        self._world = tools.world
        self._anew = Anew(tools.client)
        self._waits: dict[str, _Wait] = {}
        self._reads: dict[str, float] = {}
        """Since when slurmctld is about to read its files (monotonic seconds)."""

    async def look(
        self,
        controller: Controller,
        cluster: Cluster,
        *,
        worked: bool,
        serves: bool,
        ask: bool,
        live: bool,
        held: bool = False,
    ) -> tuple[ConfigView, Decision]:
        """What there is, and the next step.

        Asks the reconfigure container if that is needed for it, or if it is to `ask`. `live` says
        that slurmctld was told all that differs from the real one already, `held` that its pod is
        still as another operator made it.
        """
        pod = next(iter(self._world.slurmctld_pods(controller)), None)
        data = files(cluster)
        marks = pod.metadata.annotations if pod and not pod.metadata.deleting else None
        view = ConfigView(
            wanted=Version(data, config_hash(cluster)),
            real=self._version(cluster, names.config_map(controller)),
            alias=self._version(cluster, names.config_map_alias(controller)),
            worked=worked,
            serves=serves,
            speaks=render.tries_configuration(cluster),
            effective=controller.status.effective_config_hash,
            marks=marks,
            persistent=controller.spec.persistent,
            applied_live=live,
            held=held,
        )
        if (ask or not settled(view)) and view.speaks and not held and (worked or serves):
            acks, why = await self._acks(pod)
            deaf = self._deaf(controller, pod, waits=serves and acks is None)
            if acks is None and (words := refused_before(controller.status, view.wanted.hash)):
                # Not hearing it any more does not undo a refusal.
                acks = Acks(tried={view.wanted.hash: words})
            elif deaf:
                view = replace(view, speaks=False)
            view = replace(view, acks=acks, why=why)
        return view, decide(view)

    async def mark(
        self, controller: Controller, events: Events, view: ConfigView, decision: Decision
    ) -> None:
        """Annotate slurmctld's pod, upon which the kubelet refreshes its files at once.

        Standbys are told nothing: they get new pods instead.
        """
        refresh = self._refresh(controller, decision, view.wanted.hash)
        for pod in self._world.slurmctld_pods(controller)[:1]:
            meta = pod.metadata
            if meta.deleting:
                continue
            old = meta.annotations
            patch = {
                key: value or None
                for key, value in decision.marks.items()
                if old.get(key, "") != value
            }
            handed = patch.get(wellknown.CONFIG_HASH)
            if refresh and not patch:
                patch[wellknown.CONFIG_REFRESH] = refresh
            if not patch:
                continue
            body = {"metadata": {"uid": meta.uid, "annotations": patch}}
            try:
                await self._client.patch(PODS, meta.namespace, meta.name, body)
            except NotFoundError:
                continue
            if handed == view.wanted.hash and wellknown.CONFIG_HASH in old:
                note = config_checks.step(
                    decision,
                    meta.name,
                    live=old.get(wellknown.CONFIG_LIVE) == view.wanted.hash,
                    persistent=view.persistent,
                )
                told = f"Configuration {view.wanted.hash[:12]}: {note}"
                events.normal(controller, "ConfigDelivered", told, "Configure")

    async def restart(self, controller: Controller, events: Events, decision: Decision) -> None:
        """Restart slurmctld by a new pod; its state is on a claim."""
        for pod in self._world.slurmctld_pods(controller):
            if not pod.metadata.deleting:
                named = ", ".join(str(one) for one in decision.plan.items) or "its configuration"
                note = f"{pod.metadata.name} is made anew: slurmctld has to restart for {named}"
                await self._anew.make(controller, events, pod, note)

    def again(self, key: str, stage: Stage) -> float | None:
        """Seconds until the answer is looked for again; None when nothing is waited for."""
        if stage in {Stage.REFUSED, Stage.UNDONE}:
            return 30.0
        if stage not in {Stage.TRYING, Stage.DELIVERING, Stage.STARTING}:
            return None
        waited = self._waited(key)
        return 0.1 if waited < 10.0 else 1.0 if waited < 60.0 else 10.0

    def note(self, key: str, decision: Decision, wanted: str, *, asked: bool) -> None:
        """Remember since when this step is waited for; `asked` is for a reconfigure by hand."""
        what = (decision.stage, wanted)
        wait = self._waits.get(key)
        now = self._client.clock.monotonic()
        if wait is None or wait.what != what:
            deaf = wait.deaf_since if wait else None
            self._waits[key] = _Wait(what, now, deaf_since=deaf)
        if decision.reads or asked:
            self._reads.setdefault(key, now)
        else:
            self._reads.pop(key, None)

    def forget(self, key: str) -> None:
        """Drop how long a Controller that is gone was waited for."""
        self._waits.pop(key, None)
        self._reads.pop(key, None)

    def reads(self, key: str) -> bool:
        """Whether slurmctld may be about to read its files, and forget what it is told now."""
        since = self._reads.get(key)
        return since is not None and self._client.clock.monotonic() - since < READS_S

    def _waited(self, key: str) -> float:
        wait = self._waits.get(key)
        return self._client.clock.monotonic() - wait.since if wait else 0.0

    def _version(self, cluster: Cluster, name: str) -> Version | None:
        """What one of our ConfigMaps holds, unless somebody else wrote it."""
        found = self._world.config_map(f"{cluster.namespace}/{name}")
        if found is None or found.metadata.deleting or found.binary_data:
            return None
        data = found.data or {}
        mark = found.metadata.annotations.get(wellknown.CONTENT_HASH)
        if mark is not None and mark != content_hash(data):
            return None
        return Version(data, content_hash(mounted(cluster, data)))

    async def _acks(self, pod: Pod | None) -> tuple[Acks | None, str]:
        """What the reconfigure container of slurmctld's pod said, or why that is not known."""
        if pod is None or pod.metadata.deleting:
            return None, "slurmctld's pod is not there"
        name = pod.metadata.name
        if wellknown.TRIES_CONFIG not in pod.metadata.annotations:
            return None, f"{name} is of an older version and is to be replaced"
        every = pod.status.init_container_statuses or ()
        if not any(one.name == RECONFIGURE and one.state.running for one in every):
            return None, f"container {RECONFIGURE} of {name} does not run"
        try:
            log = await self._client.log(pod.metadata.namespace, name, RECONFIGURE, LINES)
        except KubeError as error:
            return None, f"the log of container {RECONFIGURE} of {name} cannot be read: {error}"
        return read(log), ""

    def _deaf(self, controller: Controller, pod: Pod | None, *, waits: bool) -> bool:
        """Whether answers stay away, for long, though slurmctld and its machine work."""
        key, now = controller.metadata.key, self._client.clock.monotonic()
        wait = self._waits.setdefault(key, _Wait((Stage.STARTING, ""), now))
        node = self._world.nodes.get(pod.spec.node_name or "") if pod else None
        if not waits or not _is_ready(node):
            wait.deaf_since = None
            return False
        if wait.deaf_since is None:
            wait.deaf_since = now
        return now - wait.deaf_since > DEAF_S

    def _refresh(self, controller: Controller, decision: Decision, wanted: str) -> str:
        """Another mark for the kubelet, when it may have missed the change; else nothing.

        It looks at a ConfigMap through a watch of its own, which the pod's change may overtake.
        """
        wait = self._waits.get(controller.metadata.key)
        if wait is None or wait.what != (decision.stage, wanted):
            return ""
        if decision.stage not in {Stage.TRYING, Stage.DELIVERING}:
            return ""
        if self._waited(controller.metadata.key) < REFRESH_S * 3**wait.refreshed:
            return ""
        wait.refreshed += 1
        return f"{wanted[:12]}-{wait.refreshed}"


def refused_before(status: ControllerStatus, wanted: str) -> str:
    """Slurmctld's words if the status says that it refused this very configuration."""
    return status.last_error if status.config_hash == wanted else ""


def _is_ready(node: Node | None) -> bool:
    conditions = (node.status.conditions or ()) if node else ()
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
