"""Rotation of a munge key: gives the changed key to all pods of a cluster at one time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Condition, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.base import times
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.keys import KeyReason
from penstock.controllers.runtime.concurrency import gather
from penstock.controllers.runtime.pod_restarter import PodRestarter
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.auth.key_length import MUNGE_SHORTEST
from penstock.decide.auth.munge_rotation import MungePod, MungeStep, MungeView, shows, step
from penstock.kube import KubeError
from penstock.slurm.auth.key_rotation import named

ROTATION: Final = ConditionType.KEYS_IN_USE
AT_ONCE: Final = 64
"""Requests about pods at the same time."""
LINES: Final = 200
"""Lines of munged's log to read: it logs each message of the former key that it rejects."""
READ_S: Final = 1.0
"""Seconds between two reads of the logs of those that lack the key."""
_CONTAINER: Final = "munge"


@dataclass(slots=True)
class _State:
    is_moving: bool = False
    read_at: float = 0.0
    with_key: dict[str, str] = field(default_factory=dict[str, str])
    """By uid of a pod the digest of the key that its log has shown."""


class MungeRotation:
    """Follows the munge keys of all clusters of one kind."""

    def __init__(self, context: Context, resource: Resource[Any]) -> None:
        self._client = context.client
        self._restarter = PodRestarter(context.client)
        self._states = context.states(resource, _State)

    async def advance(
        self,
        obj: KubeObject,
        before: tuple[Condition, ...],
        key: bytes | None,
        pods: Sequence[Pod],
        slurmctld: Sequence[Pod],
        events: Events,
    ) -> list[Finding]:
        """Do the next step, and return the condition. `before` are the object's. Raises KubeError.

        A key that munged rejects is reported elsewhere, and the sidecars keep the former one.
        """
        state = self._states.of(obj)
        state.is_moving = False
        if key is None or len(key) < MUNGE_SHORTEST:
            return []
        digest, own = named(key), {pod.metadata.uid for pod in slurmctld}
        every = {
            pod.metadata.name: pod
            for pod in (*pods, *slurmctld)
            if not pod.metadata.deleting and _has_munge(pod)
        }
        shown = find(before, ROTATION)
        since = None
        if shown is not None and shown.status != "True":
            since = times.parse(shown.last_transition_time) or 0.0
            await self._read(state, digest, list(every.values()))

        def observed(pod: Pod) -> MungePod:
            meta = pod.metadata
            return MungePod(
                meta.name,
                meta.annotations.get(marks.KEYS, ""),
                is_slurmctld=meta.uid in own,
                runs=pod.ready,
                has_key=state.with_key.get(meta.uid) == digest,
            )

        now = self._client.clock.time()
        was_stuck = shown is not None and shown.status == "False"
        view = MungeView(now, digest, [observed(pod) for pod in every.values()], since, was_stuck)
        found = step(view)
        await self._mark(found, every)
        state.is_moving = bool(found.words)
        _emit(obj, events, found)
        return _findings(found, shown)

    def requeue_after(self, obj: KubeObject) -> float | None:
        """Soon while a key is on its way."""
        return READ_S if self._states.of(obj).is_moving else None

    async def _read(self, state: _State, digest: str, pods: Sequence[Pod]) -> None:
        """Read the logs of those that have not shown the key."""
        uids = {pod.metadata.uid for pod in pods}
        state.with_key = {uid: one for uid, one in state.with_key.items() if uid in uids}
        due = [pod for pod in pods if pod.ready and state.with_key.get(pod.metadata.uid) != digest]
        now = self._client.clock.monotonic()
        if not due or now - state.read_at < READ_S / 2:
            return
        state.read_at = now

        async def read(pod: Pod) -> None:
            meta = pod.metadata
            try:
                log = await self._client.log(meta.namespace, meta.name, _CONTAINER, LINES)
            except KubeError:
                return
            if shows(log, digest):
                state.with_key[meta.uid] = digest

        await gather((read(pod) for pod in due), AT_ONCE)

    async def _mark(self, found: MungeStep, pods: dict[str, Pod]) -> None:
        """Annotate all but the last at the same time, then the last, which is slurmctld's."""

        async def annotate(name: str, mark: str) -> None:
            await self._restarter.annotate(pods[name], mark, marks.KEYS)

        *others, last = found.marks or [("", "")]
        await gather((annotate(*one) for one in others), AT_ONCE)
        if last[0]:
            await annotate(*last)


def _has_munge(pod: Pod) -> bool:
    status = pod.status
    every = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    return any(one.name == _CONTAINER for one in every)


def _emit(obj: KubeObject, events: Events, found: MungeStep) -> None:
    if found.begins:
        note = "munge.key was changed: all pods get it at one time"
        events.normal(obj, Event.KEY_CHANGING, note, "Rotate")
    elif found.ends:
        note = "munge.key was changed: munged of all pods has the new key"
        events.normal(obj, Event.KEY_CHANGED, note, "Rotate")


def _findings(found: MungeStep, shown: Condition | None) -> list[Finding]:
    if found.words:
        message = f"munge.key was changed: {found.words}"
        if found.stuck:
            message += ". Delete these pods, whose images do not follow the key"
        ok = False if found.stuck else None
        return [Finding(ok, KeyReason.CHANGING, message, type=ROTATION)]
    if found.ends or shown is not None:
        return [Finding(True, KeyReason.IN_USE, type=ROTATION)]
    return []
