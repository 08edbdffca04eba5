"""Registration of a cluster with slurmdbd: its condition, and when slurmctld registers again.

slurmctld registers when it starts or is reconfigured (seen with 26.05). One that did so while
slurmdbd was away, or whose database was replaced by an empty one, never does it again by itself,
and `sacctmgr show cluster` lacks it or shows no control host. A reconfigure registers it.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.slurm.accounting_registration import Registration
from penstock.slurm.known import Fact, Known, Unknown

REGISTERED = ConditionType.ACCOUNTING_REGISTERED
PATIENCE_S = 8.0
"""For so long slurmctld may be about to register by itself."""
FIRST_S = 20.0
"""Between the first reconfigure and the second; each pause is twice the one before."""
LONGEST_S = 600.0


@dataclass(frozen=True, slots=True)
class RegistrationView:
    """What is known of one cluster's registration. Times are monotonic seconds."""

    cluster: str
    slurmdbd: str
    """Host and port of slurmdbd."""
    registration: Fact[Registration]
    settled: bool
    """Whether slurmctld serves, with the active configuration that names this slurmdbd."""
    attempts: int = 0
    """Reconfigures so far, and when the last one was."""
    attempted_at: float = float("-inf")
    external: bool = False


def registers_again(view: RegistrationView, now: float) -> bool:
    """Whether slurmctld is to be reconfigured now, so that it registers."""
    if view.external or not view.settled or not _is_missing(view.registration):
        return False
    return now >= _due_at(view)


def requeue_after(view: RegistrationView, now: float) -> float | None:
    """Seconds until the next reconfigure is due; None when none is."""
    if view.external or not view.settled or not _is_missing(view.registration):
        return None
    return max(0.5, _due_at(view) - now)


def is_registered(found: Fact[Registration]) -> bool:
    """Return whether slurmdbd lists the cluster with a control host."""
    return isinstance(found, Known) and found.value.complete


def finding(view: RegistrationView) -> Finding:
    """The condition AccountingRegistered."""
    found, where = view.registration, f"slurmdbd at {view.slurmdbd}"
    if isinstance(found, Unknown):
        message = f"Whether {where} has cluster {view.cluster} registered is not known: {found.why}"
        return Finding(
            None,
            AccountingReason.REGISTRATION_UNKNOWN,
            message,
            type=REGISTERED,
            excluded_from_ready=True,
        )
    if found.value.complete:
        message = f"{where} has cluster {view.cluster} registered"
        return Finding(
            True, AccountingReason.REGISTERED, message, type=REGISTERED, excluded_from_ready=True
        )
    return Finding(
        False,
        AccountingReason.NOT_REGISTERED,
        _missing(view),
        type=REGISTERED,
        excluded_from_ready=True,
    )


def ready(view: RegistrationView) -> list[Finding]:
    """What the missing registration means for Ready: jobs run, but nothing of them is recorded."""
    if not _is_missing(view.registration):
        return []
    return [Finding(None, AccountingReason.ACCOUNTING_NOT_REGISTERED, _missing(view))]


def _missing(view: RegistrationView) -> str:
    message = f"slurmdbd at {view.slurmdbd} does not have cluster {view.cluster} registered"
    if view.external:
        step = "run 'scontrol reconfigure' on its slurmctld, which then registers"
    elif view.attempts < 2:
        step = "the operator reconfigures slurmctld, which then registers"
    else:
        step = "reconfiguring slurmctld did not help; see the logs of slurmctld and slurmdbd"
    return f"{message}, so no records of its jobs are kept there: {step}"


def _is_missing(found: Fact[Registration]) -> bool:
    return isinstance(found, Known) and not found.value.complete


def _due_at(view: RegistrationView) -> float:
    found = view.registration
    since = found.value.since if isinstance(found, Known) else None
    at = (since or 0.0) + PATIENCE_S
    if view.attempts:
        pause = min(FIRST_S * 2 ** (view.attempts - 1), LONGEST_S)
        at = max(at, view.attempted_at + pause)
    return at
