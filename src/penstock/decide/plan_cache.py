"""What was looked at before and asked for nothing, so that it need not be looked at again.

A settled fleet gives each decision thousands of pods of which one has changed. Caches and mirror
keep the objects that did not change, so identity tells: the same pod, node record, jobs and machine
under the same NodeSet give the same answer, and "nothing" does not depend on the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.api.kubernetes.kinds import Pod
from penstock.decide.observed.pod_aggregates import PodAggregates
from penstock.model.worker_slot import NodePlacements

PlanInputs = tuple[Pod, object, object, object]


@dataclass(frozen=True, slots=True)
class _Last:
    """What one decision looked at, of pods in this order."""

    pods: Sequence[Pod]
    records: Mapping[str, object]
    beside: tuple[Mapping[str, object], ...]


class PlanCache:
    """Things that asked for nothing, by a key, with what was looked at. For one NodeSet.

    It changes what a decision costs, never what is decided.
    """

    def __init__(self) -> None:
        self.places: tuple[tuple[object, ...], NodePlacements] | None = None
        """The last places in DaemonSet mode, with what they were worked out of."""
        self.aggregates: PodAggregates | None = None
        """Of the pods of the last time."""
        self._settings: tuple[Any, ...] = ()
        self._looked: dict[str, PlanInputs] = {}
        self._last: _Last | None = None
        self._loud: dict[int, Pod] = {}
        """Those of the last time that asked for something, by their identity."""

    def set_inputs(self, *settings: Any) -> None:
        """Say what all decisions depend on besides; what was known under others is forgotten."""
        if settings != self._settings:
            self._settings = settings
            self._looked.clear()
            self._last = None

    def changed_pods(
        self, pods: Sequence[Pod], records: Mapping[str, object], *beside: Mapping[str, object]
    ) -> Sequence[Pod]:
        """The pods that may need an action; all others needed none last time.

        Ask `is_unchanged` for each. `records` and what is `beside` them are all inputs of a pod.
        Call `looked_at` once all have been planned.
        """
        last, self._last = self._last, None
        loud, self._loud = self._loud, {}
        if last is None or last.records is not records or last.beside != beside:
            return pods
        if len(last.pods) != len(pods):
            return pods
        pairs = zip(last.pods, pods, strict=True)
        return [new for old, new in pairs if new is not old or id(new) in loud]

    def looked_at(
        self, pods: Sequence[Pod], records: Mapping[str, object], *beside: Mapping[str, object]
    ) -> None:
        """All of these were asked for."""
        self._last = _Last(pods, records, beside)

    def is_unchanged(self, pod: Pod, record: object, jobs: object, machine: object) -> bool:
        """Whether the very same objects asked for nothing before.

        Jobs are gathered anew for each decision, so they are compared.
        """
        known = self._looked.get(pod.metadata.uid)
        # Written out, as it is asked for each of thousands of pods.
        holds = (
            known is not None
            and known[0] is pod
            and known[1] is record
            and known[3] is machine
            and known[2] == jobs
        )
        if not holds:
            self._loud[id(pod)] = pod
        return holds

    def store(self, looked: PlanInputs) -> None:
        """These asked for nothing."""
        pod = looked[0]
        self._looked[pod.metadata.uid] = looked
        self._loud.pop(id(pod), None)

    def keep(self, pods: Sequence[Pod]) -> None:
        """Forget all others, once there are more of them than of these."""
        if len(self._looked) > 2 * len(pods):
            keys = [pod.metadata.uid for pod in pods]
            self._looked = {key: self._looked[key] for key in keys if key in self._looked}
