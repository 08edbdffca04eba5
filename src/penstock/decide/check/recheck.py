"""Nodes that a check drained, while it runs on them again.

slurmctld starts no job on a drained node. So the program that submits the jobs puts such a node
into a reservation of the check alone, resumes it, and submits a job to the reservation. The name of
the reservation is its owner mark:

    activecheck.CHECK.NODE

The reservation has no end, so a user's job never runs there before the check has completed. When no
job of the check is left, the operator ends it: a node on which a job has completed goes back into
service, and any other one is drained again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.decide.check.reaction import CheckPolicy, reason
from penstock.decide.check.results import Result
from penstock.decide.drain.check_drain import SLURM_JOB, NodeState, reason_text
from penstock.slurm.job_result import JobEnd

PREFIX = "activecheck."
_UNKNOWN = "[node_problem]"
"""Prefix of a drain whose check has none any more."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """A reservation of a check. `began` is in Unix seconds."""

    name: str
    node: str
    began: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a reservation: the node is drained first, with this reason, unless it is empty."""

    recheck: Recheck
    drain: str = ""
    in_service: bool = False
    """Whether the node takes jobs of users from then on."""


def recheck_of(check: str, reservation: str, began: int) -> Recheck | None:
    """The recheck that a reservation is for; None for any other reservation."""
    start = f"{PREFIX}{check}."
    node = reservation.removeprefix(start)
    if node in ("", reservation) or "." in node:
        return None
    return Recheck(reservation, node, began)


def ending(
    recheck: Recheck, node: NodeState, policy: CheckPolicy, results: Iterable[Result]
) -> Ending:
    """How a reservation ends of which no job is left, by the results of its check.

    A drain that somebody else has set meanwhile stays as it is.
    """
    here = [one for one in results if recheck.node in one.nodes]
    if node.is_drained:
        return Ending(recheck)
    if _has_passed(recheck, here):
        return Ending(recheck, in_service=True)
    failed = [one for one in here if one.end is JobEnd.FAILED]
    if failed and policy.on_failure:
        last = max(failed, key=lambda one: (one.ended, one.job))
        return Ending(recheck, reason(policy, last))
    base = f"{policy.on_failure or _UNKNOWN} {policy.name}"
    return Ending(recheck, reason_text(base, "not confirmed", SLURM_JOB))


def _has_passed(recheck: Recheck, results: Iterable[Result]) -> bool:
    """Whether the last job since the reservation began that shows the node's state completed."""
    shown = [
        one
        for one in results
        if one.end in (JobEnd.COMPLETED, JobEnd.FAILED) and one.ended >= recheck.began
    ]
    last = max(shown, key=lambda one: (one.ended, one.job), default=None)
    return last is not None and last.end is JobEnd.COMPLETED


def rechecks(check: str, reservations: Mapping[str, int]) -> tuple[Recheck, ...]:
    """The rechecks of a check, out of all reservations by name with their begin."""
    found = (recheck_of(check, name, began) for name, began in sorted(reservations.items()))
    return tuple(one for one in found if one is not None)
