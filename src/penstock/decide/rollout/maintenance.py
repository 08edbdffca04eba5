"""ScheduledUpdate: workers are replaced in a maintenance reservation of Slurm.

The reservation has the nodes of the pods that have an older template, and no others; while there
are none, there is no reservation. slurmctld keeps new jobs off its nodes from the start on, and
`rollout` takes of them what its budget allows. Each decision is made from the schedule, the
pods and the reservation that Slurm shows, so it does not matter who changed which of them, or when
a process began.

- A finalizer is written before the reservation is made, and stays until Slurm shows it no more.
- A window that has begun is used for what is left of it. Slurm takes the start of one that comes
  again only with FORCE_START then.
- A reservation that is not as declared is deleted and created again; its nodes change in place.
- A pod goes when the reservation has begun by our clock and slurmctld shows its node in
  maintenance. At the end of the window what still has jobs is given back.
- While reservations are not known nothing new is taken, and what was taken stays taken.
- A pod whose node Slurm does not know cannot be in a reservation; it goes in the window, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.api.kubernetes.conditions import Finding
from penstock.base import times
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.updates import UpdateReason
from penstock.decide.action import (
    AddFinalizer,
    DeleteReservation,
    EventReason,
    RemoveFinalizer,
    SetReservation,
)
from penstock.decide.observed.deletion import DELETED_PATIENCE_S, Deletion
from penstock.decide.observed.drain_reason import DrainCause
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.model.worker_set import WorkerSet
from penstock.slurm import hostlist
from penstock.slurm.known import Unknown
from penstock.slurm.reservation import Reservation
from penstock.slurm.reservation_schedule import (
    CHOSEN,
    EVERY,
    FORCE_START,
    OURS,
    Schedule,
    Window,
)

CREATED = ConditionType.RESERVATION_CREATED
LEAST_S = 60.0
"""No reservation is made for what is left of a window when that is less. Slurm counts minutes."""
REQUEUE_S = 3600.0
_LATE_S = 1.0
"""Time that slurmctld has to note that a window began or ended."""
_PASSING_S = 10.0

ReservationAction = AddFinalizer | SetReservation | DeleteReservation | RemoveFinalizer


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Actions on the reservation, the finding, and the latest time of the next decision."""

    actions: tuple[ReservationAction, ...] = ()
    finding: Finding | None = None
    requeue_after: float | None = None


def is_scheduled(workers: WorkerSet) -> bool:
    """Whether its workers are replaced in a reservation."""
    return workers.update.type == "ScheduledUpdate"


def needs_reservations(workers: WorkerSet) -> bool:
    """Whether anything about it depends on Slurm's reservations."""
    return (
        is_scheduled(workers) or workers.marks.reservation_finalizer in workers.metadata.finalizers
    )


def replaceable_now(view: WorkerSetView, old: Sequence[Worker]) -> frozenset[Worker]:
    """Those of the outdated workers that an update may replace now, by the time alone."""
    found = view.reservations.known
    if isinstance(view.nodes, Unknown):
        return frozenset(worker for worker in old if _is_marked(worker))
    if isinstance(found, Unknown):
        return frozenset(
            worker
            for worker in old
            if _is_marked(worker) and worker.node is not None and worker.node.drain
        )
    seen = found.value.get(view.workers.names.reservation)
    runs = seen is not None and seen.start <= view.now < seen.end
    reserved = seen.nodes if seen is not None and runs else frozenset[str]()
    schedule = view.workers.update.schedule
    window = schedule.window(view.now) if schedule is not None else None
    in_time = window is not None and window.start <= view.now
    return frozenset(
        worker
        for worker in old
        if (
            in_time
            if worker.node is None
            else worker.slurm_node in reserved and "MAINTENANCE" in worker.node.state
        )
    )


def _is_marked(worker: Worker) -> bool:
    """Whether its mark shows that an update takes it."""
    return worker.cordon_cause == DrainCause.UPDATE


