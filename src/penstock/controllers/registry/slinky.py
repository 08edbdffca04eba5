"""The list of all reconcilers of Slinky's clusters; nothing else starts them."""

from __future__ import annotations

from functools import partial

from penstock.controllers.penstock.partition import PartitionReconciler
from penstock.controllers.slinky import controllers
from penstock.controllers.slinky.accounting import AccountingReconciler
from penstock.controllers.slinky.controller import ControllerReconciler
from penstock.controllers.slinky.loginset import LoginSetReconciler
from penstock.controllers.slinky.nodeset import NodeSetReconciler
from penstock.controllers.slinky.restapi import RestApiReconciler
from penstock.controllers.slinky.slurm_connection import SlurmConnectionReconciler
from penstock.controllers.slinky.token import TokenReconciler

RECONCILERS: tuple[controllers.New, ...] = (
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

build = partial(controllers.build, reconcilers=RECONCILERS)
