"""What reconcilers of `slurm.nebius.ai` work with beyond a context."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.slurm_connections import SlurmConnections


@dataclass(frozen=True, slots=True)
class NebiusContext(Context):
    """A context with the caches of these kinds, their clusters and the connections to Slurm."""

    caches: NebiusCaches
    clusters: NebiusClusters
    connections: SlurmConnections