def maintenance(
    view: WorkerSetView, slurm: SlurmSnapshot, deletion: Deletion, old: Sequence[Worker]
) -> Maintenance:
    """Decide about the reservation; `old` are the pods to be replaced, those under way too."""
    if view.deleting or not is_scheduled(view.workers):
        none = _none(view, deletion, "No update is scheduled")
        return Maintenance(none, requeue_after=_patience(view))
    plan = view.workers.update.schedule
    if plan is None or view.controller is not ControllerState.PRESENT or view.creation_blocked:
        return Maintenance()
    if not old:
        finding = _absent(UpdateReason.UP_TO_DATE, "No pod has an older template")
        return Maintenance(_none(view, deletion, "No pod has an older template any more"), finding)
    reservations = view.reservations
    if reservations.unsupported:
        words = (
            f"{len(old)} pods have an older template and stay: {reservations.unsupported}. Upgrade "
            "slurmrestd, or choose another updateStrategy"
        )
        return Maintenance(
            (), Finding(False, UpdateReason.RESERVATION_UNSUPPORTED, words, type=CREATED)
        )
    if isinstance(reservations.known, Unknown):
        return _unknown(old, reservations.known.why)
    if slurm.unknown_reason is not None:
        return _unknown(old, slurm.unknown_reason)
    found = _planned(view, slurm, deletion, plan, old, reservations.known.value)
    rejected = reservations.rejected
    if rejected is None or not found.actions:
        return found
    message = f"slurmctld rejects reservation {view.workers.names.reservation}: {rejected.words}"
    finding = Finding(False, UpdateReason.RESERVATION_REFUSED, message, type=CREATED)
    left = max(0.0, rejected.again_at - view.now)
    return Maintenance(() if left else found.actions, finding, left or found.requeue_after)


def _planned(
    view: WorkerSetView,
    slurm: SlurmSnapshot,
    deletion: Deletion,
    plan: Schedule,
    old: Sequence[Worker],
    known: Mapping[str, Reservation],
) -> Maintenance:
    name, now = view.workers.names.reservation, view.now
    nodes = sorted({worker.slurm_node for worker in old} & slurm.records.keys())
    finalizer = view.workers.marks.reservation_finalizer
    marked = finalizer in view.workers.metadata.finalizers
    count = f"{len(old)} pods have an older template"
    case = _Case(name, plan, tuple(nodes), now, marked, finalizer, count)
    window, seen = plan.window(now), known.get(name)
    if window is None:
        words = f"{count}, and the window {_span(plan.first)} is over: set another startTime"
        return Maintenance(
            _none(view, deletion, "Its window is over"), _absent(UpdateReason.SCHEDULE_OVER, words)
        )
    if not nodes:
        words = f"{count}, and Slurm has no node of them: they are replaced {_span(window)}"
        gone = _none(view, deletion, "Slurm has no node to replace")
        return Maintenance(gone, _absent(UpdateReason.NO_NODES, words), _requeue_after(window, now))
    found = _existing(case, window, seen) if seen is not None else _made(case, window)
    return replace(found, requeue_after=found.requeue_after or _requeue_after(window, now))


@dataclass(frozen=True, slots=True)
class _Case:
    """What a scheduled update is decided by, while there are pods to replace."""

    name: str
    plan: Schedule
    nodes: tuple[str, ...]
    """Of those pods, as far as Slurm knows them."""
    now: float
    marked: bool
    """Whether the finalizer is there."""
    finalizer: str
    count: str

    @property
    def listed(self) -> str:
        return hostlist.compress(self.nodes)


def _existing(case: _Case, window: Window, seen: Reservation) -> Maintenance:
    """What becomes of a reservation that is there."""
    name, span = case.name, _span(Window(seen.start, seen.end))
    if seen.end <= case.now and case.plan.every in seen.flags:
        # slurmctld moves it on to its next time.
        words = f"{case.count}: {case.listed} are replaced in reservation {name}, {_span(window)}"
        return Maintenance((), Finding(True, UpdateReason.CREATED, words, type=CREATED), _PASSING_S)
    if not _right(case, window, seen):
        message = f"Reservation {name} ({span}) differs from the schedule: it is created again"
        finding = Finding(None, UpdateReason.CREATING_RESERVATION, message, type=CREATED)
        return Maintenance(
            (DeleteReservation(name, EventReason(Event.RESERVATION_DELETED, message)),), finding
        )
    how = "are" if seen.start > case.now else "are being"
    words = f"{case.count}: {case.listed} {how} replaced in reservation {name}, {span}"
    finding = Finding(True, UpdateReason.CREATED, words, type=CREATED)
    if seen.nodes == frozenset(case.nodes):
        return Maintenance((), finding)
    why = EventReason(Event.RESERVATION_UPDATED, f"Reservation {name} has {case.listed} now")
    return Maintenance((SetReservation(name, case.nodes, OURS, why),), finding)


