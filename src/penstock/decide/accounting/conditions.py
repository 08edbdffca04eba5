"""Conditions of a cluster about its accounting, and when slurmctld need not wait for slurmdbd."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.kubernetes.conditions import READY, Finding, find
from penstock.api.kubernetes.kinds import Pod
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.catalog.runbook import without_address
from penstock.decide.accounting.slurmdbd import PAUSE_S, REACHABLE, waited_in_vain
from penstock.decide.config import conditions as config_findings
from penstock.model.cluster import AccountingLink, Cluster


def findings(link: AccountingLink | None, *, has_worked: bool) -> list[Finding]:
    """Whether the Accounting that a cluster names exists; `has_worked` is about slurmctld."""
    if link is None or link.exists:
        return []
    until = "no job is recorded" if has_worked else "slurmctld is not started"
    return [
        Finding(
            None,
            AccountingReason.NOT_FOUND,
            f"spec.accountingRef: there is no Accounting {link.name} in namespace "
            f"{link.namespace}, so {until}. Create it, or remove the reference",
        )
    ]


def first_waits(cluster: Cluster) -> list[Finding]:
    """Why slurmctld is not started the first time, nor whatever mounts its configuration.

    Without its Accounting, slurmctld gives the cluster an id that slurmdbd may reject later.
    """
    if cluster.external or config_findings.has_worked(cluster.conditions):
        return []
    return findings(cluster.accounting, has_worked=False)


def waits(link: AccountingLink) -> list[Finding]:
    """Why a slurmctld that is not ready may be waiting: its first start needs slurmdbd."""
    if is_serving(link) is not False:
        return []
    found = find(link.conditions, READY)
    said = without_address(found.message) if found is not None else "nothing is known of it yet"
    message = f"At its first start slurmctld waits for Accounting {link.name}: {said}"
    return [Finding(None, AccountingReason.WAITING, message)]


def is_serving(link: AccountingLink) -> bool | None:
    """Whether slurmdbd accepts records; None of an external one, whose state is not known here."""
    if link.external:
        return None
    found = find(link.conditions, REACHABLE) or find(link.conditions, READY)
    return found is not None and found.status == "True"


def in_vain(link: AccountingLink, pods: Sequence[Pod], now: float) -> Pod | None:
    """A pod of slurmctld that ended while it waited for slurmdbd, and may start now."""
    return waited_in_vain(pods, serves=is_serving(link), now=now)


def requeue_after(link: AccountingLink | None) -> float | None:
    """Seconds until the next check for such a pod, where no condition shows slurmdbd's start."""
    return PAUSE_S if link is not None and link.external else None
