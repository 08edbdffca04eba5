"""A Secret of this cluster's name that another cluster generated: its key is not used.

Names of generated Secrets are made of the cluster's name, so clusters of two kinds may arrive at
the same one. Nobody chose that they share a key, and the Secret goes with its owner.
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import labels
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.catalog.reasons.keys import KeyReason

CONTROLLER: Final = "Controller"
SLURM_CLUSTER: Final = "SlurmCluster"
_GROUPS: Final = {CONTROLLER: "slinky.slurm.net", SLURM_CLUSTER: "slurm.nebius.ai"}


def foreign_key(secret: ObjectMeta, kind: str, of: ObjectMeta, advice: str) -> Finding | None:
    """Return why `of`, a cluster of this kind, does not begin with the key; None if it may.

    A Secret of the user, or of another program such as one for sealed Secrets, is used.
    """
    owner = secret.controller
    if owner is not None:
        group = owner.api_version.rpartition("/")[0]
        if owner.uid == of.uid or _GROUPS.get(owner.kind) != group:
            return None
        if (owner.kind, owner.name) != (kind, of.name):
            return _of_other(secret.name, f"{owner.kind} {owner.name}", advice)
        return Finding(
            None,
            KeyReason.CREATING,
            f"Secret {secret.name} is that of a deleted {kind} {of.name}; another one is created "
            "once Kubernetes has removed it",
        )
    # A Controller with persistence leaves its key without an owner, and continues with it.
    if kind != CONTROLLER and secret.labels.get(labels.APP_NAME) == "slurmctld":
        name = secret.labels.get(labels.APP_INSTANCE, "")
        return _of_other(secret.name, f"{CONTROLLER} {name}", advice)
    return None


def _of_other(secret: str, owner: str, advice: str) -> Finding:
    message = f"Secret {secret} was generated for {owner}, whose key stays its own. {advice}"
    return Finding(False, KeyReason.OF_OTHER_CLUSTER, message)
