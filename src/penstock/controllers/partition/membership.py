"""Features of nodes that put single nodes into partitions, by way of slurmctld's node sets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.model.cluster import Cluster
from penstock.render.config import partition as render
from penstock.slurm.known import Unknown
from penstock.slurm.partition.declaration import PREFIX, feature
from penstock.slurm.partition.declaration import node_set as node_set_of
from penstock.slurm.partition.update import configured
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError, SlurmError
from penstock.slurm.versions import PARTITION_CALLS_SINCE


def _nobody() -> dict[str, frozenset[str]]:
    return {}


@dataclass(frozen=True, slots=True)
class Marked:
    """The nodes by node set, and why not all of them could be marked (empty when they were)."""

    members: Mapping[str, frozenset[str]] = field(default_factory=_nobody)
    trouble: str = ""
    unread: frozenset[str] = frozenset()
    """Partitions whose nodes changed by this, which slurmctld sees when it is reconfigured."""
    unmoved: frozenset[str] = frozenset()
    """Partitions whose nodes changed and that slurmctld could not be asked to change."""


async def mark(
    link: SlurmConnection,
    model: Cluster,
    kubernetes: Mapping[str, render.Worker],
    kept: Collection[str],
    again: frozenset[str] = frozenset(),
) -> Marked:
    """Give nodes the feature of each partition that they belong to one by one, and take it.

    `kubernetes` has the pods by Slurm node. Partitions that are `kept` lose no node. `again` are
    those that an earlier call left unmoved.
    """
    nodes = link.mirror.snapshot.nodes
    client = link.client
    if isinstance(nodes, Unknown) or client is None:
        return Marked(unmoved=again)
    wanted: dict[str, frozenset[str]] = {}
    sets: dict[str, str] = {}
    for one in render.served(model):
        if render.marked(model, one):
            name = one.name
            wanted[feature(name)] = render.members(model, one, nodes.value, kubernetes)
            words = [*render.set_names(model, one), node_set_of(name)]
            sets[feature(name)] = ",".join(words)
    moved = {feature(name) for name in again}
    held = {feature(name) for name in kept}
    trouble = ""
    for name, node in nodes.value.items():
        ours = {one for one in node.features if one.startswith(f"{PREFIX}/")}
        should = {one for one, found in wanted.items() if name in found} | (ours & held)
        if ours == should:
            continue
        try:
            await _remark(client, name, should)
        except NotFoundError:
            continue
        except SlurmError as error:
            trouble = str(error)
            break
        moved |= ours ^ should
    members = {node_set_of(one.partition("/")[2]): found for one, found in wanted.items()}
    if not moved:
        return Marked(members, trouble)
    unread, unmoved = await _move(client, moved & sets.keys(), sets, members)
    await link.mirror.poll()
    link.partitions.poll_soon()
    return Marked(members, trouble, unread, unmoved)


async def _move(
    client: Slurmrestd,
    moved: set[str],
    sets: Mapping[str, str],
    members: Mapping[str, frozenset[str]],
) -> tuple[frozenset[str], frozenset[str]]:
    """Have slurmctld take the nodes over: it reads features only when a partition changes.

    A partition that it does not have yet comes with its nodes. Returns those that it has and that
    its slurmrestd cannot change, and those for which it could not be asked.
    """
    unread: set[str] = set()
    unmoved: set[str] = set()
    for one in sorted(moved):
        name = one.partition("/")[2]
        body = {"name": name, "nodes": {"configured": configured(sets[one], members)}}
        try:
            await client.partition(name)
            if client.lacks(PARTITION_CALLS_SINCE):
                unread.add(name)
            else:
                await client.update_partition(body)
        except NotFoundError:
            continue
        except SlurmError:
            unmoved.add(name)
    return frozenset(unread), frozenset(unmoved)


async def _remark(client: Slurmrestd, name: str, marks: set[str]) -> None:
    """Give a node these marks and no others, and leave its other features. Raises SlurmError."""
    node = await client.node(name)
    # slurmctld rejects the removal of a feature that is still active.
    features, active = (
        [*(one for one in found if not one.startswith(f"{PREFIX}/")), *sorted(marks)]
        for found in (node.features, node.active_features)
    )
    await client.update_node(name, features=features, active_features=active)
