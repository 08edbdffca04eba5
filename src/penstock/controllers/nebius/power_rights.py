"""The rights of slurmctld's program that powers ephemeral nodes up and down."""

from __future__ import annotations

from dataclasses import replace

from penstock.api.nebius.names import cluster_of
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.controllers.runtime.report import Events
from penstock.kube import Client, Selector
from penstock.render.nebius.cluster import power_account
from penstock.render.nebius.inputs import ClusterInputs


class PowerRights:
    """Those of all SlurmClusters: a ServiceAccount each, with a Role, while NodeSets need them."""

    def __init__(self, context: NebiusContext, objects: ObjectStore, events: Events) -> None:
        self._client: Client = context.client
        self._objects = objects
        self._events = events

    async def apply(self, obj: SlurmCluster, cluster: ClusterInputs) -> None:
        """Create them, or delete them once no NodeSet needs them.

        With the ServiceAccount the token in slurmctld's pod ends, which its kubelet replaces only
        after most of an hour. So a cache without the NodeSets is not enough. Raises KubeError.
        """
        await self._objects.apply(obj, self._events, power_account.objects(cluster))
        unused = [
            (kind, name)
            for kind, name in power_account.removed(cluster)
            if self._objects.has_own(obj, kind, name)
        ]
        if not unused or power_account.is_own(await self._as_declared_now(obj, cluster)):
            return
        for kind, name in unused:
            await self._objects.remove(obj, self._events, kind, name)

    async def _as_declared_now(self, obj: SlurmCluster, cluster: ClusterInputs) -> ClusterInputs:
        meta = obj.metadata
        found = await self._client.list(NODE_SETS, Selector(namespace=meta.namespace))
        own = tuple(one for one in found.items if cluster_of(one) == meta.name)
        return replace(cluster, node_sets=own)
