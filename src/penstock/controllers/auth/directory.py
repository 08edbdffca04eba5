"""Listens to sssd of login pods: whether the directory answers is in its log only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.loginset import LOGINSETS, LoginSet
from penstock.base import times
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.auth import directory
from penstock.decide.auth.directory import Said
from penstock.kube import KubeError

YOUNG_S = 300.0
"""Age up to which a pod's sssd has a configuration that may be new."""
LOOK_YOUNG_S, LOOK_S = 5.0, 30.0
"""Between two looks at a pod's log. The kubelet is asked, and nothing is stored."""
FIRST_LINES = 2000
"""Of a pod that this process sees for the first time; then what came since."""
PODS = 3
"""Pods of a LoginSet that are listened to: all have the same sssd.conf."""
OVERLAP_S = 5
"""The kubelet counts in whole seconds, and its clock is another."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a pod's sssd said, when that was read (monotonic seconds), and how often it is."""

    at: float
    said: Said
    pace: float


@dataclass(slots=True)
class _State:
    heard: dict[str, _Heard] | None = None
    """By uid of a pod; None while the LoginSet has no directory."""


class DirectoryMonitor:
    """Reads whether the directories of LoginSets answer."""

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._secrets = context.secrets
        self._states = context.states(LOGINSETS, _State)

    async def observe(self, obj: LoginSet, pods: tuple[Pod, ...], events: Events) -> list[Finding]:
        """The condition of a LoginSet, and a warning when there is something new to tell."""
        state, old = self._states.of(obj), obj.status.conditions
        ref = obj.spec.sssd_conf_ref
        conf = self._secrets.value(obj.metadata.namespace, ref) if ref is not None else None
        if ref is None or not directory.asks((conf or b"").decode(errors="replace")):
            state.heard = None
            return directory.findings("", {}, old)
        living = [pod for pod in pods if pod.ready and not pod.metadata.deleting]
        newest = sorted(living, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
        before = state.heard or {}
        heard: dict[str, _Heard] = {}
        words: dict[str, str] = {}
        for pod in newest[:PODS]:
            uid = pod.metadata.uid
            if (one := await self._hear(pod, before.get(uid))) is not None:
                heard[uid] = one
                words[pod.metadata.name] = one.said.words
        state.heard = heard
        findings = directory.findings(ref.name, words, old)
        if told := directory.news(findings, old):
            events.warning(obj, findings[0].reason, told)
        return findings

    def requeue_after(self, obj: LoginSet) -> float | None:
        """Soon while there is a directory to hear of."""
        heard = self._states.of(obj).heard
        if heard is None:
            return None
        return min((one.pace for one in heard.values()), default=LOOK_YOUNG_S)

    async def _hear(self, pod: Pod, heard: _Heard | None) -> _Heard | None:
        now = self._client.clock.monotonic()
        if heard is not None and now - heard.at < heard.pace - 1:
            return heard
        since = math.ceil(now - heard.at) + OVERLAP_S if heard is not None else None
        meta = pod.metadata
        try:
            log = await self._client.log(
                meta.namespace, meta.name, "login", FIRST_LINES, since_s=since
            )
        except KubeError:
            return heard
        made = times.parse(meta.creation_timestamp)
        young = made is not None and self._client.clock.time() - made < YOUNG_S
        said = heard.said if heard is not None else Said()
        return _Heard(now, said.after(log), LOOK_YOUNG_S if young else LOOK_S)
