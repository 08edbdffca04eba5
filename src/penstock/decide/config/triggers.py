"""Reconfigures or restarts slurmctld once for each value of an annotation.

The status records the value and its result. It names the pods of a restart before any of them is
deleted, so a restart is done once even when the operator is killed in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.cluster.trigger import Trigger
from penstock.decide.config.reconfigure_log import Acknowledgements
from penstock.model.cluster import ClusterMarks

SLURMCTLD = "slurmctld"
WAITING = "Waiting"
DONE = "Done"
REJECTED = "Refused"

_BY_MARK = "restart-trigger"
"""Name of a restart that the annotation `ClusterMarks.restart` requests."""
_FOREIGN = "the pod's reconfigure container is not Penstock's own"
_UNKNOWN = f"only {SLURMCTLD} can be restarted: write {SLURMCTLD}, or {SLURMCTLD}@ and any text"
_DELAYED = "waits for the changed configuration, which has partitions that slurmctld has already"
_STATE_IN_POD = (
    "slurmctld's state is in its pod (persistence.enabled is false): all jobs would be lost. "
    "Delete the pod by hand if that is wanted"
)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A pod of slurmctld, and whether its slurmctld is ready."""

    uid: str
    is_ready: bool
    marks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TriggerView:
    """Requested triggers, their last results and the observed state. `now` is recorded."""

    marks: ClusterMarks
    annotations: Mapping[str, str]
    done: Sequence[Trigger]
    pods: Sequence[Daemon]
    acks: Acknowledgements | None
    has_own_sidecar: bool
    is_persistent: bool
    now: str
    is_delayed: bool = False
    """Whether slurmctld would lose partitions if it read its files now."""


def _uids() -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class TriggerStep:
    """The status to write first, the mark that the first pod is to have, and pods to delete."""

    status: tuple[Trigger, ...]
    mark: str = ""
    delete: frozenset[str] = field(default_factory=_uids)

    @property
    def is_waiting(self) -> bool:
        """Whether a trigger is in progress."""
        return any(one.result == WAITING for one in self.status)

    @property
    def is_delayed(self) -> bool:
        """Whether one waits until slurmctld's files have its partitions."""
        return any(one.result == WAITING and one.message == _DELAYED for one in self.status)


def is_pending(
    marks: ClusterMarks, annotations: Mapping[str, str], done: Sequence[Trigger]
) -> bool:
    """Return whether an annotation requests a trigger that is not finished."""
    over = {(one.name, one.value) for one in done if one.result != WAITING}
    return any(
        (name, annotations[key]) not in over
        for name, key in (("reconfigure", RECONFIGURE), *_restarts(marks))
        if annotations.get(key)
    )


def initial_triggers(
    marks: ClusterMarks, annotations: Mapping[str, str], done: Sequence[Trigger], now: str
) -> tuple[Trigger, ...]:
    """Record slurm-operator's restart annotation as done when a cluster is observed first.

    slurmctld needs no restart for a value that existed before. The other annotations are ours.
    """
    value, name = annotations.get(marks.restart, ""), _BY_MARK
    if not value or any(one.name == name for one in done):
        return tuple(done)
    message = "slurmctld began with it"
    return (*done, Trigger(name=name, value=value, result=DONE, time=now, message=message))


def next_trigger_step(view: TriggerView) -> TriggerStep:
    """Return the next step of each requested trigger."""
    before = {one.name: one for one in view.done}
    status, mark, delete = dict(before), "", frozenset[str]()
    value = view.annotations.get(RECONFIGURE, "")
    if value and not _over(before.get("reconfigure"), value):
        status["reconfigure"], mark = _reconfigure(view, _begun(before, "reconfigure", value, view))
    for name, key in _restarts(view.marks):
        value = view.annotations.get(key, "")
        if value and not _over(before.get(name), value):
            status[name], pods = _restart(view, _begun(before, name, value, view))
            delete |= pods
    return TriggerStep(tuple(status[name] for name in sorted(status)), mark, delete)


def mark_of(value: str) -> str:
    """Return a value as the annotation of a pod: one word, whatever the value has."""
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _restarts(marks: ClusterMarks) -> tuple[tuple[str, str], ...]:
    """Restarts by name, each with its annotation."""
    return (("restart", RESTART), (_BY_MARK, marks.restart))


def _over(state: Trigger | None, value: str) -> bool:
    return state is not None and state.value == value and state.result != WAITING


def _begun(before: Mapping[str, Trigger], name: str, value: str, view: TriggerView) -> Trigger:
    state = before.get(name)
    if state is not None and state.value == value:
        return state
    return Trigger(name=name, value=value, result=WAITING, time=view.now)


def _end(state: Trigger, result: str, message: str, view: TriggerView) -> Trigger:
    return msgspec.structs.replace(state, result=result, message=message, time=view.now, pods=())


def _delayed(state: Trigger) -> Trigger:
    return msgspec.structs.replace(state, message=_DELAYED)


def _reconfigure(view: TriggerView, state: Trigger) -> tuple[Trigger, str]:
    if not view.has_own_sidecar:
        return _end(state, REJECTED, _FOREIGN, view), ""
    mark = mark_of(state.value)
    asked = bool(view.pods) and view.pods[0].marks.get(RECONFIGURE) == mark
    if not asked and view.is_delayed:
        return _delayed(state), ""
    state = msgspec.structs.replace(state, message="")
    if view.acks is None or not asked or mark not in view.acks.reconfigured:
        return state, mark
    words = view.acks.reconfigured[mark]
    if words is None:
        return _end(state, DONE, "slurmctld was reconfigured", view), mark
    return _end(state, REJECTED, words, view), mark


def _restart(view: TriggerView, state: Trigger) -> tuple[Trigger, frozenset[str]]:
    if state.name == "restart" and state.value.partition("@")[0] != SLURMCTLD:
        return _end(state, REJECTED, _UNKNOWN, view), frozenset()
    if not view.is_persistent:
        return _end(state, REJECTED, _STATE_IN_POD, view), frozenset()
    if view.is_delayed:
        return _delayed(state), frozenset()
    state = msgspec.structs.replace(state, message="")
    if not state.pods:
        if not view.pods:
            return state, frozenset()
        return msgspec.structs.replace(state, pods=tuple(one.uid for one in view.pods)), frozenset()
    left = frozenset(one.uid for one in view.pods if one.uid in state.pods)
    if left or not view.pods or not all(one.is_ready for one in view.pods):
        return state, left
    return _end(state, DONE, "slurmctld was restarted", view), frozenset()
