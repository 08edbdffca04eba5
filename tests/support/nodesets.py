"""Builders of NodeSets, their pods and Slurm's words about them, for tests of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.api.kubernetes.kinds import (
    Affinity,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Node,
    NodeAffinity,
    NodeSpec,
    NodeTerm,
    NodeTerms,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Requirement,
)
from penstock.api.kubernetes.meta import ObjectMeta, OwnerReference
from penstock.api.slinky.labels import COMPONENT, REVISION_HASH, SCALING_MODE
from penstock.api.slinky.names import node_pod_name
from penstock.api.slinky.nodeset import NODESETS, NodeSet, NodeSetSpec
from penstock.base import times
from penstock.decide.nodeset.observation import observe
from penstock.decide.observed.revisions import Revisions
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.observed.worker import Worker, WorkerContext, observe_worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.decide.plan_cache import PlanCache
from penstock.slurm import state as model
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Job
from penstock.translate.slinky.worker_set import MARKS, worker_names, worker_set

NOW = 1_800_000_000.0
UNKNOWN = Unknown("slurmrestd does not answer")


class _Unread(tuple[Pod, ...]):
    def __iter__(self) -> Iterator[Pod]:
        raise AssertionError("a pod was read")


UNREAD = _Unread()
"""For what must not cost more the more pods there are."""


def nodeset(replicas: int = 2, *, deleted: float | None = None, **spec: Any) -> NodeSet:
    return NodeSet(
        metadata=ObjectMeta(
            name="compute",
            namespace="slurm",
            uid="nodeset-uid",
            generation=3,
            finalizers=(DRAIN_FINALIZER,),
            deletion_timestamp=None if deleted is None else times.write(deleted),
        ),
        spec=NodeSetSpec(controller_ref=ControllerRef(name="slurm"), replicas=replicas, **spec),
    )


def running(started: float = NOW - 3600) -> ContainerStatus:
    state = ContainerState(running=ContainerRunning(started_at=times.write(started)))
    return ContainerStatus(name="slurmd", ready=True, state=state)


def waiting(reason: str = "ContainerCreating", restarts: int = 0) -> ContainerStatus:
    ended = ContainerState(terminated=ContainerTerminated(exit_code=1)) if restarts else None
    return ContainerStatus(
        name="slurmd",
        restart_count=restarts,
        state=ContainerState(waiting=ContainerWaiting(reason=reason)),
        last_state=ended or ContainerState(),
    )


def pod(
    ordinal: int = 0,
    *,
    phase: str = "Running",
    ready: bool = True,
    bound: bool = True,
    slurmd: ContainerStatus | None = None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    deleted: bool = False,
    name: str = "",
    created: float = NOW - 3600,
    ready_since: float = NOW - 3500,
    conditions: tuple[PodCondition, ...] = (),
    host_network: bool = False,
    machine: str = "",
    host: str = "",
) -> Pod:
    """One of `machine` is of DaemonSet mode; `host` is what its Slurm node is called then."""
    if machine:
        name = name or node_pod_name(nodeset(scaling_mode="DaemonSet"), machine)
        labels = {SCALING_MODE: "DaemonSet", **(labels or {})}
    name = name or f"compute-{ordinal}"
    status = PodCondition(
        type="Ready",
        status="True" if ready else "False",
        last_transition_time=times.write(ready_since),
    )
    found = slurmd or (running() if phase == "Running" else None)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="slurm",
            uid=f"uid-{name}",
            resource_version="7",
            labels={REVISION_HASH: "new", COMPONENT: "slurmd", **(labels or {})},
            annotations=annotations or {},
            creation_timestamp=times.write(created),
            deletion_timestamp=times.write(NOW - 1) if deleted else None,
            owner_references=(
                OwnerReference(
                    api_version=NODESETS.api_version,
                    kind="NodeSet",
                    name="compute",
                    uid="nodeset-uid",
                    controller=True,
                ),
            ),
        ),
        spec=PodSpec(
            node_name=(machine or f"machine-{ordinal}") if bound else None,
            hostname=host or machine or name,
            host_network=host_network or None,
            affinity=_only_on(machine) if machine else None,
        ),
        status=PodStatus(
            phase=phase,
            conditions=(status, *conditions),
            container_statuses=(found,) if found else None,
        ),
    )


def _only_on(kubernetes_node: str) -> Affinity:
    one = Requirement(key="metadata.name", operator="In", values=(kubernetes_node,))
    terms = NodeTerms(node_selector_terms=(NodeTerm(match_fields=(one,)),))
    return Affinity(node_affinity=NodeAffinity(required=terms))


def node(ordinal: int = 0, *state: str, reason: str = "", **more: Any) -> model.Node:
    return model.Node(
        name=f"compute-{ordinal}", state=frozenset(state or ("IDLE",)), reason=reason, **more
    )


def job(id_: int, *ordinals: int, state: str = "RUNNING", **more: Any) -> Job:
    return Job(
        id=id_,
        state=frozenset(state.split("+")),
        nodes=tuple(f"compute-{ordinal}" for ordinal in ordinals),
        start_time=more.pop("start_time", int(NOW) - 600),
        time_limit=more.pop("time_limit", 60),
        **more,
    )


def machine(ordinal: int = 0, *, cordoned: bool = False, reason: str | None = None) -> Node:
    annotations = {"nodeset.slinky.slurm.net/node-cordon-reason": reason} if reason else {}
    return Node(
        metadata=ObjectMeta(name=f"machine-{ordinal}", annotations=annotations),
        spec=NodeSpec(unschedulable=cordoned or None),
    )


def known_nodes(*nodes: model.Node) -> Known[dict[str, model.Node]]:
    return Known({found.name: found for found in nodes}, 1.0)


def view(
    wanted: NodeSet,
    *pods: Pod,
    nodes: Known[dict[str, model.Node]] | Unknown | None = None,
    jobs: tuple[Job, ...] | Unknown = (),
    controller: ControllerState = ControllerState.PRESENT,
    equal: frozenset[str] = frozenset(),
    parameters: Mapping[str, str] | None = None,
    **more: Any,
) -> WorkerSetView:
    """A view in which, by default, Slurm knows each pod's node as IDLE.

    `equal` are revisions equal to the wanted one, `parameters` those of the node by revision.
    """
    idle = known_nodes(*(model.Node(p.host, frozenset({"IDLE"})) for p in pods))
    return WorkerSetView(
        workers=worker_set(wanted),
        controller=controller,
        pods=pods,
        nodes=idle if nodes is None else nodes,
        jobs=jobs if isinstance(jobs, Unknown) else Known(jobs, 1.0),
        now=more.pop("now", NOW),
        revisions=Revisions("new", equal, parameters or {}),
        **more,
    )


def observed(seen: WorkerSetView) -> ObservedWorkers:
    """The workers of a view."""
    return observe(seen, PlanCache())


def worker(
    found: Pod,
    record: model.Node | None = None,
    on: Node | None = None,
    *,
    slurm: SlurmSnapshot | None = None,
) -> Worker:
    """One worker with this Slurm node and no jobs, or with what a snapshot has of it."""
    context = WorkerContext(
        names=worker_names(nodeset()),
        marks=MARKS,
        per_node=False,
        revisions=frozenset({"new"}),
        slurm_nodes=None,
        shared_slurm_nodes=frozenset(),
        are_nodes_known=slurm is None or isinstance(slurm.nodes, Known),
        are_jobs_known=slurm is None or isinstance(slurm.jobs_by_node, Known),
    )
    jobs: tuple[Job, ...] | None = ()
    if slurm is not None:
        record, jobs = slurm.node(found.host), slurm.jobs(found.host)
    return observe_worker(context, found, record, jobs, on)
