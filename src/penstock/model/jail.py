"""The jail of a cluster: the root volume that its logins and jobs share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MaintenanceMode(Enum):
    """What a cluster's maintenance does about its pods and about the Job that fills the jail."""

    NONE = "none"
    SCALE_DOWN = "scale down"
    DELETE_JOB = "scale down and delete the Job"
    OVERWRITE_JAIL = "scale down and overwrite the jail"
    SKIP_JOB = "skip the Job"
    STOPPED = "scale down and leave the jail alone"

    @property
    def scales_down(self) -> bool:
        """Whether the cluster runs no daemons and no logins."""
        return self not in {MaintenanceMode.NONE, MaintenanceMode.SKIP_JOB}


class UpgradeAction(Enum):
    """The Jobs of a JailUpgrade, by the first argument of their program."""

    COMPARE = "compare"
    APPLY = "apply"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class JailFilling:
    """How the jail of one cluster is filled.

    `job` is the name of the Job. `overwrite` is whether a Job that is created replaces the files of
    a filled jail. `mode_field` and `job_field` are how messages name the fields that declare the
    mode and the Job.
    """

    job: str
    mode: MaintenanceMode
    overwrite: bool
    mode_field: str
    job_field: str
