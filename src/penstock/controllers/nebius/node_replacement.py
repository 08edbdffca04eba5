"""Has broken machines of a SlurmCluster replaced, as many as its annotation allows.

The policy is `penstock.decide.node_replacement`. `NodeOutageReconciler` cordons the Kubernetes node
of an open record, and the reconcile of NodeSets has its workers leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster.marks import REPLACE_NODES, REPLACEMENTS
from penstock.api.kubernetes.kinds import NODES, PODS, Node, Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius.nodeset import NODE_SETS
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.base import times
from penstock.catalog.event import Event
from penstock.controllers.nebius.checks.drain_room import share_of
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.machine_provider import KubernetesProvider, MachineProvider
from penstock.controllers.nebius.node_outage import has_worker, live_workers
from penstock.controllers.nebius.replacement_records import (
    is_concerned,
    records_of,
    replacements_changed,
)
from penstock.controllers.nebius.retests import Retests
from penstock.controllers.observed.watching import PODS_BY_NODE, own_key
from penstock.controllers.runtime.report import Events
from penstock.controllers.runtime.signals import SLURM
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.check.check_share import is_share, limit
from penstock.decide.check.out_nodes import out_by_checks
from penstock.decide.node_replacement import (
    AskProvider,
    Blocker,
    EndDrain,
    Machine,
    PlacedWorker,
    Replacement,
    ReplacementView,
    StartTest,
    WriteRecords,
    after_drain,
    after_start,
    is_broken,
    next_step,
    write_records,
)
from penstock.decide.observed import drain_reason
from penstock.decide.observed.cordon import deletion_requested_at
from penstock.decide.observed.pod import is_registered, kubernetes_node_name, slurm_node_name
from penstock.kube import ConflictError, ForbiddenError, NotFoundError, Result
from penstock.kube.runtime.declaration import Lookup, Signal, Watch
from penstock.model import node_mark
from penstock.model.node_mark import Purpose
from penstock.slurm.known import Known
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import NotFoundError as NoSlurmNodeError
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.state import Node as SlurmNode
from penstock.translate.nebius.worker_set import marks

REPLACE: Final = "SlurmNodeReplace"
"""Type of the condition of a Kubernetes node that asks for another machine."""
RETRY_S: Final = 15.0
SOON_S: Final = 1.0
_FORBIDDEN_S: Final = 300.0
_MARKS: Final = marks(NODE_SETS.kind)


def _of_node(_: Node, lookup: Lookup) -> list[str]:
    return [one.metadata.key for one in lookup.all(SLURM_CLUSTERS) if is_concerned(one)]


def _of_pod(pod: Pod, lookup: Lookup) -> list[str]:
    meta = pod.metadata
    key = f"{meta.namespace}/{meta.labels.get(app_labels.APP_INSTANCE, '')}"
    return _of_key(key, lookup) if has_worker(pod) else []


def _of_key(key: str, lookup: Lookup) -> list[str]:
    cluster = lookup.get(SLURM_CLUSTERS, key)
    return [key] if cluster is not None and is_concerned(cluster) else []


def _node_matters(old: Node | None, new: Node | None) -> bool:
    return old is None or new is None or _node_facts(old) != _node_facts(new)


def _node_facts(node: Node) -> object:
    meta = node.metadata
    mark = meta.annotations.get(node_mark.OUT_OF_SERVICE)
    return meta.uid, mark, meta.deleting, node.spec.unschedulable, _is_requested(node)


class NodeReplacementReconciler:
    """Leads the replacements of all SlurmClusters, by their keys."""

    name: str = "kubernetes-node-replacement"
    watches: tuple[Watch[Any], ...] = (
        Watch(SLURM_CLUSTERS, own_key, replacements_changed),
        Watch(NODES, _of_node, _node_matters),
        Watch(PODS, _of_pod),
    )
    signals: tuple[Signal, ...] = (Signal(SLURM, _of_key),)

    def __init__(self, context: NebiusContext, provider: MachineProvider | None = None) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._pods = context.caches.store.index(PODS_BY_NODE)
        self._provider = provider or KubernetesProvider(context.client)
        self._retests = Retests(context)
        self._events = Events(context.recorder, SLURM_CLUSTERS)
        self._of_nodes = Events(context.recorder, NODES)
        self._emitted: dict[str, str] = {}
        """The last warning about a Kubernetes node, which is emitted once."""
        self._lock = asyncio.Lock()

    async def run(self, key: str, /) -> Result:
        """Do the next step of one SlurmCluster. Raises KubeError."""
        cluster = self._caches.clusters.get(key)
        if cluster is None or cluster.metadata.deleting or not is_concerned(cluster):
            return Result()
        link = self._connections.get(key)
        if link is None or link.client is None or not link.mirror.snapshot.known:
            # The next answer of Slurm starts the next reconcile.
            return Result()
        async with self._lock:
            return await self._run(cluster, link.client, link)

    async def _run(
        self, cluster: SlurmCluster, client: Slurmrestd, link: SlurmConnection
    ) -> Result:
        seen = link.mirror.snapshot
        records = records_of(cluster)
        if records is None:
            words = (
                f"Annotation {REPLACEMENTS} of SlurmCluster {cluster.metadata.name} does not "
                "parse, so no machine is replaced. Remove it"
            )
            self._warn(cluster, cluster.metadata.name, words)
            return Result()
        is_open = any(not one.ended for one in records)
        if not is_open and not self._is_asked(seen):
            return Result()
        view = self._view(cluster, records, seen, await self._retests.running(cluster, records))
        outcome = next_step(view, self._client.clock.time())
        for one in outcome.blockers:
            self._block(one)
        if outcome.step is None:
            return Result(requeue_after=RETRY_S if is_open or view.share else None)
        try:
            match outcome.step:
                case WriteRecords():
                    await self._write(cluster, outcome.step)
                case AskProvider():
                    await self._ask(outcome.step.record)
                case EndDrain():
                    if await self._end_drain(cluster, client, link, outcome.step):
                        await self._write(cluster, after_drain(view, outcome.step))
                case StartTest():
                    await self._retests.start(cluster, outcome.step)
                    await self._write(cluster, after_start(view, outcome.step))
        except (ConflictError, NotFoundError, SlurmError):
            # The cache shows the newer object soon, and Slurm answers again.
            return Result(requeue_after=SOON_S)
        except ForbiddenError as error:
            words = (
                f"The machine of a Kubernetes node cannot be replaced: {error}. Set "
                "controllerManager.manager.nodeReplacement of the operator's chart to true"
            )
            self._warn(cluster, cluster.metadata.name, words)
            return Result(requeue_after=_FORBIDDEN_S)
        return Result(requeue_after=SOON_S)

    def _is_asked(self, seen: Snapshot) -> bool:
        """Whether a machine may have to be replaced: of thousands of nodes seldom one."""
        nodes = seen.nodes.value.values() if isinstance(seen.nodes, Known) else ()
        return any(map(is_broken, nodes)) or any(map(_is_requested, self._caches.nodes))

    def _view(
        self,
        cluster: SlurmCluster,
        records: tuple[Replacement, ...],
        seen: Snapshot,
        tests: Collection[tuple[str, str]],
    ) -> ReplacementView:
        nodes: Mapping[str, SlurmNode] = seen.nodes.value if isinstance(seen.nodes, Known) else {}
        share = cluster.metadata.annotations.get(REPLACE_NODES, "")
        pods = self._clusters.worker_pods(cluster)
        return ReplacementView(
            share=share if is_share(share) else "",
            records=records,
            machines={one.metadata.name: self._machine(one) for one in self._caches.nodes},
            workers=tuple(_placed(one, nodes.get(slurm_node_name(one))) for one in pods),
            nodes=nodes,
            out=out_by_checks(nodes.values()),
            may_be_out=limit(share_of(cluster), len(nodes)),
            checks=self._retests.checks(cluster),
            tests=tests,
        )

    def _machine(self, node: Node) -> Machine:
        meta = node.metadata
        mark = node_mark.read(meta.annotations)
        is_out = mark is not None and mark.purpose is Purpose.REPLACE
        return Machine(
            name=meta.name,
            uid=meta.uid,
            machine=node.spec.provider_id or node.status.node_info.system_uuid,
            is_out=is_out and bool(node.spec.unschedulable),
            is_going=meta.deleting,
            has_workers=any(map(has_worker, self._pods.get(meta.name))),
            is_requested=_is_requested(node),
        )

    async def _write(self, cluster: SlurmCluster, step: WriteRecords) -> None:
        meta = cluster.metadata
        text = write_records(step.records) if step.records else None
        body = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {REPLACEMENTS: text},
        }
        await self._client.patch(SLURM_CLUSTERS, meta.namespace, meta.name, {"metadata": body})
        self._events.normal(cluster, Event.MACHINE_REPLACED, step.message, "Replace")

    async def _ask(self, record: Replacement) -> None:
        node = self._caches.nodes.get(record.node)
        if node is None or node.metadata.uid != record.uid:
            return
        # Also pods that the cache does not have: of another operator, or created just now.
        if await live_workers(self._client, record.node):
            return
        await self._provider.replace(node)

    async def _end_drain(
        self, cluster: SlurmCluster, client: Slurmrestd, link: SlurmConnection, step: EndDrain
    ) -> bool:
        """Undrain a node whose drain still has its reason, and whose pod stays.

        Raises SlurmError and KubeError.
        """
        async with link.states:
            # The cache may not show yet that the pod leaves.
            for seen in self._clusters.worker_pods(cluster):
                if slurm_node_name(seen) != step.slurm_node:
                    continue
                pod = await self._client.get(PODS, seen.metadata.namespace, seen.metadata.name)
                if pod.metadata.deleting or deletion_requested_at(pod) is not None:
                    return False
            try:
                node = await client.node(step.slurm_node)
                if not node.drain or node.reason != step.reason:
                    return False
                state = ["RESUME"] if "DOWN" in node.state else ["UNDRAIN"]
                await client.update_node(step.slurm_node, state=state)
            except NoSlurmNodeError:
                return False
        return True

    def _block(self, blocker: Blocker) -> None:
        node = self._caches.nodes.get(blocker.node)
        if node is not None and self._emitted.get(blocker.node) != blocker.message:
            self._emitted[blocker.node] = blocker.message
            self._of_nodes.warning(node, Event.MACHINE_NOT_REPLACED, blocker.message, "Replace")

    def _warn(self, obj: KubeObject, about: str, words: str) -> None:
        if self._emitted.get(about) != words:
            self._emitted[about] = words
            self._events.warning(obj, Event.MACHINE_NOT_REPLACED, words, "Replace")


def _placed(pod: Pod, node: SlurmNode | None) -> PlacedWorker:
    is_own = node is not None and drain_reason.is_own_reason(_MARKS, node.reason)
    return PlacedWorker(
        slurm_node=slurm_node_name(pod),
        kubernetes_node=kubernetes_node_name(pod),
        node=node,
        since=times.parse(pod.metadata.creation_timestamp) or 0.0,
        is_registered=node is not None and not pod.metadata.deleting and is_registered(pod, node),
        is_changing=is_own,
        is_leaving=deletion_requested_at(pod) is not None,
    )


def _is_requested(node: Node) -> bool:
    found = node.condition(REPLACE)
    return found is not None and found.status == "True"
