"""From a SlurmCluster to the filling of its jail."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius import names
from penstock.api.nebius.labels import STOPPED
from penstock.api.nebius.slurmcluster import Maintenance, SlurmCluster
from penstock.model.jail import JailFilling, MaintenanceMode

_MODES: Final[dict[Maintenance, MaintenanceMode]] = {
    "none": MaintenanceMode.NONE,
    "downscale": MaintenanceMode.SCALE_DOWN,
    "downscaleAndDeletePopulateJail": MaintenanceMode.DELETE_JOB,
    "downscaleAndOverwritePopulateJail": MaintenanceMode.OVERWRITE_JAIL,
    "skipPopulateJail": MaintenanceMode.SKIP_JOB,
}


def maintenance_mode(declared: Maintenance) -> MaintenanceMode:
    """The maintenance mode that a SlurmCluster declares."""
    return _MODES[declared]


def is_stopped(cluster: SlurmCluster) -> bool:
    """Whether an annotation stops the cluster, whatever its maintenance."""
    return STOPPED in cluster.metadata.annotations


def cluster_mode(cluster: SlurmCluster) -> MaintenanceMode:
    """The mode in force: an annotation goes before the declared one."""
    if is_stopped(cluster):
        return MaintenanceMode.STOPPED
    return maintenance_mode(cluster.spec.maintenance)


def maintenance_in_force(cluster: SlurmCluster) -> Maintenance:
    """The same as a value of spec.maintenance."""
    return "downscale" if is_stopped(cluster) else cluster.spec.maintenance


def jail_filling(cluster: SlurmCluster) -> JailFilling:
    """How the jail of a SlurmCluster is filled."""
    mode_field = f"spec.maintenance is {cluster.spec.maintenance}"
    if is_stopped(cluster):
        mode_field = f"annotation {STOPPED} is {cluster.metadata.annotations[STOPPED]!r}"
    return JailFilling(
        job=names.populate_job(cluster.metadata.name),
        mode=cluster_mode(cluster),
        overwrite=cluster.spec.populate_jail.overwrite,
        mode_field=mode_field,
        job_field="spec.populateJail",
    )
