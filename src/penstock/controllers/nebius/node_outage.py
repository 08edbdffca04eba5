"""Takes Kubernetes nodes out of service as their conditions ask, and brings them back.

The policy is `penstock.decide.node_outage`. Each write names the resourceVersion that was decided
on; the workers are drained and deleted by the reconcile of their NodeSets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import structlog

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import NODES, PODS, Node, Pod, PodCondition
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.base import times
from penstock.catalog.event import Event
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.nebius.replacement_records import (
    records_of,
    replacements_changed,
    replacing,
)
from penstock.controllers.observed.watching import PODS_BY_NODE, own_key
from penstock.controllers.runtime.report import Events
from penstock.decide.node_outage import (
    Answer,
    KubernetesNodeView,
    NodeStep,
    Outcome,
    Release,
    Requests,
    SetDrainReason,
    Wait,
    WriteMark,
    budget,
    next_step,
)
from penstock.kube import Client, ConflictError, ForbiddenError, NotFoundError, Result, Selector
from penstock.kube.runtime.declaration import Lookup, Signal, Watch
from penstock.model import node_mark
from penstock.model.node_mark import Purpose, Step
from penstock.render.nebius.node_configurator import REBOOTER

REBOOT: Final = "SlurmNodeReboot"
DRAIN: Final = "SlurmNodeDrain"
REBOOTED: Final = "NodeRebooted"
"""Published reason of SlurmNodeReboot after the boot."""
MAINTENANCE: Final = ("NebiusMaintenanceScheduled",)
"""Types of conditions by which a provider announces maintenance of a node."""
_ASKING: Final = frozenset({REBOOT, DRAIN, *MAINTENANCE})
_MARKS: Final = (node_mark.OUT_OF_SERVICE, node_mark.REBOOT_STARTED, node_mark.REBOOT_DONE)
_FORBIDDEN_S: Final = 300.0
_ENDED: Final = ("Succeeded", "Failed")
_WORKERS: Final = (
    f"{app_labels.APP_NAME} in ({labels.NAME},slurmd),"
    f"{app_labels.APP_COMPONENT} in (worker,nodeset)"
)
"""Workers of every API and operator: a reboot ends the jobs of all."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


def outage_matters(old: Node | None, new: Node | None) -> bool:
    """Whether a change of a Kubernetes node can change what is decided about it."""
    if not any(one is not None and _is_concerned(one) for one in (old, new)):
        return False
    return old is None or new is None or _facts(old) != _facts(new)


def node_of_pod(pod: Pod, lookup: Lookup) -> list[str]:
    """The Kubernetes node of a pod, while that is out of service or to be."""
    name = pod.spec.node_name
    node = lookup.get(NODES, name) if name else None
    return [name] if name and node is not None and _is_concerned(node) else []


def replaced_nodes(cluster: SlurmCluster, lookup: Lookup) -> list[str]:
    """The Kubernetes nodes of open records of a SlurmCluster, and those with a mark for one."""
    names = [one.node for one in records_of(cluster) or () if not one.ended]
    marked = (
        one.metadata.name
        for one in lookup.all(NODES)
        if (mark := node_mark.read(one.metadata.annotations)) is not None
        and mark.purpose is Purpose.REPLACE
    )
    return list(dict.fromkeys((*names, *marked)))


