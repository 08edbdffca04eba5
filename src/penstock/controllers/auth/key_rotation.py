"""Key rotation: brings a changed slurm.key to all daemons without losing a job or a slurmd."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import SECRETS, Pod
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.keys import KeyReason
from penstock.controllers.observed.references import sharing_key
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.decide.auth.key_rotation import RotationView, Step, step
from penstock.decide.observed.pod import slurm_node_name, slurmd_container, slurmd_started_at
from penstock.kube import NotFoundError
from penstock.render.parts.key_secret import ring_secret
from penstock.render.slinky.config.config_maps import config_hash
from penstock.slurm.auth.key_rotation import Phase, Ring, named
from penstock.slurm.known import Unknown

ROTATION = ConditionType.KEYS_IN_USE
AT_ONCE = 32
"""Pods that are annotated at the same time."""
_PROGRESS = {
    Phase.LEARN: "slurmctld and workers learn it",
    Phase.CLIENTS: "slurmdbd and logins begin with it",
    Phase.SWITCH: "slurmctld and workers sign with it",
    Phase.FORGET: "the former key becomes invalid",
}


@dataclass(slots=True)
class _State:
    is_moving: bool = False


class KeyRotation:
    """Writes the key rings of all clusters, one step of the rotation at a time."""

    def __init__(self, context: SlinkyContext, connections: SlurmConnections) -> None:
        self._context = context
        self._caches = context.caches
        self._clusters = context.clusters
        self._secrets = context.secrets
        self._connections = connections
        self._restarter = PodRestarter(context.client)
        self._states = context.states(CONTROLLERS, _State)

    async def advance(self, controller: Controller, events: Events) -> list[Finding]:
        """Do the next step if one is due, and return the condition. Raises KubeError."""
        state, space = self._states.of(controller), controller.metadata.namespace
        state.is_moving = False
        ref = names.slurm_key_ref(controller)
        wanted = self._secrets.value(space, ref)
        if wanted is None or controller.spec.munge_key_ref is not None:
            return []
        name = names.key_ring(controller)
        ring = self._clusters.ring(controller)
        if ring is None:
            if self._caches.secrets.get(f"{space}/{name}") is None:
                origin = self._secrets.hash(space, ref)
                manifest = ring_secret(controller, name, Ring(wanted, origin, origin))
                await self._context.objects.create_secret(controller, events, manifest)
                return []
            message = (
                f"Secret {name} is no key ring, so a changed "
                "slurm.key has no effect. Delete the Secret"
            )
            return [Finding(False, KeyReason.RING_UNREADABLE, message)]
        found = step(ring, self._view(controller, ring, wanted))
        if found.ring != ring:
            state.is_moving = True
            await self._write(controller, found.ring)
            self._emit(controller, events, ring, found)
            # The next reconcile follows when the watch shows the write.
            return self._findings(found.ring, found)
        if ring.phase is not Phase.SETTLED:
            state.is_moving = True
            await self._show(controller, ring)
        return self._findings(ring, found)

    def requeue_after(self, controller: Controller) -> float | None:
        """Soon while a key is on its way."""
        return 1.0 if self._states.of(controller).is_moving else None

    def _findings(self, ring: Ring, found: Step) -> list[Finding]:
        if ring.phase is Phase.SETTLED and not found.words:
            return [Finding(True, KeyReason.IN_USE, type=ROTATION)] if ring.used else []
        if ring.phase is Phase.SETTLED:
            return [Finding(False, KeyReason.REFUSED, found.words, type=ROTATION)]
        message = f"slurm.key was changed: {_PROGRESS[ring.phase]}; {found.words}"
        return [Finding(False if found.stuck else None, KeyReason.CHANGING, message, type=ROTATION)]

    def _emit(self, controller: Controller, events: Events, old: Ring, found: Step) -> None:
        new = found.ring
        if found.taken_back:
            note = f"slurm.key: {found.words}; both keys stay valid, and it is tried again"
            events.warning(controller, Event.KEY_STEP_TAKEN_BACK, note, "Rotate")
        elif new.phase is Phase.SETTLED:
            events.normal(
                controller,
                Event.KEY_CHANGED,
                "slurm.key was changed: only the new key is valid now",
                "Rotate",
            )
        elif new.phase is not old.phase:
            note = f"slurm.key was changed: {_PROGRESS[new.phase]}"
            events.normal(controller, Event.KEY_CHANGING, note, "Rotate")

    async def _write(self, controller: Controller, ring: Ring) -> None:
        name = names.key_ring(controller)
        secret = self._caches.secrets.get(f"{controller.metadata.namespace}/{name}")
        if secret is None:
            return
        meta = secret.metadata
        gone = {key: None for key in secret.data or {} if key not in ring.data}
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "data": ring.data | gone,
        }
        try:
            await self._context.client.patch(SECRETS, meta.namespace, name, body)
        except NotFoundError:
            return

    async def _show(self, controller: Controller, ring: Ring) -> None:
        """Annotate the workers, which has kubelets refresh their files at once."""
        if ring.phase is Phase.CLIENTS:
            return
        mark = f"{ring.phase.value}-{named(ring.next)}-{ring.turn}-{ring.tries}"
        due = [
            pod
            for pod in self._workers(controller)
            if not pod.metadata.deleting and pod.metadata.annotations.get(marks.KEYS) != mark
        ]
        for start in range(0, len(due), AT_ONCE):
            some = due[start : start + AT_ONCE]
            await asyncio.gather(*(self._restarter.annotate(pod, mark, marks.KEYS) for pod in some))

    def _view(self, controller: Controller, ring: Ring, wanted: bytes) -> RotationView:
        now = self._context.client.clock.time()
        if ring.phase is Phase.SETTLED:
            return RotationView(now, wanted)
        cluster = self._clusters.declared(controller)
        return RotationView(
            now,
            wanted,
            applied=controller.status.effective_config_hash == config_hash(cluster),
            unable=self._unable(controller),
            starts=self._starts(controller),
            waiting=self._waiting(controller, ring),
        )

    def _workers(self, controller: Controller) -> Iterable[Pod]:
        for nodeset in self._caches.nodesets_of.get(controller.metadata.key):
            yield from self._caches.workers_of(nodeset)

    def _unable(self, controller: Controller) -> list[str]:
        every = [*self._clusters.slurmctld_pods(controller), *self._workers(controller)]
        return [
            pod.metadata.name
            for pod in every
            if not pod.metadata.deleting and marks.KEY_RING not in pod.metadata.annotations
        ]

    def _starts(self, controller: Controller) -> dict[str, int] | None:
        running = [pod for pod in self._workers(controller) if _runs(pod)]
        if not running:
            # No need to ask Slurm: the mirror rarely accepts a list without any node.
            return {}
        link = self._connections.get(controller.metadata.key)
        nodes = link.mirror.snapshot.nodes if link is not None else Unknown("")
        if isinstance(nodes, Unknown):
            return None
        found: dict[str, int] = {}
        for pod in running:
            node = nodes.value.get(slurm_node_name(pod))
            began = slurmd_started_at(pod)
            if node is None and pod.ready and began is not None:
                # slurmctld notifies only nodes that it has. This one registers again with the keys.
                found[slurm_node_name(pod)] = int(began)
                continue
            if node is None or "DOWN" in node.state:
                # It reads its keys when it starts.
                continue
            if node.slurmd_start_time:
                found[node.name] = node.slurmd_start_time
        return found

    def _waiting(self, controller: Controller, ring: Ring) -> list[str]:
        if ring.phase is not Phase.CLIENTS:
            return []
        space, key = controller.metadata.namespace, controller.metadata.key
        workloads = [("login", one.metadata.name) for one in self._caches.loginsets_of.get(key)]
        accounting = self._clusters.declared(controller).accounting
        if accounting is not None and controller in sharing_key(accounting, self._caches.store):
            workloads.append(("slurmdbd", accounting.metadata.name))
        return [
            pod.metadata.name
            for component, instance in workloads
            for pod in self._caches.pods_labelled(space, component, instance)
            if not pod.metadata.deleting
            if pod.metadata.annotations.get(slinky_labels.SLURM_KEY_HASH) != ring.clients
            or not pod.ready
        ]


def _runs(pod: Pod) -> bool:
    """Whether its slurmd has read its keys: one that starts reads those that are there then."""
    slurmd = slurmd_container(pod)
    return slurmd is not None and slurmd.state.running is not None and not pod.metadata.deleting
