"""NodeSetPowerState: the ephemeral nodes of a NodeSet that have a pod."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import AGE, DATE_TIME, INT32, Column, KindInfo, about
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.common import GROUP, NOT_EMPTY, VERSION


class NodeSetPowerStateSpec(KubeStruct, frozen=True):
    """Which nodes should have a pod."""

    node_set_ref: Annotated[str, about("NodeSet of the same name.", NOT_EMPTY)]
    active_nodes: Annotated[
        tuple[Annotated[int, about("An ordinal.", INT32)], ...],
        about("Ordinals of the nodes that have a pod.", {"x-kubernetes-list-type": "set"}),
    ] = ()


class NodeState(KubeStruct, frozen=True):
    """State of one node."""

    phase: Annotated[
        Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] | None,
        about("Phase of the pod."),
    ] = None
    pod_name: Annotated[str, about("Name of the pod.")] = ""
    slurm_state: Annotated[str, about("State of the Slurm node.")] = ""
    message: Annotated[str, about("Why it is so.")] = ""
    last_transition_time: Annotated[str, about("When the state changed.", DATE_TIME)] = ""


class NodeSetPowerStateStatus(Status, frozen=True):
    """Which nodes have a pod."""

    active_count: Annotated[int | None, about("Nodes that should have a pod.", INT32)] = None
    node_states: Annotated[
        dict[str, Annotated[NodeState, about("State of one node.")]],
        about("State of each node, by ordinal."),
    ] = field(default_factory=dict[str, NodeState])


class NodeSetPowerState(KubeObject, frozen=True):
    """The ephemeral nodes of a NodeSet that have a pod. Slurm's power saving writes it."""

    spec: Annotated[NodeSetPowerStateSpec, about("Which nodes should have a pod.")] = (
        NodeSetPowerStateSpec(node_set_ref="")
    )
    status: Annotated[NodeSetPowerStateStatus, about("Which nodes have one.")] = (
        NodeSetPowerStateStatus()
    )


POWER_STATES = Resource(
    GROUP, VERSION, "NodeSetPowerState", "nodesetpowerstates", NodeSetPowerState, optional=True
)
INFO = KindInfo(
    POWER_STATES,
    (),
    (
        Column("NodeSet", ".spec.nodeSetRef"),
        Column("Active", ".status.activeCount", "integer"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Age", AGE.path, "date"),
    ),
)
