"""What `penstock plan` reports of a change, on a copy of a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from fault_plans.world import World
from penstock.api.kubernetes.meta import Json
from penstock.preview.apis import PREVIEWED
from penstock.preview.dry_run import DryRunObject
from penstock.preview.effect import Effects
from penstock.preview.effects import effects
from penstock.preview.simulated_run import simulate_operator
from penstock.preview.state import ClusterCopy, Key, Slurm
from penstock.slurm.state import Job, Node

SLINKY_PREVIEW, NEBIUS_PREVIEW = PREVIEWED


def effects_of(
    live: ClusterCopy,
    wanted: Iterable[DryRunObject],
    now: float,
    api: object = SLINKY_PREVIEW,
) -> Effects:
    """What the operator of an API would do with these objects, beginning at `now`."""
    (of,) = (one for one in PREVIEWED if one is api)
    return effects(live, simulate_operator(live, wanted, of, now), of)


def copied(world: World, cluster: str, jobs: Iterable[Job] = ()) -> ClusterCopy:
    """What `penstock plan` would copy of a world with this one cluster."""
    store, ctld = world.server.store, world.slurm.ctld
    objects: dict[str, dict[Key, Json]] = {
        resource: {
            (one["metadata"].get("namespace", ""), one["metadata"]["name"]): deepcopy(one)
            for one in found
        }
        for resource in store.resources
        if (found := world.server.objects(resource))
    }
    nodes = tuple(
        Node(
            node.name,
            frozenset(ctld.states(node)),
            comment=node.comment,
            slurmd_start_time=node.started,
            partitions=tuple(node.partitions),
            address=node.address,
        )
        for node in ctld.nodes.values()
    )
    return ClusterCopy(objects, {cluster: Slurm(nodes, tuple(jobs))})
