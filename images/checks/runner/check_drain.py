"""Which change of its Slurm node a run of checks makes: drain, undrain, comment or none.

One policy for all checks: the quick ones in a worker, which import it from their image's folder,
and those of the operator. So this module needs nothing beside the standard library.

A drain by a check has a reason of this form, which is its owner mark:

    BASE[: DETAILS] [CONTEXT]

BASE begins with a published prefix and names the check, CONTEXT is where it ran. Only a reason that
has the whole form with the check's own base is that check's. So:

1. A drain without that mark is somebody else's: it is neither reworded nor removed.
2. A failed check drains a node that is not drained. On a drained node it changes nothing.
3. A check removes the drain with its own mark only, and only once it has passed. Absent hardware,
   an unknown result and a check that did not run are no repair.
4. While another check fails, its reason takes the place of the repaired one: the node stays
   drained.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

PREFIXES = ("[node_problem]", "[user_problem]", "[hardware_problem]", "[compute_maintenance]")
"""Published beginnings of reasons: other programs decide by them what to do with the node."""
HEALTH = "hc_program"
SLURM_JOB = "slurm_job"
REPAIRING = (HEALTH, SLURM_JOB)
"""The contexts that repair: the ones that run without a job of a user."""
CONTEXTS = ("prolog", "epilog", HEALTH, SLURM_JOB)
"""Where a check runs: around a job, as HealthCheckProgram, or as a job of its own."""
LONGEST = 256
"""Characters that are kept of details."""
_MARK = re.compile(rf"^(?P<base>.*?)(?:: .*)? \[(?:{'|'.join(CONTEXTS)})\]$", re.DOTALL)


class Outcome(Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class OnFail(Enum):
    """What a failed check does to its node."""

    NONE = "none"
    DRAIN = "drain"
    COMMENT = "comment"


class OnOk(Enum):
    """What a passed check removes from its node."""

    NONE = "none"
    UNDRAIN = "undrain"
    UNCOMMENT = "uncomment"


@dataclass(frozen=True)
class CheckResult:
    """One check's result. `base` is its part of the reason, `details` what it found."""

    base: str
    outcome: Outcome
    on_fail: OnFail = OnFail.NONE
    on_ok: OnOk = OnOk.NONE
    details: str = ""


@dataclass(frozen=True)
class NodeState:
    """What slurmctld has of a node: its DRAIN flag, its reason and its comment."""

    is_drained: bool
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Drain:
    """Set DRAIN with this reason."""

    reason: str


@dataclass(frozen=True)
class Undrain:
    """Remove the DRAIN flag, which has this reason."""

    reason: str


@dataclass(frozen=True)
class Comment:
    """Set the comment; an empty text removes it."""

    text: str


NodeChange = Drain | Undrain | Comment


def reason_text(base: str, details: str, context: str) -> str:
    """The reason of a drain or a comment, in one line of printable characters."""
    words = "".join(c if c.isprintable() else " " for c in details.replace('"', "'"))
    words = " ".join(words.split())
    if len(words) > LONGEST:
        words = f"{words[: LONGEST - 3]}..."
    return f"{base}: {words} [{context}]" if words else f"{base} [{context}]"


def is_reason_of(base: str, reason: str) -> bool:
    """Whether a reason or comment has the owner mark of the check with this base."""
    if not base or not reason.startswith(base):
        return False
    rest = reason[len(base) :]
    return rest.startswith((": ", " [")) and _MARK.match(reason) is not None


def is_reason_of_check(reason: str) -> bool:
    """Whether a reason has the owner mark of any check with a published prefix."""
    return reason.startswith(PREFIXES) and _MARK.match(reason) is not None


def next_changes(
    node: NodeState, results: Sequence[CheckResult], context: str
) -> tuple[NodeChange, ...]:
    """The changes after a run in one context: at most one of the drain and one of the comment."""
    drain = _drain_change(node, results, context)
    comment = _comment_change(node, results, context)
    return tuple(change for change in (drain, comment) if change is not None)


def _drain_change(
    node: NodeState, results: Sequence[CheckResult], context: str
) -> Drain | Undrain | None:
    failed = [one for one in results if _has_failed(one) and one.on_fail is OnFail.DRAIN]
    if not node.is_drained:
        return Drain(_reason(failed[0], context)) if failed else None
    if not _is_repaired(node.reason, results, OnOk.UNDRAIN, context):
        return None
    return Drain(_reason(failed[0], context)) if failed else Undrain(node.reason)


def _comment_change(
    node: NodeState, results: Sequence[CheckResult], context: str
) -> Comment | None:
    failed = [one for one in results if _has_failed(one) and one.on_fail is OnFail.COMMENT]
    if not node.comment:
        return Comment(_reason(failed[0], context)) if failed else None
    if not _is_repaired(node.comment, results, OnOk.UNCOMMENT, context):
        return None
    return Comment(_reason(failed[0], context) if failed else "")


def _is_repaired(mark: str, results: Sequence[CheckResult], by: OnOk, context: str) -> bool:
    """Whether the check with this mark has passed, and no entry of the same check has failed."""
    own = [one for one in results if is_reason_of(one.base, mark)]
    passed = any(one.outcome is Outcome.PASSED and one.on_ok is by for one in own)
    return context in REPAIRING and passed and not any(_has_failed(one) for one in own)


def _has_failed(one: CheckResult) -> bool:
    return one.outcome is Outcome.FAILED


def _reason(one: CheckResult, context: str) -> str:
    return reason_text(one.base, one.details, context)
