"""When the machine of a Kubernetes node is replaced, and how its workers come back.

A Slurm node that a check drained with the prefix `[hardware_problem]` asks for it, or the condition
`SlurmNodeReplace` of a Kubernetes node. A SlurmCluster has a record of each replacement, which is
written before anything else happens. So a step can be stopped at any point and done again:

1. The record names the Kubernetes node by its uid, and the drains that ask. While it is open, the
   node is out of service for it (`penstock.decide.node_outage`): cordoned, and its workers leave.
2. Once no worker is on it, the provider is asked to replace that uid. A node of the same name with
   another uid is the new one.
3. A worker that runs on another Kubernetes node ends the recorded drain of its Slurm node: that was
   about the machine that it left, and `decide.retest` has the next one tested before. A drain
   with any other reason stays.

A machine that comes back under another uid is not replaced again. No replacement begins while
checks have more nodes drained than they may: then the check is more likely wrong than the machines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from penstock.base import times
from penstock.decide import retest
from penstock.decide.check.check_share import limit
from penstock.decide.check.reaction import check_of
from penstock.decide.drain.check_drain import is_reason_of_check
from penstock.decide.retest import Retest
from penstock.slurm.state import Node

PREFIX: Final = "[hardware_problem]"
WINDOW_S: Final = 3600.0
"""So many replacements as are declared begin within these seconds."""
KEPT: Final = 100
"""Ended replacements that are remembered: a machine of one of them is not replaced again."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """The record of one replacement. Times are RFC 3339.

    `machine` identifies the machine whatever its Kubernetes node is called; empty where unknown.
    `drains` are the reasons by Slurm node, none of a replacement that a condition asks for. `back`
    are the Slurm nodes whose drain has ended on another machine.
    """

    node: str
    uid: str
    machine: str
    began: str
    drains: dict[str, str] = field(default_factory=dict[str, str])
    back: tuple[str, ...] = ()
    asked: bool = False
    """Whether no worker was on the node, so that the provider is or was asked."""
    tested: tuple[str, ...] = ()
    """Slurm nodes for which a check in jobs was started on the next machine."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """A Kubernetes node. `is_out` is whether it is out of service for its replacement."""

    name: str
    uid: str
    machine: str = ""
    is_out: bool = False
    is_going: bool = False
    """Whether it is being deleted."""
    has_workers: bool = False
    """Whether workers are on it, of any cluster."""
    is_requested: bool = False
    """Whether a condition asks for its replacement."""


@dataclass(frozen=True, slots=True)
class PlacedWorker:
    """A worker pod of the cluster on a Kubernetes node.

    `node` is its Slurm node, None without a record. `since` is the creation of the pod in Unix
    seconds, and `is_registered` whether the record comes from its slurmd. `is_changing` is whether
    the operator has the node drained or down at this moment, by a reason of its own. `is_leaving`:
    the operator deletes the pod once its node is drained.
    """

    slurm_node: str
    kubernetes_node: str
    node: Node | None
    since: float
    is_registered: bool = False
    is_changing: bool = False
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class ReplacementView:
    """One cluster. `share` is the declared number, empty where machines are not replaced.

    `out` are the Slurm nodes that checks have drained or reserved, `may_be_out` how many may be.
    """

    share: str
    records: tuple[Replacement, ...]
    machines: Mapping[str, Machine]
    workers: tuple[PlacedWorker, ...]
    nodes: Mapping[str, Node]
    out: Collection[str] = ()
    may_be_out: int = 1
    checks: Collection[str] = ()
    """Checks that can be started for one Slurm node."""
    tests: Collection[tuple[str, str]] = ()
    """The tests that have not ended, each as the uid of its record and the Slurm node."""


@dataclass(frozen=True, slots=True)
class WriteRecords:
    """Write the records, then emit an event. `about` is the Kubernetes node."""

    records: tuple[Replacement, ...]
    about: str
    message: str
    begins: bool = False


@dataclass(frozen=True, slots=True)
class AskProvider:
    """Have the provider replace a Kubernetes node."""

    record: Replacement


@dataclass(frozen=True, slots=True)
class EndDrain:
    """Undrain a Slurm node, if it still has this reason."""

    record: Replacement
    slurm_node: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartTest:
    """Start a check for one Slurm node, whose reason it is."""

    record: Replacement
    slurm_node: str
    check: str


ReplacementStep = WriteRecords | AskProvider | EndDrain | StartTest


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a Kubernetes node is not replaced, for a person."""

    node: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The next step, and what is not done."""

    step: ReplacementStep | None = None
    blockers: tuple[Blocker, ...] = ()


def read_records(text: str) -> tuple[Replacement, ...] | None:
    """The records in an annotation; none of an empty one, None for one that does not parse."""
    if not text:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[Replacement, ...])
    except msgspec.MsgspecError:
        return None


def write_records(records: Sequence[Replacement]) -> str:
    """The annotation: all open records, and the last ended ones."""
    ended = [one for one in records if one.ended]
    left = {one.uid for one in ended[:-KEPT]}
    return msgspec.json.encode([one for one in records if one.uid not in left]).decode()


def is_open(records: Iterable[Replacement], uid: str) -> bool:
    """Whether a Kubernetes node is to be replaced by a record that has not ended."""
    return any(one.uid == uid and not one.ended for one in records)


def next_step(view: ReplacementView, now: float) -> Outcome:
    """The next step of a cluster: what has begun goes on first."""
    for record in view.records:
        step = None if record.ended else _next_of(view, record, now)
        if step is not None:
            return Outcome(step)
    return _begin(view, now)


def _next_of(view: ReplacementView, record: Replacement, now: float) -> ReplacementStep | None:
    machine = view.machines.get(record.node)
    is_there = machine is not None and machine.uid == record.uid
    if is_there and machine is not None and not record.asked:
        if not _is_wanted(view, record, machine):
            records = tuple(one for one in view.records if one.uid != record.uid)
            words = f"Kubernetes node {record.node} is not to be replaced any more"
            return WriteRecords(records, record.node, words)
        if machine.is_out and not machine.has_workers:
            words = f"No worker is on Kubernetes node {record.node}: its machine is replaced"
            return _changed(view, replace(record, asked=True), words)
    for name in record.drains:
        if name in record.back:
            continue
        step = _back(view, record, name, now, is_there=is_there)
        if step is not None:
            return step
    if is_there and machine is not None:
        is_free = machine.is_out and not machine.has_workers and not machine.is_going
        return AskProvider(record) if record.asked and is_free else None
    if set(record.drains) <= set(record.back):
        words = f"The machine of Kubernetes node {record.node} was replaced"
        return _changed(view, replace(record, ended=True), words)
    return None


def _is_wanted(view: ReplacementView, record: Replacement, machine: Machine) -> bool:
    if not view.share:
        return False
    if not record.drains:
        return machine.is_requested
    return bool(record.back) or any(
        (node := view.nodes.get(name)) is None or (node.drain and node.reason == reason)
        for name, reason in record.drains.items()
    )


def _back(
    view: ReplacementView, record: Replacement, name: str, now: float, *, is_there: bool
) -> ReplacementStep | None:
    """The end of one recorded drain, once its worker runs on another machine."""
    reason, node = record.drains[name], view.nodes.get(name)
    workers = [one for one in view.workers if one.slurm_node == name]
    if node is None:
        # Its worker is not wanted any more.
        return None if is_there or workers else _gone(view, record, name)
    for worker in workers:
        elsewhere = _is_elsewhere(view, record, worker)
        if not worker.is_registered or (is_there and not elsewhere):
            continue
        if node.drain and node.reason == reason:
            # The pod of a worker that leaves may be deleted at this moment, because of this drain.
            if elsewhere and not worker.is_leaving:
                return _on_next_machine(view, record, worker, node, now)
        elif not worker.is_changing and (node.drain or "DOWN" not in node.state):
            return _gone(view, record, name)
    return None


def _on_next_machine(
    view: ReplacementView, record: Replacement, worker: PlacedWorker, node: Node, now: float
) -> ReplacementStep | None:
    test = retest.next_retest(
        node,
        now - max(worker.since, node.slurmd_start_time),
        view.checks,
        is_started=node.name in record.tested,
        runs=(record.uid, node.name) in view.tests,
    )
    match test:
        case Retest.WAITS:
            return None
        case Retest.STARTS:
            return StartTest(record, node.name, check_of(node.reason))
        case Retest.ENDED:
            return EndDrain(record, node.name, node.reason)


def _is_elsewhere(view: ReplacementView, record: Replacement, worker: PlacedWorker) -> bool:
    on = view.machines.get(worker.kubernetes_node)
    if on is None or on.uid == record.uid:
        return False
    return not record.machine or on.machine != record.machine


def _gone(view: ReplacementView, record: Replacement, name: str) -> WriteRecords:
    """Somebody else undrained the Slurm node, drained it again, or deleted it."""
    words = f"Slurm node {name} has another drain, or none, since its machine went"
    return _changed(view, replace(record, back=(*record.back, name)), words)


def after_drain(view: ReplacementView, step: EndDrain) -> WriteRecords:
    """The records once a drain has ended."""
    words = f"Undrained Slurm node {step.slurm_node}: it runs on another machine"
    return _changed(view, replace(step.record, back=(*step.record.back, step.slurm_node)), words)


def after_start(view: ReplacementView, step: StartTest) -> WriteRecords:
    """The records once a test has started."""
    words = f"Check {step.check} tests the machine that Slurm node {step.slurm_node} runs on now"
    tested = (*step.record.tested, step.slurm_node)
    return _changed(view, replace(step.record, tested=tested), words)


def _changed(view: ReplacementView, record: Replacement, message: str) -> WriteRecords:
    records = tuple(record if one.uid == record.uid else one for one in view.records)
    return WriteRecords(records, record.node, message)


def _begin(view: ReplacementView, now: float) -> Outcome:
    if not view.share:
        return Outcome()
    asked = _asked(view)
    returned = [one for one in view.machines.values() if _has_returned(view, one)]
    blockers = [
        Blocker(
            one.name,
            f"Kubernetes node {one.name} is not replaced: its machine was replaced before, and has "
            "come back. Have its provider take it out of use",
        )
        for one in returned
        if any(one is machine for machine, _ in asked) or _is_awaited(view, one)
    ]
    blockers += _undecided(view, {one.node for one in blockers})
    left = [(one, drains) for one, drains in asked if one not in returned]
    if not left:
        return Outcome(blockers=tuple(blockers))
    machine, drains = left[0]
    if len(view.out) > view.may_be_out:
        words = (
            f"Kubernetes node {machine.name} is not replaced: checks have {len(view.out)} Slurm "
            f"nodes drained, and {view.may_be_out} may be. Find out whether the check is at fault"
        )
        return Outcome(blockers=(*blockers, Blocker(machine.name, words)))
    if _recent(view.records, now) >= limit(view.share, len(view.nodes)):
        return Outcome(blockers=tuple(blockers))
    record = Replacement(machine.name, machine.uid, machine.machine, times.write(now), drains)
    why = "; ".join(f"{name}: {reason}" for name, reason in drains.items())
    words = f"Kubernetes node {machine.name} is replaced: {why or 'its condition asks for it'}"
    records = (*view.records, record)
    return Outcome(WriteRecords(records, machine.name, words, begins=True), tuple(blockers))


def _undecided(view: ReplacementView, named: Collection[str]) -> list[Blocker]:
    """About drains that are older than the worker's pod: nobody knows which machine they mean."""
    found: dict[str, Blocker] = {}
    for worker in sorted(view.workers, key=lambda one: one.slurm_node):
        on, node = worker.kubernetes_node, worker.node
        if on in named or on in found or on not in view.machines or not _is_waiting(view, worker):
            continue
        if node is not None and node.reason_since < int(worker.since):
            words = (
                f"Kubernetes node {on} is not replaced: the drain of Slurm node {node.name} "
                f"({node.reason}) is older than its pod there, so another machine may be meant. "
                f"Check this one, then resume {node.name}"
            )
            found[on] = Blocker(on, words)
    return list(found.values())


