"""The list of all reconcilers. A new kind adds its own here; nothing else starts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.penstock.partition import PartitionReconciler
from penstock.controllers.slinky.accounting import AccountingReconciler
from penstock.controllers.slinky.controller import ControllerReconciler
from penstock.controllers.slinky.loginset import LoginSetReconciler
from penstock.controllers.slinky.nodeset import NodeSetReconciler
from penstock.controllers.slinky.restapi import RestApiReconciler
from penstock.controllers.slinky.slurm_connection import SlurmConnectionReconciler
from penstock.controllers.slinky.token import TokenReconciler
from penstock.kube.runtime.declaration import Declaration

New: TypeAlias = Callable[[ClusterContext], Declaration]
RECONCILERS: tuple[New, ...] = (
    ControllerReconciler,
    PartitionReconciler,
    RestApiReconciler,
    LoginSetReconciler,
    NodeSetReconciler,
    SlurmConnectionReconciler,
    AccountingReconciler,
    TokenReconciler,
)
"""In the order in which they start."""