def _made(case: _Case, window: Window) -> Maintenance:
    """How a reservation comes to be where there is none."""
    if window.start <= case.now and window.end - case.now < LEAST_S:
        after = case.plan.window(window.end)
        if after is None:
            words = f"{case.count}, and less than a minute is left of the window {_span(window)}"
            return Maintenance((), _absent(UpdateReason.SCHEDULE_OVER, words))
        window = after
    message = f"Reservation {case.name}: {case.listed} are replaced {_span(window)}"
    finding = Finding(
        None, UpdateReason.CREATING_RESERVATION, f"{case.count}. {message}", type=CREATED
    )
    if not case.marked:
        return Maintenance((AddFinalizer(case.finalizer),), finding)
    flags = tuple(filter(None, (*OURS, *case.plan.flags, case.plan.every)))
    start = window.start
    if start <= case.now:
        # slurmctld takes a start in the past of those only that come again.
        start, flags = (start, (*flags, FORCE_START)) if case.plan.every else (int(case.now), flags)
    why = EventReason(Event.RESERVATION_CREATED, message)
    return Maintenance(
        (SetReservation(case.name, case.nodes, flags, why, start, window.end),), finding
    )


def _right(case: _Case, window: Window, seen: Reservation) -> bool:
    """Whether a reservation is as declared, but for its nodes."""
    plan = case.plan
    flags = {*OURS, *plan.flags, *filter(None, (plan.every,))}
    # slurmctld may give a reservation OVERLAP by itself.
    others = {*EVERY, *CHOSEN} - {"OVERLAP"}
    if not flags <= seen.flags or (seen.flags - flags) & others:
        return False
    if (seen.start, seen.end) == (window.start, window.end):
        return True
    # It was made in its window. Clocks may differ a little.
    begun = window.start <= seen.start <= case.now + LEAST_S
    return not plan.every and begun and seen.start < seen.end == window.end


def _none(view: WorkerSetView, deletion: Deletion, ground: str) -> tuple[ReservationAction, ...]:
    """No reservation is needed, and no finalizer once there is none."""
    name = view.workers.names.reservation
    finalizer = view.workers.marks.reservation_finalizer
    has = finalizer in view.workers.metadata.finalizers
    if not needs_reservations(view.workers):
        return ()
    if deletion.is_orphaned:
        why = EventReason(
            Event.RESERVATION_LEFT, f"Reservation {name} is left: its slurmctld is gone"
        )
        return (RemoveFinalizer(finalizer, why),) if has else ()
    known = view.reservations.known
    if isinstance(known, Unknown):
        if not has or _patience(view) != 0.0:
            return ()
        message = f"Reservation {name} may be left in Slurm: {known.why}"
        return (RemoveFinalizer(finalizer, EventReason(Event.RESERVATION_LEFT, message)),)
    if name in known.value:
        refused = view.reservations.rejected
        if refused is not None and refused.again_at > view.now:
            return ()
        why = EventReason(Event.RESERVATION_DELETED, f"{ground}: reservation {name} is deleted")
        return (DeleteReservation(name, why),)
    why = EventReason(Event.RESERVATION_GONE, f"{ground}: there is no reservation {name}")
    return (RemoveFinalizer(finalizer, why),) if has else ()


def _patience(view: WorkerSetView) -> float | None:
    """Seconds for which a deleted NodeSet without pods still waits for a silent Slurm."""
    deleted = times.parse(view.workers.metadata.deletion_timestamp)
    if (
        deleted is None
        or view.pods
        or view.workers.marks.reservation_finalizer not in view.workers.metadata.finalizers
    ):
        return None
    return max(0.0, deleted + DELETED_PATIENCE_S - view.now)


def _unknown(old: Sequence[Worker], why: str) -> Maintenance:
    words = f"{len(old)} pods have an older template; Slurm's reservations are not known: {why}"
    return Maintenance((), Finding(None, UpdateReason.RESERVATION_UNKNOWN, words, type=CREATED))


def _absent(reason: ConditionReason, words: str) -> Finding:
    return Finding(True, reason, words, type=CREATED, inverted=True)


def _requeue_after(window: Window | None, now: float) -> float | None:
    if window is None:
        return None
    next_ = window.start if window.start > now else window.end
    return min(next_ - now + _LATE_S, REQUEUE_S)


def _span(window: Window) -> str:
    return f"from {times.write(window.start)} to {times.write(window.end)}"
