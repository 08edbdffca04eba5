"""What the results of checks in Slurm jobs change of a node: its drain, comment or reservation.

Rules of `decide.drain.check_drain` for checks that run as jobs. The reason of such a drain is the
published one, and its owner mark at once:

    PREFIX CHECK: job ID [slurm_job]

1. A failed job drains each of its nodes, unless it is drained already: a drain of a user, of
   another check or of the operator stays as it is.
2. A completed job undrains a node only if that check has drained it. A job that was cancelled, or
   that did not run as it should, changes nothing.
3. While another check's last result on the node is a failure, its reason takes that place.

A comment has the same text and the same rules. The reservation of a node is named PREFIX-NODE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import (
    SLURM_JOB,
    CheckResult,
    Comment,
    Drain,
    NodeState,
    OnFail,
    OnOk,
    Outcome,
    Undrain,
    next_changes,
)
from penstock.slurm.job_result import JobEnd

_REASON = re.compile(
    rf"(?P<base>.+ (?P<check>\S+)): (?:job [0-9]+|not confirmed) \[{SLURM_JOB}\]", re.DOTALL
)


RESERVATION_FLAGS = ("IGNORE_JOBS", "MAINT")
"""Flags of a reservation by a check: jobs that run on the node go on, and no other one starts."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Prefixes of what one result changes beside the drain; an empty one means no such change."""

    comment: str = ""
    reserve: str = ""
    release: str = ""


_NONE = Marks()


@dataclass(frozen=True, slots=True)
class CheckPolicy:
    """A check and the prefixes of its reasons; an empty prefix means that it does not drain."""

    name: str
    on_failure: str = ""
    on_success: str = ""
    failure: Marks = _NONE
    success: Marks = _NONE

    def prefix_for(self, result: Result) -> str:
        """Prefix of the drain that follows from a result; empty for none."""
        if result.end is JobEnd.FAILED:
            return self.on_failure
        return self.on_success if result.end is JobEnd.COMPLETED else ""

    def marks_for(self, result: Result) -> Marks:
        """What follows from a result beside the drain."""
        if result.end is JobEnd.FAILED:
            return self.failure
        return self.success if result.end is JobEnd.COMPLETED else _NONE

    @property
    def reacts(self) -> bool:
        """Whether any result drains a node or comments it."""
        drains = self.on_failure or self.on_success
        return bool(drains or self.failure.comment or self.success.comment)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The last result of a check on one node."""

    policy: CheckPolicy
    result: Result


def next_change(
    node: NodeState, own: NodeResult, others: Sequence[NodeResult] = ()
) -> Drain | Undrain | None:
    """The change that follows from a new result on a node.

    `others` are the last results of other checks on it. They drain nothing by themselves: each has
    had its own reaction, and somebody may have undrained the node since.
    """
    results = [_drained(node, own)]
    if node.is_drained:
        results += (_drained(node, one) for one in others if one.policy.prefix_for(one.result))
    for change in next_changes(node, results, SLURM_JOB):
        if isinstance(change, Drain | Undrain):
            return change
    return None


def next_comment(
    node: NodeState, own: NodeResult, others: Sequence[NodeResult] = ()
) -> Comment | None:
    """The comment that follows from a new result on a node, by the rules of `next_change`."""
    results = [_commented(node, own)]
    if node.comment:
        results += (
            _commented(node, one) for one in others if one.policy.marks_for(one.result).comment
        )
    for change in next_changes(node, results, SLURM_JOB):
        if isinstance(change, Comment):
            return change
    return None


def reservation_name(prefix: str, node: str) -> str:
    """The published name of the reservation of one node."""
    return f"{prefix}-{node}"


def is_of_check(nodes: Iterable[str], flags: Iterable[str], node: str) -> bool:
    """Whether a reservation of that name is as a check creates it: one node, and the flags."""
    return set(nodes) == {node} and {*RESERVATION_FLAGS} <= {*flags}


def reason(policy: CheckPolicy, result: Result) -> str:
    """The reason of a drain that follows from a result."""
    return f"{policy.prefix_for(result)} {policy.name}: job {result.job} [{SLURM_JOB}]"


def check_of(text: str) -> str:
    """The check whose owner mark a reason is; empty for any other reason."""
    found = _REASON.fullmatch(text)
    return found["check"] if found is not None else ""


def _drained(node: NodeState, one: NodeResult) -> CheckResult:
    prefix = one.policy.prefix_for(one.result)
    return _of_check(node.reason, one, prefix, OnFail.DRAIN, OnOk.UNDRAIN)


def _commented(node: NodeState, one: NodeResult) -> CheckResult:
    prefix = one.policy.marks_for(one.result).comment
    return _of_check(node.comment, one, prefix, OnFail.COMMENT, OnOk.UNCOMMENT)


def _of_check(mark: str, one: NodeResult, prefix: str, on_fail: OnFail, on_ok: OnOk) -> CheckResult:
    """The result of a check on a node with this reason or comment."""
    name = one.policy.name
    if prefix:
        return CheckResult(
            f"{prefix} {name}", Outcome.FAILED, on_fail, details=f"job {one.result.job}"
        )
    passed = one.result.end is JobEnd.COMPLETED
    # The prefix may have been another one when the check drained the node.
    found = _REASON.fullmatch(mark)
    base = found["base"] if found is not None and found["check"] == name else ""
    return CheckResult(base, Outcome.PASSED if passed else Outcome.SKIPPED, OnFail.NONE, on_ok)
