"""What a fleet needs to know of the API of its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import labels as nebius_labels
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.runtime import apis
from penstock.local import install


@dataclass(frozen=True)
class Target:
    """One of the two APIs: its operator, the kinds of cluster and workers, and their labels."""

    api: str
    """Of the option --apis."""
    manifest: str
    """With the operator's rights."""
    namespace: str
    """Of the operator."""
    account: str
    clusters: Resource[Any]
    nodesets: Resource[Any]
    workers: str
    """Label selector of worker pods."""
    nodeset: str
    """Label of a worker pod with the name of its NodeSet."""
    rest: str
    """Name of slurmrestd's Service, after that of the cluster."""


SLINKY = Target(
    apis.SLINKY,
    "deploy/operator.yaml",
    install.SYSTEM,
    "penstock-operator",
    CONTROLLERS,
    NODESETS,
    f"{app_labels.APP_NAME}=slurmd",
    app_labels.APP_INSTANCE,
    "-restapi",
)
NEBIUS = Target(
    apis.NEBIUS,
    "deploy/soperator.yaml",
    "soperator",
    "soperator-manager",
    SLURM_CLUSTERS,
    NODE_SETS,
    f"{app_labels.APP_COMPONENT}=nodeset",
    nebius_labels.NODE_SET,
    "-rest-svc",
)
