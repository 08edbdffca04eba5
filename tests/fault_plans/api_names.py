"""Where the two APIs of clusters differ in what plans look for."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.nebius import names
from penstock.controllers.registry import SERVED_APIS
from penstock.controllers.runtime.apis import NEBIUS, SLINKY

_LEASES = {one.group: one.lease for one in SERVED_APIS}
CLUSTER = "slurm"
"""Name of the object that declares a cluster, one in each namespace."""

SECOND, BESIDE = "west", "east"
NEIGHBOURS = (SECOND, BESIDE)
"""Names of a second SlurmCluster and of a Slinky cluster of the same namespace: words in the names
of all their objects, and in no other names."""


@dataclass(frozen=True, slots=True)
class ApiNames:
    """Names of one API group."""

    group: str
    clusters: str
    """Resource of the objects that declare clusters."""
    startup: str
    """ConfigMap with the files in force."""
    last_known_good: str

    @property
    def lease(self) -> str:
        """The Lease of whoever leads for it."""
        return _LEASES[self.group]


OF_SLINKY = ApiNames(SLINKY, f"{SLINKY}/controllers", "slurm-config", "slurm-config-slurm")
OF_NEBIUS = ApiNames(
    NEBIUS,
    f"{NEBIUS}/slurmclusters",
    names.slurm_configs(CLUSTER),
    names.last_known_good_configs(CLUSTER),
)
