"""Connects to the Slurm of each Controller, by its RestApis and its JWT key."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.kinds import SECRETS
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.observed.references import controllers_using_secret
from penstock.controllers.observed.watching import own_key, spec_changed
from penstock.controllers.partition.context import ClusterContext
from penstock.kube import Result
from penstock.kube.runtime.declaration import Signal, Watch


def _remembers_other_slurm(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether a NodeSet came or went that remembers how its external slurmctld is queried."""
    before = old.status.external_slurm if old is not None else None
    after = new.status.external_slurm if new is not None else None
    return (before is None) != (after is None)


class SlurmConnectionReconciler:
    """Keeps one connection for each Controller."""

    name: str = "slurm"
    watches: tuple[Watch[Any], ...] = (
        Watch(CONTROLLERS, own_key, spec_changed),
        Watch(RESTAPIS, cluster_keys, spec_changed),
        # The connection to an external slurmctld is needed until the last of them is gone.
        Watch(NODESETS, cluster_keys, _remembers_other_slurm),
        Watch(SECRETS, controllers_using_secret),
    )
    signals: tuple[Signal, ...] = ()

    def __init__(self, context: ClusterContext) -> None:
        self._connections = context.connections

    async def run(self, key: str, /) -> Result:
        """Follow the RestApis and the JWT key of one Controller."""
        return await self._connections.reconcile(key)
