"""Backups of slurmctld: labels the active one, gives control back, recreates standbys."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.api.cluster.labels import TRUE
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import CLAIMS, PODS, Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, MOST_BACKUPS, Controller
from penstock.api.slinky.labels import CONTROLLER_ACTIVE
from penstock.catalog.event import Event
from penstock.catalog.reasons.pods import PodReason
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.cluster import backups
from penstock.kube import ForbiddenError, NotFoundError
from penstock.render.config.content import content_hash
from penstock.render.slinky.config.config_maps import mounted
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.rest.errors import SlurmError
from penstock.translate.slinky.cluster import MARKS

SHARED = "ReadWriteMany"
PACE_S = 5.0
"""Seconds between two queries of slurmrestd about which of them answer."""
HANDOVER_PACE_S = 600.0
"""Seconds between two times that control is given back: a primary may end at each start."""


@dataclass(slots=True)
class _State:
    polled_at: float = float("-inf")
    """When the cluster was polled last (monotonic seconds)."""
    handed_over_at: float = float("-inf")
    """When control was given back last (monotonic seconds)."""
    silent: str = ""
    """UID of the primary's pod while it does not answer and a backup does."""
    silent_since: float = 0.0
    """Since when (monotonic seconds)."""

    def silent_s(self, pod: Pod, now: float) -> float:
        """Return for how many seconds this pod of the primary has not answered."""
        return now - self.silent_since if pod.metadata.uid == self.silent else 0.0

    def note(self, primary: Pod | None, answering: Mapping[str, bool] | None, now: float) -> None:
        """Take up which of them answer."""
        known = answering or {}
        if primary is None or known.get(primary.metadata.name) or not any(known.values()):
            self.silent = ""
        elif primary.metadata.uid != self.silent:
            self.silent, self.silent_since = primary.metadata.uid, now


