"""The caches of the kinds that a Slinky cluster is declared with, and who belongs to whom."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import Pod
from penstock.api.penstock.partition import PARTITIONS
from penstock.api.slinky.accounting import ACCOUNTINGS
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.api.slinky.restapi import RESTAPIS
from penstock.api.slinky.token import TOKENS
from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.members import (
    LOGINSETS_BY_CLUSTER,
    NODESETS_BY_CLUSTER,
    PARTITIONS_BY_CLUSTER,
    RESTAPIS_BY_CLUSTER,
    ClusterMember,
    cluster_keys,
    worker_of,
)


class SlinkyCaches(KubernetesCaches):
    """Indexes of members have the key of their Controller."""

    def __init__(self, store: CacheStore) -> None:
        super().__init__(store)
        self.controllers = store.of(CONTROLLERS, raw=True)
        self.nodesets = store.of(NODESETS, raw=True)
        self.restapis = store.of(RESTAPIS, raw=True)
        self.loginsets = store.of(LOGINSETS, raw=True)
        self.accountings = store.of(ACCOUNTINGS, raw=True)
        self.tokens = store.of(TOKENS)
        self.partitions = store.of(PARTITIONS)
        self.nodesets_of = store.index(NODESETS_BY_CLUSTER)
        self.restapis_of = store.index(RESTAPIS_BY_CLUSTER)
        self.loginsets_of = store.index(LOGINSETS_BY_CLUSTER)
        self.partitions_of = store.index(PARTITIONS_BY_CLUSTER)
        self.claims_of = self.claims.index(worker_of)

    def controller_of(self, member: ClusterMember) -> Controller | None:
        """The Controller that a NodeSet, RestApi or LoginSet refers to, if it exists."""
        return next(filter(None, map(self.controllers.get, cluster_keys(member))), None)

    def workers_of(self, nodeset: NodeSet) -> tuple[Pod, ...]:
        """The pods that a NodeSet controls."""
        return self.pods_of.get(owned_by(NODESETS, nodeset))
