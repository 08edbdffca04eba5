"""What reconcilers of Slinky's kinds work with beyond a context."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.controllers.observed.cluster_state import RejectedFiles
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.runtime.reconciler import Context
from penstock.kube.runtime.state import StateByUid


@dataclass(frozen=True, slots=True)
class SlinkyContext(Context):
    """A context with the caches of Slinky's kinds and the clusters that they declare."""

    caches: SlinkyCaches
    clusters: SlinkyClusters
    rejected_files: StateByUid[RejectedFiles]
