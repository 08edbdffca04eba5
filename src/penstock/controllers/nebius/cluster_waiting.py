"""What the pods of a SlurmCluster wait for."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.runbook import without_address
from penstock.decide.jail.populate import POPULATED


def jail_wait(cluster: SlurmCluster | None) -> Finding | None:
    """Why workers cannot start, by the condition of their SlurmCluster about the jail."""
    if cluster is None:
        return None
    found = find(cluster.status.conditions, POPULATED)
    if found is not None and found.status == "True":
        return None
    words = without_address(found.message) if found is not None else "the jail is not filled"
    return Finding(None, JailReason.NOT_POPULATED, f"Workers wait for the jail: {words}")
