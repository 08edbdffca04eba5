"""What the results of checks in Slurm jobs change of a node: drain it, undrain it, or nothing.

Rules of `decide.drain.check_drain` for checks that run as jobs. The reason of such a drain is the
published one, and its owner mark at once:

    PREFIX CHECK: job ID [slurm_job]

1. A failed job drains each of its nodes, unless it is drained already: a drain of a user, of
   another check or of the operator stays as it is.
2. A completed job undrains a node only if that check has drained it. A job that was cancelled, or
   that did not run as it should, changes nothing.
3. While another check's last result on the node is a failure, its reason takes that place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import (
    SLURM_JOB,
    CheckResult,
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


@dataclass(frozen=True, slots=True)
class CheckPolicy:
    """A check and the prefixes of its reasons; an empty prefix means that it does not drain."""

    name: str
    on_failure: str = ""
    on_success: str = ""

    def prefix_for(self, result: Result) -> str:
        """Prefix of the drain that follows from a result; empty for none."""
        if result.end is JobEnd.FAILED:
            return self.on_failure
        return self.on_success if result.end is JobEnd.COMPLETED else ""

    @property
    def reacts(self) -> bool:
        """Whether any result changes a node."""
        return bool(self.on_failure or self.on_success)


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
    results = [_of_check(node, own)]
    if node.is_drained:
        results += (_of_check(node, one) for one in others if one.policy.prefix_for(one.result))
    for change in next_changes(node, results, SLURM_JOB):
        if isinstance(change, Drain | Undrain):
            return change
    return None


def reason(policy: CheckPolicy, result: Result) -> str:
    """The reason of a drain that follows from a result."""
    return f"{policy.prefix_for(result)} {policy.name}: job {result.job} [{SLURM_JOB}]"


def check_of(text: str) -> str:
    """The check whose owner mark a reason is; empty for any other reason."""
    found = _REASON.fullmatch(text)
    return found["check"] if found is not None else ""


def _of_check(node: NodeState, one: NodeResult) -> CheckResult:
    name, prefix = one.policy.name, one.policy.prefix_for(one.result)
    if prefix:
        return CheckResult(
            f"{prefix} {name}", Outcome.FAILED, OnFail.DRAIN, details=f"job {one.result.job}"
        )
    passed = one.result.end is JobEnd.COMPLETED
    # The prefix may have been another one when the check drained the node.
    found = _REASON.fullmatch(node.reason)
    base = found["base"] if found is not None and found["check"] == name else ""
    return CheckResult(
        base, Outcome.PASSED if passed else Outcome.SKIPPED, OnFail.NONE, OnOk.UNDRAIN
    )
