"""Key rotation: brings a changed slurm.key to all daemons without losing a job or a slurmd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import SECRETS
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.keys import KeyReason
from penstock.controllers.auth.key_source import KeySource
from penstock.controllers.runtime.concurrency import gather
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.auth.key_rotation import RotationView, Step, step
from penstock.kube import NotFoundError
from penstock.render.parts.key_secret import ring_secret
from penstock.slurm.auth.key_rotation import Phase, Ring, named

K = TypeVar("K", bound=KubeObject)

ROTATION = ConditionType.KEYS_IN_USE
_PROGRESS = {
    Phase.LEARN: "slurmctld and workers learn it",
    Phase.CLIENTS: "slurmdbd and logins begin with it",
    Phase.SWITCH: "slurmctld and workers sign with it",
    Phase.FORGET: "the former key becomes invalid",
}


@dataclass(slots=True)
class _State:
    is_moving: bool = False


class KeyRotation(Generic[K]):
    """Writes the key rings of all clusters of one kind, one step of the rotation at a time."""

    def __init__(self, context: Context, resource: Resource[Any], source: KeySource[K]) -> None:
        self._context = context
        self._caches = context.caches
        self._secrets = context.secrets
        self._source = source
        self._restarter = PodRestarter(context.client)
        self._states = context.states(resource, _State)

    async def advance(self, obj: K, events: Events) -> list[Finding]:
        """Do the next step if one is due, and return the condition. Raises KubeError."""
        state, space = self._states.of(obj), obj.metadata.namespace
        state.is_moving = False
        ref = self._source.key(obj)
        wanted = self._secrets.value(space, ref) if ref is not None else None
        if wanted is None:
            return []
        name = self._source.ring_name(obj)
        ring = self._secrets.ring(f"{space}/{name}")
        if ring is None:
            if self._caches.secrets.get(f"{space}/{name}") is None:
                first, labels = self._source.first_ring(obj, wanted), self._source.labels(obj)
                manifest = ring_secret(obj, name, first, labels)
                await self._context.objects.create_secret(obj, events, manifest)
                return []
            message = (
                f"Secret {name} is no key ring, so a changed "
                "slurm.key has no effect. Delete the Secret"
            )
            return [Finding(False, KeyReason.RING_UNREADABLE, message)]
        found = step(ring, await self._view(obj, ring, wanted))
        if found.ring != ring:
            state.is_moving = True
            await self._write(obj, found.ring)
            self._emit(obj, events, ring, found)
            # The next reconcile follows when the watch shows the write.
            return self._findings(found.ring, found)
        if ring.phase is not Phase.SETTLED:
            state.is_moving = True
            await self._show(obj, ring)
        return self._findings(ring, found)

    def requeue_after(self, obj: K) -> float | None:
        """Soon while a key is on its way."""
        return 1.0 if self._states.of(obj).is_moving else None

    def _findings(self, ring: Ring, found: Step) -> list[Finding]:
        if ring.phase is Phase.SETTLED and not found.words:
            return [Finding(True, KeyReason.IN_USE, type=ROTATION)] if ring.used else []
        if ring.phase is Phase.SETTLED:
            return [Finding(False, KeyReason.REFUSED, found.words, type=ROTATION)]
        message = f"slurm.key was changed: {_PROGRESS[ring.phase]}; {found.words}"
        return [Finding(False if found.stuck else None, KeyReason.CHANGING, message, type=ROTATION)]

    def _emit(self, obj: K, events: Events, old: Ring, found: Step) -> None:
        new = found.ring
        if found.taken_back:
            note = f"slurm.key: {found.words}; both keys stay valid, and it is tried again"
            events.warning(obj, Event.KEY_STEP_TAKEN_BACK, note, "Rotate")
        elif new.phase is Phase.SETTLED:
            events.normal(
                obj,
                Event.KEY_CHANGED,
                "slurm.key was changed: only the new key is valid now",
                "Rotate",
            )
        elif new.phase is not old.phase:
            note = f"slurm.key was changed: {_PROGRESS[new.phase]}"
            events.normal(obj, Event.KEY_CHANGING, note, "Rotate")

    async def _write(self, obj: K, ring: Ring) -> None:
        name = self._source.ring_name(obj)
        secret = self._caches.secrets.get(f"{obj.metadata.namespace}/{name}")
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

    async def _show(self, obj: K, ring: Ring) -> None:
        """Annotate pods, which has kubelets refresh their files at once."""
        mark = f"{ring.phase.value}-{named(ring.next)}-{ring.turn}-{ring.tries}"
        every = [
            (pod, f"{mark}.{number}" if number else mark)
            for pod, number in self._source.marked(obj, ring)
        ]
        due = [
            (pod, wanted)
            for pod, wanted in every
            if not pod.metadata.deleting and pod.metadata.annotations.get(marks.KEYS) != wanted
        ]
        await gather(self._restarter.annotate(*one, marks.KEYS) for one in due)

    async def _view(self, obj: K, ring: Ring, wanted: bytes) -> RotationView:
        if ring.phase is Phase.SETTLED:
            return RotationView(self._context.client.clock.time(), wanted)
        return await self._source.view(obj, ring, wanted)
