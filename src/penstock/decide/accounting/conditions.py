"""What a Controller is told of its Accounting, and when its slurmctld need not wait any longer."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.kubernetes.conditions import READY, Finding, find
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.decide.accounting.slurmdbd import PAUSE_S, REACHABLE, waited_in_vain
from penstock.decide.config.conditions import APPLIED


def findings(
    controller: Controller, accounting: Accounting | None, *, worked: bool
) -> list[Finding]:
    """Whether the Accounting that is named is there; `worked` is whether slurmctld ever has."""
    ref = controller.spec.accounting_ref
    if ref is None or accounting is not None:
        return []
    until = "nothing is accounted" if worked else "slurmctld is not started"
    return [
        Finding(
            None,
            "AccountingNotFound",
            f"spec.accountingRef: there is no Accounting {ref.name} in namespace "
            f"{controller.metadata.namespace}: {until} before it exists",
        )
    ]


def first_waits(controller: Controller, accounting: Accounting | None) -> list[Finding]:
    """What the very first start of slurmctld waits for, and whatever mounts its configuration.

    Without its Accounting, slurmctld gives the cluster an id that slurmdbd may refuse later.
    """
    if controller.spec.external or find(controller.status.conditions, APPLIED) is not None:
        return []
    return findings(controller, accounting, worked=False)


def waits(accounting: Accounting) -> list[Finding]:
    """Why slurmctld, which is not ready, may be waiting: at its first start it needs slurmdbd."""
    if serves(accounting) is not False:
        return []
    found = find(accounting.status.conditions, READY)
    said = found.message if found is not None else "nothing is known of it yet"
    told = f"At its first start slurmctld waits for Accounting {accounting.metadata.name}: {said}"
    return [Finding(None, "WaitingForAccounting", told)]


def serves(accounting: Accounting) -> bool | None:
    """Whether slurmdbd takes records; None of an outside one, of which nothing is known here."""
    if accounting.spec.external:
        return None
    conditions = accounting.status.conditions
    found = find(conditions, REACHABLE) or find(conditions, READY)
    return found is not None and found.status == "True"


def in_vain(accounting: Accounting, pods: Sequence[Pod], now: float) -> Pod | None:
    """A pod of slurmctld that ended while it waited for slurmdbd, and may start now."""
    return waited_in_vain(pods, serves=serves(accounting), now=now)


def again(accounting: Accounting | None) -> float | None:
    """Seconds after which to look for such a pod without being told that slurmdbd is there."""
    return PAUSE_S if accounting is not None and accounting.spec.external else None
