"""Reads the logs of sssd, which alone show whether the directory answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.base import times
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.status import status_of
from penstock.decide.auth import directory
from penstock.decide.auth.directory import DirectoryState
from penstock.kube import KubeError

YOUNG_S = 300.0
"""Age up to which a pod's sssd has a configuration that may be new."""
READ_YOUNG_S, READ_S = 5.0, 30.0
"""Seconds between two reads of a pod's log."""
FIRST_LINES = 2000
"""Lines that the first read of a pod's log returns; later reads return newer lines only."""
PODS = 3
"""Pods whose logs are read: all have the same sssd.conf."""
OVERLAP_S = 5
"""Seconds that two reads overlap: the kubelet counts whole seconds of its own clock."""


@dataclass(frozen=True, slots=True)
class _LogRead:
    """The last read of a pod's log: its time (monotonic seconds), result, and interval."""

    at: float
    directory: DirectoryState
    interval: float


@dataclass(slots=True)
class _State:
    reads: dict[str, _LogRead] | None = None
    """By uid of a pod; None while the object has no directory."""


class DirectoryMonitor:
    """Sets the condition of objects of a `resource` whose directory does not answer.

    sssd runs in the `container`, alone or beside others.
    """

    def __init__(self, context: Context, resource: Resource[Any], container: str) -> None:
        self._client = context.client
        self._secrets = context.secrets
        self._container = container
        self._states = context.states(resource, _State)

    async def observe(
        self,
        obj: KubeObject,
        ref: SecretKeySelector | None,
        pods: tuple[Pod, ...],
        events: Events,
    ) -> list[Finding]:
        """Return the condition, and emit a warning for each new error. `ref` is of sssd.conf."""
        state, old = self._states.of(obj), status_of(obj).conditions
        conf = self._secrets.value(obj.metadata.namespace, ref) if ref is not None else None
        if ref is None or not directory.asks((conf or b"").decode(errors="replace")):
            state.reads = None
            return directory.findings("", {}, old)
        living = [pod for pod in pods if pod.ready and not pod.metadata.deleting]
        newest = sorted(living, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
        before = state.reads or {}
        reads: dict[str, _LogRead] = {}
        words: dict[str, str] = {}
        for pod in newest[:PODS]:
            uid = pod.metadata.uid
            if (one := await self._read(pod, before.get(uid))) is not None:
                reads[uid] = one
                words[pod.metadata.name] = one.directory.words
        state.reads = reads
        findings = directory.findings(ref.name, words, old)
        if message := directory.news(findings, old):
            events.warning(obj, findings[0].reason, message)
        return findings

    def requeue_after(self, obj: KubeObject) -> float | None:
        """Return the seconds until the next read of a log; None without a directory."""
        reads = self._states.of(obj).reads
        if reads is None:
            return None
        return min((one.interval for one in reads.values()), default=READ_YOUNG_S)

    async def _read(self, pod: Pod, last: _LogRead | None) -> _LogRead | None:
        now = self._client.clock.monotonic()
        if last is not None and now - last.at < last.interval - 1:
            return last
        since = math.ceil(now - last.at) + OVERLAP_S if last is not None else None
        meta = pod.metadata
        try:
            log = await self._client.log(
                meta.namespace, meta.name, self._container, FIRST_LINES, since_s=since
            )
        except KubeError:
            return last
        made = times.parse(meta.creation_timestamp)
        young = made is not None and self._client.clock.time() - made < YOUNG_S
        known = last.directory if last is not None else DirectoryState()
        return _LogRead(now, known.after(log), READ_YOUNG_S if young else READ_S)
