"""The list of all reconcilers of SlurmClusters; nothing else starts them."""

from __future__ import annotations

from functools import partial

from penstock.controllers.nebius import controllers
from penstock.controllers.nebius.backup.backup import BackupReconciler
from penstock.controllers.nebius.backup.restore import RestoreReconciler
from penstock.controllers.nebius.checks.reconciler import ActiveCheckReconciler
from penstock.controllers.nebius.jail_upgrade import JailUpgradeReconciler
from penstock.controllers.nebius.node_configurator import NodeConfiguratorReconciler
from penstock.controllers.nebius.node_outage import NodeOutageReconciler
from penstock.controllers.nebius.node_replacement import NodeReplacementReconciler
from penstock.controllers.nebius.nodeset import NodeSetReconciler
from penstock.controllers.nebius.power_state import PowerStateReconciler
from penstock.controllers.nebius.slurm_connection import SlurmConnectionReconciler
from penstock.controllers.nebius.slurmcluster import SlurmClusterReconciler

RECONCILERS: tuple[controllers.New, ...] = (
    SlurmClusterReconciler,
    NodeSetReconciler,
    PowerStateReconciler,
    SlurmConnectionReconciler,
    ActiveCheckReconciler,
    NodeConfiguratorReconciler,
    NodeOutageReconciler,
    NodeReplacementReconciler,
    BackupReconciler,
    RestoreReconciler,
    JailUpgradeReconciler,
)
"""In the order in which they start."""

build = partial(controllers.build, reconcilers=RECONCILERS)
