"""Actions as data: decided here, carried out by a controller.

Each action is absolute (it names the wanted end, not a step), so doing it twice does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from penstock.api.kubernetes.kinds import PodCondition
from penstock.api.kubernetes.meta import OwnerReference
from penstock.model.worker_slot import WorkerSlot


@dataclass(frozen=True, slots=True)
class EventReason:
    """The reason and message of an event: a stable CamelCase reason and a message in words."""

    reason: str
    message: str


class DeletionGround(StrEnum):
    """Why a pod may be deleted without losing a job; see `penstock.decide.drain.deletion_guard`."""

    DRAINED = "Drained"
    NEVER_BOUND = "NeverBound"
    NEVER_STARTED = "NeverStarted"
    FINISHED = "Finished"
    STOPPED = "SlurmdStopped"
    FORGOTTEN = "Forgotten"
    POWERED_DOWN = "PoweredDown"
    NOT_REBOOTED = "NotRebooted"
    CONTROLLER_GONE = "ControllerGone"


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of a place. AlreadyExists is success: names are deterministic."""

    slot: WorkerSlot
    why: EventReason


@dataclass(frozen=True, slots=True)
class CreatePvcs:
    """Create the PVCs of a slot that are missing."""

    slot: WorkerSlot
    why: EventReason


@dataclass(frozen=True, slots=True)
class SetPvcOwners:
    """Write the owners of exactly this PVC in exactly this version: it is deleted with them.

    `pod` is the pod that uses it, empty for none. Neither that pod nor the NodeSet is deleted
    before its PVCs have these owners.
    """

    name: str
    uid: str
    resource_version: str
    owners: tuple[OwnerReference, ...]
    pod: str = ""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete exactly this pod in exactly this version (both preconditions must be sent).

    The actor evaluates `deletion_guard.can_delete` again, with the live pod and a new answer of
    Slurm, and keeps the pod when that denies it. `node` is the pod's Slurm node, `guard` the ground
    of the decision.
    """

    name: str
    uid: str
    resource_version: str
    node: str
    guard: DeletionGround
    why: EventReason


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Drain a Slurm node.

    With `override` the `reason` replaces one that the node has; see `drain.request.reason_to_send`.
    With `while_idle` the node was chosen because it had no job: when it has one by then, the drain
    is not sent, and another node is chosen.
    """

    node: str
    reason: str
    override: bool
    why: EventReason
    while_idle: bool = False


@dataclass(frozen=True, slots=True)
class UndrainNode:
    """Take back a drain of ours (state UNDRAIN)."""

    node: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class ResumeNode:
    """Bring back a node that is DOWN by an act of ours (state RESUME: clears DOWN and DRAIN)."""

    node: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class PowerDownNode:
    """Have slurmctld power a node down once it has no job (POWER_DOWN_ASAP)."""

    node: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class SetNodeComment:
    """Write the comment by which a Slurm node record is known to be of this NodeSet.

    `gres`, where it is given, comes first; when slurmctld rejects it, the rest is not sent.
    `features`, `weight` and `extra` change with the comment in the same call, as it records the
    parameters that the node was last given. Then `why` is emitted.
    """

    node: str
    comment: str
    features: tuple[str, ...] | None = None
    weight: int | None = None
    gres: str | None = None
    extra: str | None = None
    why: EventReason | None = None
    over: tuple[str, ...] = ()
    """The features that the node had: `features` are right for these only."""


@dataclass(frozen=True, slots=True)
class SetNodeTopology:
    """Set the topology of a Slurm node; empty for none."""

    node: str
    topology: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class SetNodeFeatures:
    """Give a Slurm node exactly these features of its Kubernetes node; all others stay."""

    node: str
    features: frozenset[str]
    why: EventReason


@dataclass(frozen=True, slots=True)
class DeleteNodeRecord:
    """Delete a Slurm node record that no pod stands for any more.

    With `renews` it is deleted before the pod that registers it again is created, and only while
    the record is still of the slurmd that started then (Unix seconds).
    """

    node: str
    why: EventReason
    renews: int | None = None


@dataclass(frozen=True, slots=True)
class SetReservation:
    """Make a reservation, or give the one of that name other nodes. Times are Unix seconds.

    `start` is None where only the nodes change.
    """

    name: str
    nodes: tuple[str, ...]
    flags: tuple[str, ...]
    why: EventReason
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteReservation:
    """Delete a reservation. That there is none is success."""

    name: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class RejectedReservation:
    """Why slurmctld rejected one of these, and when it is sent again (Unix seconds)."""

    words: str
    again_at: float


@dataclass(frozen=True, slots=True)
class TopologyRejection:
    """A topology that slurmctld rejected, its words, and when it is sent again (Unix seconds)."""

    topology: str
    words: str
    again_at: float


@dataclass(frozen=True, slots=True)
class PatchPod:
    """Set labels and annotations (None removes a key) of the pod with this uid.

    `resource_version`, where it is not empty, must be sent too: the patch changes pod-cordon, and a
    user may just have done so. `why` is None for bookkeeping that nobody needs an event for.
    """

    name: str
    uid: str
    labels: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    annotations: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    why: EventReason | None = None
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class SetPodConditions:
    """Set and remove pod conditions by type.

    To be sent as a strategic merge patch of the status (conditions merge by `type` there,
    `$patch: delete` removes one), never as a whole list: the kubelet writes the same list.
    """

    name: str
    uid: str
    conditions: tuple[PodCondition, ...]
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """Have the slurmd at this address register as this Slurm node, of which there is no record."""

    node: str
    address: str
    port: int
    why: EventReason


@dataclass(frozen=True, slots=True)
class RemoveStandIns:
    """Delete records that a process left when it was killed; see `penstock.slurm.stand_in`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Hold the NodeSet back until its pods are drained, should it be deleted."""

    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the NodeSet go."""

    finalizer: str
    why: EventReason


Action: TypeAlias = (
    AddFinalizer
    | CreatePvcs
    | CreatePod
    | SetPvcOwners
    | PatchPod
    | DrainNode
    | UndrainNode
    | ResumeNode
    | PowerDownNode
    | SetNodeComment
    | SetNodeFeatures
    | SetNodeTopology
    | SetPodConditions
    | DeletePod
    | DeleteNodeRecord
    | RegisterNode
    | RemoveStandIns
    | SetReservation
    | DeleteReservation
    | RemoveFinalizer
)