class NodeOutageReconciler:
    """Leads the outages of all Kubernetes nodes."""

    name: str = "kubernetes-node"
    watches: tuple[Watch[Any], ...] = (
        Watch(NODES, own_key, outage_matters),
        Watch(PODS, node_of_pod),
        Watch(SLURM_CLUSTERS, replaced_nodes, replacements_changed),
    )
    signals: tuple[Signal, ...] = ()

    def __init__(self, context: NebiusContext) -> None:
        self._client = context.client
        self._nodes = context.caches.nodes
        self._clusters = context.caches.clusters
        self._pods = context.caches.store.index(PODS_BY_NODE)
        self._events = Events(context.recorder, NODES)
        self._lock = asyncio.Lock()
        self._taken: dict[str, str] = {}
        """Nodes that were just marked, by the version before: the cache may not show it yet."""
        self._emitted: dict[str, str] = {}
        """The last message about a node that waits, which is emitted once."""

    async def run(self, key: str, /) -> Result:
        """Do the next step of one Kubernetes node. Raises KubeError."""
        node = self._nodes.get(key)
        if node is None or not (_is_concerned(node) or replacing(self._clusters, node)):
            self._taken.pop(key, None)
            self._emitted.pop(key, None)
            return Result()
        # Two at the same time could both take the last place.
        async with self._lock:
            return await self._run(node)

    async def _run(self, node: Node) -> Result:
        more, now = self._more(), self._client.clock.time()
        outcome = next_step(self._view(node), more, now)
        if _allows_reboot(outcome):
            # Also pods that the cache does not have: of another operator, or created just now.
            workers = await live_workers(self._client, node.metadata.name)
            outcome = next_step(self._view(node, workers), more, now)
        self._emit(node, outcome)
        if outcome.step is not None:
            try:
                await self._do(node, outcome.step)
            except ConflictError:
                # The cache shows the newer node soon.
                return Result(requeue_after=1.0)
            except NotFoundError:
                return Result()
            except ForbiddenError as error:
                name = node.metadata.name
                words = (
                    f"Kubernetes node {name} cannot be taken out of service: {error}. Set "
                    "controllerManager.manager.nodeOutages of the operator's chart to true"
                )
                self._emit(node, Outcome(None, Wait.PERSON, words))
                return Result(requeue_after=_FORBIDDEN_S)
        return Result(requeue_after=outcome.requeue_after)

    def _more(self) -> int:
        """How many more nodes may go out, of those with pods of clusters."""
        every = [one for one in self._nodes if self._pods.count(one.metadata.name)]
        return budget(len(every), sum(self._is_out(one) for one in self._nodes))

    def _is_out(self, node: Node) -> bool:
        meta = node.metadata
        if node_mark.read(meta.annotations) is not None:
            self._taken.pop(meta.name, None)
            return True
        return self._taken.get(meta.name) == meta.resource_version

    def _view(self, node: Node, workers: Iterable[Pod] = ()) -> KubernetesNodeView:
        meta = node.metadata
        pods = self._pods.get(meta.name)
        every = {one.metadata.key: one for one in (*filter(has_worker, pods), *workers)}
        view = node_view(node, sorted(every), has_rebooter=any(map(_is_rebooter, pods)))
        if not (cluster := replacing(self._clusters, node)):
            return view
        return replace(view, requests=replace(view.requests, replace=cluster))

    async def _do(self, node: Node, step: NodeStep) -> None:
        name = node.metadata.name
        match step:
            case WriteMark():
                change: Json = {
                    **_metadata(node, {node_mark.OUT_OF_SERVICE: step.mark.text}),
                    "spec": {"unschedulable": True},
                }
                await self._client.patch(NODES, "", name, change)
                self._taken[name] = node.metadata.resource_version
                allowed = step.mark.step is Step.REBOOT
                reason = Event.NODE_REBOOT_ALLOWED if allowed else Event.NODE_OUT_OF_SERVICE
                self._events.normal(node, reason, step.message, "Cordon")
            case Release():
                gone = dict.fromkeys(_MARKS[:2])
                change = _metadata(node, gone)
                if step.uncordon:
                    change["spec"] = {"unschedulable": None}
                await self._client.patch(NODES, "", name, change)
                self._events.normal(node, Event.NODE_IN_SERVICE, step.message, "Uncordon")
            case Answer():
                done = {node_mark.REBOOT_DONE: f"{step.request} {step.boot}"}
                message = "The node has booted since it was asked for"
                await self._status(node, done, REBOOT, "False", REBOOTED, message)
                words = f"Kubernetes node {name} was rebooted"
                self._events.normal(node, Event.NODE_REBOOTED, words, "Reboot")
            case SetDrainReason():
                await self._status(node, {}, DRAIN, "True", step.reason, step.message)

    async def _status(
        self,
        node: Node,
        annotations: Json,
        type_: str,
        status: str,
        reason: str,
        message: str,
    ) -> None:
        now = times.write(self._client.clock.time())
        before = node.condition(type_)
        same = before is not None and before.status == status and before.last_transition_time
        condition = {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": same or now,
        }
        body = {**_metadata(node, annotations), "status": {"conditions": [condition]}}
        await self._client.patch(
            NODES, "", node.metadata.name, body, kind="strategic", subresource="status"
        )

    def _emit(self, node: Node, outcome: Outcome) -> None:
        """Emit once what a node waits for."""
        name = node.metadata.name
        if not outcome.message:
            if outcome.step is not None:
                self._emitted.pop(name, None)
            return
        if self._emitted.get(name) == outcome.message:
            return
        self._emitted[name] = outcome.message
        if outcome.wait is Wait.PERSON:
            self._events.warning(node, Event.NODE_OUTAGE_BLOCKED, outcome.message, "Wait")
        else:
            self._events.normal(node, Event.NODE_WAITS, outcome.message, "Wait")


