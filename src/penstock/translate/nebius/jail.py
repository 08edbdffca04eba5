"""From a SlurmCluster to the filling of its jail."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius import names
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


def jail_filling(cluster: SlurmCluster) -> JailFilling:
    """How the jail of a SlurmCluster is filled."""
    declared = cluster.spec.maintenance
    return JailFilling(
        job=names.populate_job(cluster.metadata.name),
        mode=maintenance_mode(declared),
        overwrite=cluster.spec.populate_jail.overwrite,
        mode_field=f"spec.maintenance is {declared}",
        job_field="spec.populateJail",
    )
