"""Defaults of a SlurmCluster that differ between the versions of the original.

The API server stores none of them: an object of one version would be given the value of another.
A SlurmCluster with `spec.slurmNodes.worker` has the shape of versions up to 2.0 and the defaults of
1.23; any other one has those of 5.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from penstock.api.nebius.slurm_nodes import OpenMetrics
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.api.nebius.worker import CgroupVersion

GatherType = Literal["jobacct_gather/linux", "jobacct_gather/cgroup", "jobacct_gather/none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedValues:
    """Values of the fields whose default depends on the version."""

    cluster_type: Literal["gpu", "cpu"] | None
    """None where NodeSets have it."""
    cgroup_version: CgroupVersion
    min_job_age: int
    job_acct_gather_type: GatherType
    nccl_output_directory: str
    pyxis_importer_path: str
    pyxis_container_image_save: str
    open_metrics: OpenMetrics


OLDER: Final = VersionedValues(
    cluster_type="gpu",
    cgroup_version="v2",
    min_job_age=28800,
    job_acct_gather_type="jobacct_gather/cgroup",
    nccl_output_directory="/opt/soperator-outputs/nccl_logs",
    pyxis_importer_path="",
    pyxis_container_image_save="/var/cache/enroot-container-images/",
    open_metrics=OpenMetrics(enabled=False),
)
CURRENT: Final = VersionedValues(
    cluster_type=None,
    cgroup_version="v2",
    min_job_age=1800,
    job_acct_gather_type="jobacct_gather/none",
    nccl_output_directory="/opt/soperator-outputs/local/nccl_logs",
    pyxis_importer_path="/opt/slurm_scripts/pyxis_caching_importer.sh",
    pyxis_container_image_save="",
    open_metrics=OpenMetrics(),
)


def has_older_shape(spec: SlurmClusterSpec) -> bool:
    """Whether the workers are part of the SlurmCluster, as up to version 2.0."""
    return spec.slurm_nodes.worker is not None


def versioned_values(spec: SlurmClusterSpec) -> VersionedValues:
    """The values that apply: those of the object, else the defaults of its version."""
    worker = spec.slurm_nodes.worker
    defaults = CURRENT if worker is None else OLDER
    pyxis, nccl = spec.plug_stack_config.pyxis, spec.plug_stack_config.nccl_debug
    age, controller = spec.slurm_config.min_job_age, spec.slurm_nodes.controller
    gather = spec.slurm_nodes.accounting.slurm_config.job_acct_gather_type
    return VersionedValues(
        cluster_type=None if worker is None else spec.cluster_type or defaults.cluster_type,
        cgroup_version=spec.cgroup_version if worker is None else worker.cgroup_version,
        min_job_age=defaults.min_job_age if age is None else age,
        job_acct_gather_type=gather or defaults.job_acct_gather_type,
        nccl_output_directory=_given(nccl.output_directory, defaults.nccl_output_directory),
        pyxis_importer_path=_given(pyxis.importer_path, defaults.pyxis_importer_path),
        # Version 5.0 ignores the field.
        pyxis_container_image_save=""
        if worker is None
        else _given(pyxis.container_image_save, defaults.pyxis_container_image_save),
        open_metrics=controller.open_metrics or defaults.open_metrics,
    )


def _given(value: str | None, default: str) -> str:
    return default if value is None else value