def _is_waiting(view: ReplacementView, worker: PlacedWorker) -> bool:
    """Whether a check drained the node of a worker, and no replacement is under way for that."""
    node = worker.node
    return (
        node is not None
        and is_broken(node)
        and all(one.ended or one.drains.get(node.name) != node.reason for one in view.records)
    )


def _has_returned(view: ReplacementView, machine: Machine) -> bool:
    """Whether a machine was replaced under another uid."""
    return bool(machine.machine) and any(
        one.machine == machine.machine and one.uid != machine.uid and one.asked
        for one in view.records
    )


def _is_awaited(view: ReplacementView, machine: Machine) -> bool:
    """Whether a drain waits for another machine than this one."""
    return any(one.machine == machine.machine and not one.ended for one in view.records)


def _recent(records: Iterable[Replacement], now: float) -> int:
    """Replacements that are open, or began within the window."""
    return sum(not one.ended or now - (times.parse(one.began) or 0.0) < WINDOW_S for one in records)


def _asked(view: ReplacementView) -> list[tuple[Machine, dict[str, str]]]:
    """Kubernetes nodes to be replaced, by name, with the drains that ask."""
    known = {one.uid for one in view.records}
    drains: dict[str, dict[str, str]] = {}
    places = {worker.kubernetes_node for worker in view.workers}
    for worker in view.workers:
        node = worker.node
        if node is None or not _is_waiting(view, worker):
            continue
        # A drain that is older than the pod is about the machine that ran the worker before.
        if node.reason_since >= int(worker.since):
            drains.setdefault(worker.kubernetes_node, {})[node.name] = node.reason
    return [
        (one, drains.get(name, {}))
        for name, one in sorted(view.machines.items())
        if one.uid not in known
        and not one.is_going
        and (name in drains or (one.is_requested and name in places))
    ]


def is_broken(node: Node) -> bool:
    """Whether a check drained a node because of its hardware."""
    return node.drain and node.reason.startswith(PREFIX) and is_reason_of_check(node.reason)
