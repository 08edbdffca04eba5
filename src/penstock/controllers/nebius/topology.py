"""topology.conf of a SlurmCluster, from labels of Kubernetes nodes or from a user's ConfigMap.

slurmctld reads the place of a worker that registers itself only at a start or reconfigure. So the
file has a remark with the workers that have registered, and changes with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ConfigMap, Node
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.base.text import list_some
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.observed.nebius_caches import component_of
from penstock.controllers.observed.watching import PODS_BY_NODE, keys
from penstock.decide.topology import labels
from penstock.decide.topology.burst import Burst, next_burst
from penstock.decide.topology.topology_conf import (
    BLOCK_SIZE,
    PlacedWorker,
    kind_of,
    topology_conf,
)
from penstock.kube.runtime.declaration import Lookup
from penstock.model.worker_set import WorkerSet
from penstock.render.nebius.config.files import TOPOLOGY_CONF
from penstock.render.nebius.config.lines import file_text
from penstock.render.parts.digest import digest
from penstock.slurm.hostlist import LIMIT
from penstock.slurm.known import Unknown
from penstock.translate.nebius.worker_set import cluster_workers

_REGISTERED = "# Workers that have registered: "
_FIELD = "spec.slurmTopologyConfigMapRefName"


def clusters_with_worker_on(node: Node, lookup: Lookup) -> list[str]:
    """Keys of the SlurmClusters with a worker on a Kubernetes node."""
    pods = lookup.by(PODS_BY_NODE, node.metadata.name)
    found = (value.rpartition("/")[0] for pod in pods for value in component_of(pod))
    return list(dict.fromkeys(found))


def labels_changed(old: Node | None, new: Node | None) -> bool:
    """Whether a Kubernetes node came, went or has other labels."""
    return old is None or new is None or old.metadata.labels != new.metadata.labels


def clusters_with_file(config_map: ConfigMap, lookup: Lookup) -> list[str]:
    """Keys of the SlurmClusters whose topology.conf is in a user's ConfigMap."""
    meta = config_map.metadata
    return keys(
        one
        for one in lookup.all(SLURM_CLUSTERS)
        if one.metadata.namespace == meta.namespace
        and one.spec.slurm_topology_config_map_ref_name == meta.name
    )


@dataclass(slots=True)
class _State:
    burst: Burst | None = None
    waits: bool = False
    """Whether this reconcile left the written file as it is for a burst of changes."""
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: bool = False


class ClusterTopology:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._clusters = context.clusters
        self._caches = context.caches
        self._connections = context.connections
        self._clock = context.client.clock
        self._prefix = context.settings.topology_label_prefix
        self._states = context.states(SLURM_CLUSTERS, _State)

    def observe(self, obj: SlurmCluster) -> None:
        """Note the file that the SlurmCluster is to have from now on."""
        state, published = self._states.of(obj), self._clusters.published(obj)
        written = published.get(TOPOLOGY_CONF, "")
        state.rejected, state.missing = {}, False
        if name := obj.spec.slurm_topology_config_map_ref_name:
            found = self._caches.config_map(f"{obj.metadata.namespace}/{name}")
            given = (found.data or {}).get(TOPOLOGY_CONF) if found is not None else None
            state.burst, state.waits, state.missing = None, False, given is None
            self._clusters.topologies.of(obj).text = written if given is None else given
            return
        wanted, now = self._wanted(obj, written, state), self._clock.time()
        # The first files are written without delay: nothing runs yet.
        burst = next_burst(state.burst, wanted, written, now) if published else None
        state.burst = burst
        state.waits = burst is not None and now < burst.due()
        self._clusters.topologies.of(obj).text = written if state.waits else wanted

    def findings(self, obj: SlurmCluster) -> list[Finding]:
        """Labels that contradict others, or a ConfigMap without the file."""
        state = self._states.of(obj)
        if state.missing:
            name = obj.spec.slurm_topology_config_map_ref_name
            words = (
                f"{_FIELD}: ConfigMap {name} has no key {TOPOLOGY_CONF}. Create it with the file"
            )
            return [Finding(False, ObjectReason.CONFIG_MAP_NOT_FOUND, words)]
        if not state.rejected:
            return []
        shown = [f"{name}: {why}" for name, why in sorted(state.rejected.items())]
        words = (
            f"Topology labels of the Kubernetes nodes of {len(shown)} workers are not used: "
            f"{list_some(shown, '; ')}. Correct the labels; jobs run on these workers meanwhile"
        )
        return [Finding(True, ConfigReason.TOPOLOGY_LABELS_REJECTED, words)]

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """When a burst of changes is to be written; at once if it came due meanwhile."""
        state = self._states.of(obj)
        if state.burst is None or not state.waits:
            return None
        return max(0.0, state.burst.due() - self._clock.time()) + 0.1

    def _wanted(self, obj: SlurmCluster, written: str, state: _State) -> str:
        """The file; empty while no worker has been on a Kubernetes node with a label."""
        spec = obj.spec
        kind = kind_of(spec.slurm_config.topology_plugin)
        if kind is None:
            return ""
        placed = {pod.host: pod for pod in self._clusters.worker_pods(obj)}
        tiers = {
            name: labels.tiers(node.metadata.labels, self._prefix)
            for name, pod in placed.items()
            if (node := self._caches.nodes.get(pod.spec.node_name or "")) is not None
        }
        if not written and not any(tiers.values()):
            return ""
        workers = (
            PlacedWorker(name, fabric, tiers.get(name, {})) for name, fabric in self._names(obj)
        )
        size = spec.topology.block_size if spec.topology is not None else None
        found = topology_conf(
            kind, workers, size or spec.slurm_config.topology_block_size or BLOCK_SIZE
        )
        state.rejected = found.rejected
        uids = {name: pod.metadata.uid for name, pod in placed.items()}
        return file_text([*self._registered(obj, uids, written), *found.lines])

    def _names(self, obj: SlurmCluster) -> Iterator[tuple[str, str]]:
        """Each worker that there is or may be, with its fabric."""
        left = LIMIT
        own = cluster_workers(obj, self._clusters.prefix(obj))
        sets = [(own, "")] if own is not None else []
        sets += [
            (self._clusters.worker_set(one), one.spec.topology.fabric)
            for one in self._clusters.node_sets(obj)
        ]
        for workers, fabric in sets:
            count = min(left, max(workers.replicas, workers.power_saved))
            left -= count
            names = {workers.names.host(ordinal) for ordinal in range(count)}
            for name in sorted(names | self._beyond(obj, workers)):
                yield name, fabric

    def _beyond(self, obj: SlurmCluster, workers: WorkerSet) -> set[str]:
        """Workers of a set whose pods exist, also if they are scaled in."""
        pods = self._clusters.worker_pods(obj)
        prefix = workers.names.pod_prefix
        return {
            pod.host
            for pod in pods
            if pod.metadata.name.startswith(prefix)
            and workers.names.ordinal_of(pod.metadata.name) is not None
        }

    def _registered(self, obj: SlurmCluster, uids: Mapping[str, str], written: str) -> list[str]:
        """The remark; the written one while Slurm is unknown."""
        link = self._connections.get(obj.metadata.key)
        nodes = link.mirror.snapshot.nodes if link is not None else None
        if nodes is None or isinstance(nodes, Unknown):
            return [line for line in written.splitlines() if line.startswith(_REGISTERED)]
        there = sorted(f"{name} {uid}" for name, uid in uids.items() if name in nodes.value)
        return [f"{_REGISTERED}{len(there)}, {digest(chr(10).join(there))[:12]}"]
