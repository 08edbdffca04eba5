"""What reconcilers of `slurm.nebius.ai` work with beyond a context."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.partition.changes import PartitionChanges
from penstock.controllers.partition.drift import PartitionDrift
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.slurm_connections import SlurmConnections
from penstock.render.nebius.config.inputs import ConfigInputs


@dataclass(frozen=True, slots=True)
class NebiusContext(Context):
    """A context with the caches of these kinds, their clusters, and the Slurm of each."""

    caches: NebiusCaches
    clusters: NebiusClusters
    connections: SlurmConnections
    changes: PartitionChanges[SlurmCluster, ConfigInputs]
    drift: PartitionDrift[SlurmCluster, ConfigInputs]