class Backups:
    """Labels and replaces the pods of a Controller with backups."""

    def __init__(self, context: SlinkyContext, connections: SlurmConnections) -> None:
        self._client = context.client
        self._clusters = context.clusters
        self._connections = connections
        self._objects = context.objects
        self._restarter = PodRestarter(context.client)
        self._states = context.states(CONTROLLERS, _State)

    def requeue_after(self, controller: Controller) -> float | None:
        """Return the seconds until slurmrestd is queried again; None without backups."""
        return PACE_S if controller.spec.replicas > 1 and not controller.spec.external else None

    async def reconcile(
        self, controller: Controller, cluster: ClusterInputs, events: Events
    ) -> None:
        """Label the active slurmctld, record the configuration of each, replace outdated standbys.

        Gives control back to the primary. Raises KubeError.
        """
        state, now = self._states.of(controller), self._client.clock.monotonic()
        if now - state.polled_at >= PACE_S:
            state.polled_at = now
            await self._label(controller, events, state)
        if await self._hand_over(controller, events, state):
            return
        pods, data = (
            self._clusters.slurmctld_pods(controller),
            self._clusters.real_config(controller),
        )
        if data is not None:
            # Before another configuration is written: the pods started with the present one.
            had = content_hash(mounted(cluster, data))
            for pod in backups.unmarked(pods):
                await self._restarter.annotate(pod, had)
        status = controller.status
        hash_, since = status.effective_config_hash, status.config_since
        stale = backups.outdated(MARKS, pods, hash_, since, self._client.clock.time())
        for pod in stale[:1]:
            note = f"Recreating pod {pod.metadata.name}: a standby reads files only at start"
            await self._restarter.restart(controller, events, pod, note)

    async def retire(self, controller: Controller, events: Events) -> None:
        """Delete the Services of removed slurmctlds.

        Only once no active slurm.conf names them: a name that does not resolve delays each command
        by seconds.
        """
        replicas = controller.spec.replicas
        kept = replicas if replicas > 1 and not controller.spec.external else 0
        for number in range(kept, MOST_BACKUPS + 1):
            name = names.controller_pod(controller, number)
            await self._objects.remove(controller, events, "Service", name)

    async def only(self, controller: Controller) -> None:
        """Label the only slurmctld if its template lacks the label of the Service's selector."""
        if controller.spec.replicas != 1:
            return
        labels = {CONTROLLER_ACTIVE: TRUE}
        for pod in self._clusters.slurmctld_pods(controller):
            meta = pod.metadata
            if meta.deleting or labels.items() <= meta.labels.items():
                continue
            body = {"metadata": {"uid": meta.uid, "labels": labels}}
            with contextlib.suppress(NotFoundError):
                await self._client.patch(PODS, meta.namespace, meta.name, body)

    async def check_pvc(self, controller: Controller) -> list[Finding]:
        """Return a finding if the PVC with slurmctld's state cannot be mounted by all backups."""
        persistence = controller.spec.persistence
        name = persistence.existing_claim if persistence is not None else ""
        try:
            found = await self._client.get(CLAIMS, controller.metadata.namespace, name)
        except (NotFoundError, ForbiddenError):
            # The pods report a PVC that does not exist. Without the right to read it go on.
            return []
        modes: list[str] = found.spec.get("accessModes") or []
        if SHARED in modes:
            return []
        message = (
            f"spec.persistence.existingClaim: PVC {name} is {', '.join(modes)}. slurmctld and "
            f"its backups share their state: name one that is {SHARED}"
        )
        return [Finding(False, PodReason.CLAIM_NOT_SHARED, message)]

    async def _hand_over(self, controller: Controller, events: Events, state: _State) -> bool:
        """Delete the pod that must end before the primary starts; return whether one was."""
        primary, others = _split(controller, self._clusters.slurmctld_pods(controller))
        first = names.controller_pod(controller)
        now = self._client.clock.monotonic()
        may = now - state.handed_over_at >= HANDOVER_PACE_S
        if may and (ending := backups.to_end(MARKS, primary, others)) is not None:
            note = f"Recreating pod {ending.metadata.name}: {first} takes control back from it"
            await self._restarter.restart(controller, events, ending, note)
            state.handed_over_at = now
            if primary is not None:
                # The Service leads nowhere else meanwhile.
                await self._write(primary, TRUE)
            return True
        if primary is None:
            return False
        silent_s = state.silent_s(primary, now)
        conf = self._clusters.slurm_conf(controller)
        if not backups.has_lost_control(MARKS, primary, others, silent_s, conf):
            return False
        note = f"Recreating pod {first}: its slurmctld has lost control"
        await self._restarter.restart(controller, events, primary, note, within_s=backups.END_S)
        return True

    async def _label(self, controller: Controller, events: Events, state: _State) -> None:
        pods = sorted(
            self._clusters.slurmctld_pods(controller), key=lambda pod: _ordinal(controller, pod)
        )
        answering = await self._answering(controller)
        primary, _ = _split(controller, pods)
        state.note(primary, answering, self._client.clock.monotonic())
        wanted = backups.active(MARKS, pods, answering)
        if wanted is None:
            return
        # First the new one, so that the Service always has an endpoint.
        for pod in sorted(pods, key=lambda pod: pod.metadata.name != wanted):
            right = pod.metadata.name == wanted
            if right == backups.is_active(MARKS, pod) or pod.metadata.deleting:
                continue
            await self._write(pod, TRUE if right else None)
            if right:
                note = f"{wanted} has the active slurmctld"
                events.normal(controller, Event.SLURMCTLD_ACTIVE, note, "Observe")

    async def _answering(self, controller: Controller) -> Mapping[str, bool] | None:
        link = self._connections.get(controller.metadata.key)
        if link is None or link.client is None:
            return None
        try:
            return {one.hostname: one.up for one in await link.client.ping()}
        except SlurmError:
            return None

    async def _write(self, pod: Pod, value: str | None) -> None:
        meta = pod.metadata
        body: Json = {"metadata": {"uid": meta.uid, "labels": {CONTROLLER_ACTIVE: value}}}
        with contextlib.suppress(NotFoundError):
            await self._client.patch(PODS, meta.namespace, meta.name, body)


def _split(controller: Controller, pods: Sequence[Pod]) -> tuple[Pod | None, list[Pod]]:
    """The primary's pod, and those of the backups."""
    first = names.controller_pod(controller)
    primary = next((pod for pod in pods if pod.metadata.name == first), None)
    return primary, [pod for pod in pods if pod is not primary]


def _ordinal(controller: Controller, pod: Pod) -> int:
    every = [names.controller_pod(controller, one) for one in range(controller.spec.replicas)]
    return every.index(pod.metadata.name)
