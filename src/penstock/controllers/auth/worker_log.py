"""Reads the log of one worker of an object for the rejection of its key, and keeps the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.controllers.runtime.reconciler import Context
from penstock.decide.auth.rejected_key import KeyRejection
from penstock.decide.observed.pod import SLURMD
from penstock.kube import KubeError

AGAIN_S: Final = 10.0
"""Seconds between two reads of a worker's log."""
LINES: Final = 20
"""Lines of slurmd's log to read: slurmd logs every ten seconds what it waits for."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Result of reading a worker's log, and when it was read (monotonic seconds)."""

    uid: str
    at: float
    rejected: KeyRejection | None


@dataclass(slots=True)
class _State:
    read: _Read | None = None


class WorkerLog:
    """The last log read of each object of a resource; `find` decides what it shows."""

    def __init__(
        self,
        context: Context,
        resource: Resource[Any],
        find: Callable[[Pod, str], KeyRejection | None],
    ) -> None:
        self._client = context.client
        self._states = context.states(resource, _State)
        self._find = find

    async def observe(self, obj: KubeObject, pod: Pod | None) -> KeyRejection | None:
        """Return how slurmctld rejected the key of a worker; None where there is no worker."""
        state, now = self._states.of(obj), self._client.clock.monotonic()
        if pod is None:
            state.read = None
            return None
        read = state.read
        if read is None or read.uid != pod.metadata.uid or now - read.at >= AGAIN_S:
            meta = pod.metadata
            try:
                log = await self._client.log(meta.namespace, meta.name, SLURMD, LINES)
            except KubeError:
                log = ""
            read = state.read = _Read(meta.uid, now, self._find(pod, log))
        return read.rejected

    def is_read(self, obj: KubeObject) -> bool:
        """Whether a worker of the object is in doubt, so that its log is to be read again."""
        return self._states.of(obj).read is not None
