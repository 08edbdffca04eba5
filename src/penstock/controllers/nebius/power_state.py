"""NodeSetPowerState: the ephemeral nodes of a NodeSet that have a pod.

Slurm's programs for power saving write spec.activeNodes. The operator creates the object, corrects
it where a call of theirs was lost, and writes its status.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.power_state import POWER_STATES, NodeSetPowerState
from penstock.base.text import list_some
from penstock.catalog.event import Event
from penstock.catalog.reasons.partition import PartitionReason
from penstock.catalog.reasons.power import PowerReason
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import NODE_SETS_BY_CLUSTER
from penstock.controllers.observed.watching import own_key
from penstock.controllers.runtime.reconciler import Reconciler
from penstock.controllers.runtime.signals import SLURM
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.controllers.workers.caches import owner_of
from penstock.decide.nodeset.active_nodes import active_nodes, first_active, left_active
from penstock.kube import AlreadyExistsError, ConflictError, NotFoundError, Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.slurm.known import Known
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.state import Node


def power_states_of(key: str, lookup: Lookup) -> list[str]:
    """For signals: those of the NodeSets of a SlurmCluster, whose names they have."""
    return [
        one.metadata.key for one in lookup.by(NODE_SETS_BY_CLUSTER, key) if one.spec.ephemeral_nodes
    ]


class PowerStateReconciler(Reconciler[NodeSetPowerState]):
    """Brings the NodeSetPowerStates of ephemeral NodeSets into being, and keeps them true."""

    name = "slurmcluster-powerstate"
    resource = POWER_STATES
    watches = (Watch(POWER_STATES, own_key), Watch(NODE_SETS, own_key))
    signals = (Signal(SLURM, power_states_of),)

    def __init__(self, context: NebiusContext) -> None:
        super().__init__(context)
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections

    async def reconcile(self, key: str) -> Result:
        """Create the object of an ephemeral NodeSet, or reconcile the one that exists."""
        node_set = self._caches.node_sets.get(key)
        if node_set is not None and _needs(node_set) and self._cache.get(key) is None:
            await self._create(node_set)
            return Result()
        return await super().reconcile(key)

    async def reconcile_object(self, obj: NodeSetPowerState) -> list[Finding]:
        """Take it over where Slurm's program created it, and correct it by the states of nodes."""
        node_set = self._caches.node_sets.get(obj.metadata.key)
        name = obj.metadata.name
        if node_set is None:
            words = (
                f"There is no NodeSet {name} in this namespace. Create it, or delete this object"
            )
            return [Finding(False, PartitionReason.NODE_SET_NOT_FOUND, words)]
        if not node_set.spec.ephemeral_nodes:
            words = f"spec.ephemeralNodes of NodeSet {name} is false: all its nodes have a pod"
            return [Finding(True, PowerReason.NOT_EPHEMERAL, words)]
        if _needs(node_set):
            await self._correct(obj, node_set)
        return [_finding(obj, node_set)]

    def status(self, obj: NodeSetPowerState) -> Status:
        """With the number of nodes that are to have a pod."""
        node_set = self._caches.node_sets.get(obj.metadata.key)
        count = 0
        if node_set is not None and node_set.spec.ephemeral_nodes:
            size = node_set.spec.replicas
            count = sum(0 <= number < size for number in obj.spec.active_nodes)
        return replace(obj.status, active_count=count)

    async def _create(self, node_set: NodeSet) -> None:
        spec = node_set.spec
        if node_set.status.workers is None:
            active = first_active(spec.replicas, spec.initial_number_ephemeral_nodes)
        else:
            active = sorted(await self._left(node_set))
        meta = object_metadata(
            node_set.metadata.name, node_set.metadata.namespace, _labels(node_set), owner(node_set)
        )
        manifest: Json = {
            "apiVersion": POWER_STATES.api_version,
            "kind": POWER_STATES.kind,
            "metadata": meta,
            "spec": {"nodeSetRef": node_set.metadata.name, "activeNodes": list(active)},
        }
        try:
            await self.client.create(POWER_STATES, manifest)
        except AlreadyExistsError:
            # Slurm's program was faster: its watch event starts the next reconcile.
            return

    async def _correct(self, obj: NodeSetPowerState, node_set: NodeSet) -> None:
        """One write for all that is to change; a conflict means that Slurm's program was faster."""
        workers, meta = self._clusters.worker_set(node_set), obj.metadata
        active = set(obj.spec.active_nodes)
        patch: Json = {}
        if meta.controller is None:
            # Slurm's program created it, with the nodes of its call only.
            active |= await self._left(node_set)
            patch["labels"] = {**meta.labels, **_labels(node_set)}
            patch["ownerReferences"] = [owner(node_set)]
        link = self._link(node_set)
        nodes = link.mirror.snapshot.nodes if link is not None else None
        size = workers.power_saved
        known: Mapping[str, Node] = nodes.value if isinstance(nodes, Known) else {}
        found = active_nodes(active, size, workers.names, known)
        if set(found.wanted) != active and link is not None:
            # A job may have got the node since: its program has just written what this would undo.
            found = active_nodes(active, size, workers.names, await _nodes_now(link.client))
        if not patch and set(found.wanted) == set(obj.spec.active_nodes):
            return
        patch |= {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": patch, "spec": {"activeNodes": list(found.wanted)}}
        try:
            await self.client.patch(POWER_STATES, meta.namespace, meta.name, body)
        except (ConflictError, NotFoundError):
            # A watch event starts the next reconcile.
            return
        for numbers, words in ((found.resumed, "up"), (found.suspended, "down")):
            if numbers:
                shown = list_some([workers.names.host(number) for number in numbers])
                note = f"slurmctld powers {words} {shown}: corrected spec.activeNodes"
                self.events.normal(obj, Event.POWER_STATE_CORRECTED, note, "Update")

    async def _left(self, node_set: NodeSet) -> frozenset[int]:
        """The active ordinals, as far as pods that stay and slurmctld show them."""
        workers = self._clusters.worker_set(node_set)
        pods = self._caches.pods_of.get(owner_of(workers))
        found = (
            workers.names.ordinal_of(pod.metadata.name) for pod in pods if not pod.metadata.deleting
        )
        numbers = [number for number in found if number is not None]
        link = self._link(node_set)
        nodes = await _nodes_now(link.client) if link is not None and numbers else {}
        return left_active(numbers, node_set.spec.replicas, workers.names, nodes)

    def _link(self, node_set: NodeSet) -> SlurmConnection | None:
        return self._connections.get(f"{node_set.metadata.namespace}/{names.cluster_of(node_set)}")


async def _nodes_now(client: Slurmrestd | None) -> dict[str, Node]:
    """The nodes as slurmctld has them at this moment; none where it does not answer."""
    try:
        listing = await client.nodes() if client is not None else None
    except SlurmError:
        return {}
    return {one.name: one for one in listing.items} if listing is not None else {}


def _needs(node_set: NodeSet) -> bool:
    return node_set.spec.ephemeral_nodes and not node_set.metadata.deleting


def _labels(node_set: NodeSet) -> dict[str, str]:
    return {labels.NODE_SET: node_set.metadata.name}


def _finding(obj: NodeSetPowerState, node_set: NodeSet) -> Finding:
    size, name = node_set.spec.replicas, node_set.metadata.name
    beyond = sorted(number for number in obj.spec.active_nodes if number >= size)
    if beyond:
        words = (
            f"spec.activeNodes has {list_some([str(number) for number in beyond])}, and NodeSet "
            f"{name} has ordinals below {size}: they get no pod. Remove them, or raise "
            "spec.replicas"
        )
        return Finding(False, PowerReason.OUT_OF_RANGE, words)
    words = f"{len(obj.spec.active_nodes)} active nodes reconciled"
    return Finding(True, PowerReason.RECONCILED, words)
