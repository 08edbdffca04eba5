"""The operators of the two APIs, as their charts install them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.controllers.runtime import apis
from penstock.local import install


@dataclass(frozen=True)
class Target:
    """One of them: its API group, the file with its rights, and its account."""

    api: str
    """Of the option --apis."""
    manifest: str
    namespace: str
    account: str
    nodesets: str
    """The controller of NodeSets, in metrics."""


SLINKY = Target(apis.SLINKY, "deploy/operator.yaml", install.SYSTEM, "penstock-operator", "nodeset")
NEBIUS = Target(
    apis.NEBIUS, "deploy/soperator.yaml", "soperator", "soperator-manager", "slurmcluster-nodeset"
)
