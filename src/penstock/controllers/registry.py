"""The API groups that the operator can lead, and the list of all reconcilers of each.

A new kind adds its own here; nothing else starts it.
"""

from __future__ import annotations

from functools import partial

from penstock.api.nebius.labels import NAME as NEBIUS_NAME
from penstock.controllers.caches.store import DAEMONS, WORKERS
from penstock.controllers.nebius import controllers as nebius
from penstock.controllers.nebius.checks.reconciler import ActiveCheckReconciler
from penstock.controllers.nebius.nodeset import NodeSetReconciler as NebiusNodeSetReconciler
from penstock.controllers.nebius.slurm_connection import (
    SlurmConnectionReconciler as ClusterConnectionReconciler,
)
from penstock.controllers.nebius.slurmcluster import SlurmClusterReconciler
from penstock.controllers.penstock.partition import PartitionReconciler
from penstock.controllers.runtime.apis import NEBIUS, SLINKY
from penstock.controllers.runtime.served_api import ServedApi
from penstock.controllers.slinky import controllers as slinky
from penstock.controllers.slinky.accounting import AccountingReconciler
from penstock.controllers.slinky.controller import ControllerReconciler
from penstock.controllers.slinky.loginset import LoginSetReconciler
from penstock.controllers.slinky.nodeset import NodeSetReconciler
from penstock.controllers.slinky.restapi import RestApiReconciler
from penstock.controllers.slinky.slurm_connection import SlurmConnectionReconciler
from penstock.controllers.slinky.token import TokenReconciler

SLINKY_RECONCILERS: tuple[slinky.New, ...] = (
    ControllerReconciler,
    PartitionReconciler,
    RestApiReconciler,
    LoginSetReconciler,
    NodeSetReconciler,
    SlurmConnectionReconciler,
    AccountingReconciler,
    TokenReconciler,
)
"""In the order in which they start. A Partition belongs to the cluster of a Controller."""
NEBIUS_RECONCILERS: tuple[nebius.New, ...] = (
    SlurmClusterReconciler,
    NebiusNodeSetReconciler,
    ClusterConnectionReconciler,
    ActiveCheckReconciler,
)

SERVED_APIS = (
    ServedApi(
        group=SLINKY,
        # The name that slurm-operator uses: in one namespace the two never act at the same time.
        lease="slurm-operator",
        pods=DAEMONS,
        pvcs=WORKERS,
        build=partial(slinky.build, reconcilers=SLINKY_RECONCILERS),
    ),
    ServedApi(
        group=NEBIUS,
        # The name that soperator uses, for the same reason.
        lease="e21479ae.nebius.ai",
        pods=(NEBIUS_NAME,),
        pvcs=(NEBIUS_NAME,),
        build=partial(nebius.build, reconcilers=NEBIUS_RECONCILERS),
    ),
)