async def live_workers(client: Client, node: str) -> list[Pod]:
    """The workers on a Kubernetes node at this moment, of any operator. Raises KubeError."""
    found = await client.list(PODS, Selector(labels=_WORKERS, fields=f"spec.nodeName={node}"))
    return [one for one in found.items if has_worker(one)]


def node_view(node: Node, workers: Iterable[str], *, has_rebooter: bool) -> KubernetesNodeView:
    """A Kubernetes node as the policy reads it."""
    meta = node.metadata
    ready = node.condition("Ready")
    request, _, boot = meta.annotations.get(node_mark.REBOOT_DONE, "").rpartition(" ")
    return KubernetesNodeView(
        name=meta.name,
        boot=node.status.node_info.boot_id,
        is_cordoned=bool(node.spec.unschedulable),
        is_ready=ready is not None and ready.status == "True",
        has_rebooter=has_rebooter,
        workers=tuple(workers),
        requests=_requests(node),
        mark=node_mark.read(meta.annotations),
        started=meta.annotations.get(node_mark.REBOOT_STARTED, ""),
        answered=(request, boot),
    )


def _requests(node: Node) -> Requests:
    reboot, drain = _asking(node, REBOOT), _asking(node, DRAIN)
    # soperator's rebooter leaves the condition True with this reason after the boot.
    is_done = reboot is not None and reboot.reason == REBOOTED
    return Requests(
        reboot=None if reboot is None or is_done else reboot.last_transition_time or "",
        drain=None if drain is None else drain.last_transition_time or "",
        drain_reason=(drain.reason or "") if drain is not None else "",
        maintenance=next((one for one in MAINTENANCE if _asking(node, one)), ""),
    )


def _asking(node: Node, type_: str) -> PodCondition | None:
    found = node.condition(type_)
    return found if found is not None and found.status == "True" else None


def _is_concerned(node: Node) -> bool:
    """Whether a node is out of service, or a condition asks for it."""
    if node_mark.OUT_OF_SERVICE in node.metadata.annotations:
        return True
    return any(one.type in _ASKING and one.status == "True" for one in node.status.conditions or ())


def _facts(node: Node) -> object:
    return (
        node.spec,
        node.metadata.uid,
        [node.metadata.annotations.get(key) for key in _MARKS],
        node.status.node_info.boot_id,
        [
            (one.type, one.status, one.reason, one.last_transition_time)
            for one in node.status.conditions or ()
            if one.type in _ASKING or one.type == "Ready"
        ],
    )


def has_worker(pod: Pod) -> bool:
    """Whether a pod is a Slurm worker's that has not ended."""
    component = pod.metadata.labels.get(app_labels.APP_COMPONENT)
    return component in ("worker", "nodeset") and pod.status.phase not in _ENDED


def _is_rebooter(pod: Pod) -> bool:
    found = pod.metadata.labels.get(labels.IS_CONFIGURATOR) == app_labels.TRUE
    every = pod.status.container_statuses or ()
    return found and pod.ready and any(one.name == REBOOTER for one in every)


def _allows_reboot(outcome: Outcome) -> bool:
    step = outcome.step
    return isinstance(step, WriteMark) and step.mark.step is Step.REBOOT


def _metadata(node: Node, annotations: Json) -> Json:
    meta = node.metadata
    body: Json = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    if annotations:
        body["annotations"] = annotations
    return {"metadata": body}
