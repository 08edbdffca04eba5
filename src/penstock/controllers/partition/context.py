"""What reconcilers of a cluster work with beyond Kubernetes: Slurm and its partitions."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.slinky_endpoints import ControllerEndpoints
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.runtime.slinky_context import SlinkyContext
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.render.slinky.inputs import ClusterInputs


@dataclass(frozen=True, slots=True)
class ClusterContext(SlinkyContext):
    """A context with the connections to Slurm and what all clusters share of partitions."""

    connections: SlurmConnections
    endpoints: ControllerEndpoints
    changes: PartitionChanges[Controller, ClusterInputs]
    drift: PartitionDrift[Controller, ClusterInputs]
