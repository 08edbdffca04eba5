"""Connects to the Slurm of each Controller, by its RestApis and its JWT key."""

from __future__ import annotations

from typing import Any

from penstock.api.kubernetes.kinds import SECRETS, SERVICES, Service
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.observed.references import controllers_using_secret
from penstock.controllers.observed.watching import own_key, spec_changed
from penstock.controllers.partition.context import ClusterContext
from penstock.kube import Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch


def _remembers_other_slurm(old: NodeSet | None, new: NodeSet | None) -> bool:
    """Whether a NodeSet came or went that remembers how its external slurmctld is queried."""
    before = old.status.external_slurm if old is not None else None
    after = new.status.external_slurm if new is not None else None
    return (before is None) != (after is None)


def clusters_served_by(service: Service, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose slurmrestd a Service has, or had, by its name.

    By name, as a Service that took the place of ours has another owner.
    """
    space, name = service.metadata.namespace, service.metadata.name
    restapis = lookup.all(RESTAPIS)
    return [
        key
        for one in restapis
        if one.metadata.namespace == space and names.restapi_service(one) == name
        for key in cluster_keys(one)
    ]


class SlurmConnectionReconciler:
    """Keeps one connection for each Controller."""

    name: str = "slurm"
    watches: tuple[Watch[Any], ...] = (
        Watch(CONTROLLERS, own_key, spec_changed),
        Watch(RESTAPIS, cluster_keys, spec_changed),
        # The connection to an external slurmctld is needed until the last of them is gone.
        Watch(NODESETS, cluster_keys, _remembers_other_slurm),
        Watch(SECRETS, controllers_using_secret),
        # No token goes to one that is not ours.
        Watch(SERVICES, clusters_served_by),
    )
    signals: tuple[Signal, ...] = ()

    def __init__(self, context: ClusterContext) -> None:
        self._connections = context.connections

    async def run(self, key: str, /) -> Result:
        """Follow the RestApis and the JWT key of one Controller."""
        return await self._connections.reconcile(key)
