"""Notices what is changed in Slurm itself, and tells it once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.api.conditions import Check
from penstock.api.meta import Condition
from penstock.api.penstock.partition import Partition
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.links import Link, Links
from penstock.controllers.partition_changes import PartitionChanges
from penstock.controllers.report import Events
from penstock.controllers.workers import workers
from penstock.controllers.world import World
from penstock.decide.partition_drift import CONFIRM_S, Seen, check, told, watch
from penstock.kube.clock import Clock
from penstock.render import partitions as render
from penstock.slurm.hostlist import HostListError
from penstock.slurm.known import Known, Unknown
from penstock.slurm.partition import Difference, node_set
from penstock.slurm.partition_drift import drifts


class PartitionDrift:
    """The differences of all clusters. `changed(key)` is called when some come or go."""

    def __init__(
        self,
        world: World,
        links: Links,
        changes: PartitionChanges,
        clock: Clock,
        events: Mapping[str, Events],
    ) -> None:
        self._world = world
        self._links = links
        self._changes = changes
        self._clock = clock
        self._events = events
        self._seen: dict[str, dict[str, Seen]] = {}
        self.changed: Callable[[str], None] = lambda _key: None

    def of(self, key: str) -> dict[str, tuple[Difference, ...]]:
        """What was changed in the Slurm of a Controller, by partition."""
        seen = self._seen.get(key, {})
        return {name: one.differences for name, one in seen.items() if one.confirmed}

    def forget(self, key: str, name: str) -> None:
        """A partition was put back or its change was adopted."""
        self._seen.get(key, {}).pop(name, None)

    def of_nodeset(self, nodeset: NodeSet, key: str) -> list[Check]:
        """The condition of a NodeSet with a partition of its own."""
        name = names.partition_name(nodeset)
        own = nodeset.spec.partition is not None and nodeset.spec.partition.enabled
        drifted = self.of(key)
        found = {name: drifted[name]} if own and name in drifted else {}
        return check(found, nodeset.status.conditions)

    def of_controller(self, controller: Controller, old: tuple[Condition, ...]) -> list[Check]:
        """The condition of a Controller, for partitions that nobody else declares."""
        key = controller.metadata.key
        return check({n: d for n, d in self.of(key).items() if self._owner(key, n) is None}, old)

    def heard(self, key: str) -> None:
        """Slurmctld was asked for its partitions."""
        controller, link = self._world.controllers.get(key), self._links.get(key)
        records = link.partitions.records if link is not None else None
        if controller is None or link is None or not isinstance(records, Known):
            return
        before = self._seen.get(key, {})
        found = self._found(controller, link)
        if found is None:
            # A change is on its way: what differs now says nothing.
            self._seen[key] = {}
            return
        now = watch(before, found, records.as_of)
        self._seen[key] = now
        if any(not one.confirmed for one in now.values()):
            self._clock.call_later(CONFIRM_S, link.partitions.poke)
        fresh = [n for n, one in now.items() if one.confirmed and before.get(n) != one]
        for name in fresh:
            self._tell(controller, name, now[name].differences)
        if fresh or any(one.confirmed and n not in now for n, one in before.items()):
            self.changed(key)

    def _tell(self, controller: Controller, name: str, differences: tuple[Difference, ...]) -> None:
        key = controller.metadata.key
        owner = self._owner(key, name) or controller
        events = self._events[type(owner).__name__]
        words = told(name, differences)
        events.warning(owner, "PartitionDrifted", words[:1].upper() + words[1:], "Observe")

    def _owner(self, key: str, name: str) -> Partition | NodeSet | None:
        for one in self._world.partitions_of.get(key):
            if one.slurm_name == name and not one.metadata.deleting:
                return one
        for one in self._world.nodesets_of.get(key):
            own = one.spec.partition is not None and one.spec.partition.enabled
            if own and names.partition_name(one) == name:
                return one
        return None

    def _found(
        self, controller: Controller, link: Link
    ) -> dict[str, tuple[Difference, ...]] | None:
        """All differences; None while slurmctld does not have what is declared for our own part."""
        status, text = controller.status, self._world.slurm_conf(controller)
        if text is None or status.effective_config_hash != status.config_hash:
            return None
        if status.observed_generation != controller.metadata.generation:
            return None
        if not self._changes.settled(controller):
            return None
        records, nodes = link.partitions.records, link.mirror.snapshot.nodes
        if isinstance(records, Unknown):
            return None
        cluster = self._world.cluster(controller)
        there = nodes.value if isinstance(nodes, Known) else None
        members: dict[str, frozenset[str]] = {}
        for one in render.served(cluster) if there is not None else ():
            if render.marked(cluster, one):
                found = render.members(cluster, one, there or {}, workers(self._world, cluster))
                members[node_set(one.slurm_name)] = found
        try:
            return drifts(text, records.value, there, members)
        except HostListError:
            return None
