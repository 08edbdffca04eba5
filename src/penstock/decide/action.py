"""What must be done, as data: decided here, done by a controller.

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
    """What a user is told: a stable CamelCase reason and a message in words."""

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
    CONTROLLER_GONE = "ControllerGone"


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of a place. AlreadyExists is success: names are deterministic."""

    slot: WorkerSlot
    why: EventReason


@dataclass(frozen=True, slots=True)
class CreateClaims:
    """Make the PersistentVolumeClaims of a place, of which one or more are not there."""

    slot: WorkerSlot
    why: EventReason


@dataclass(frozen=True, slots=True)
class OwnClaim:
    """Write who owns exactly this claim in exactly this version: with them it goes.

    `pod` is whose claim it is, empty when there is none; that pod is not deleted, and the NodeSet
    does not go, before its claims are as they shall be.
    """

    name: str
    uid: str
    resource_version: str
    owners: tuple[OwnerReference, ...]
    pod: str = ""


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete exactly this pod in exactly this version (both preconditions must be sent).

    The actor asks `guard.may_delete` again, with the live pod and a fresh answer of Slurm, and
    leaves the pod alone when that refuses. `node` is the pod's Slurm node, `guard` why the
    decision allowed it.
    """

    name: str
    uid: str
    resource_version: str
    node: str
    guard: DeletionGround
    why: EventReason


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Ask Slurm to give a node no more jobs.

    `override` says whether `reason` takes the place of a reason that is there; see
    `drain.reason_to_send`. With `while_idle` the node was chosen for having no job: if it has got
    one, the drain is not sent, and another node may serve as well.
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
class SetNodeComment:
    """Write the comment by which a Slurm node record is known to be of this NodeSet.

    `gres`, where it is given, comes first; when slurmctld refuses it, the rest is left. `features`,
    `weight` and `extra` change with the comment in the same call: it says what the node was given
    last. Then `why` is told.
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
    """Tell Slurm where a node is in the network; empty for nowhere in particular."""

    node: str
    topology: str
    why: EventReason


@dataclass(frozen=True, slots=True)
class SetNodeFeatures:
    """Give a node exactly these features of its machine; it keeps those of all others."""

    node: str
    features: frozenset[str]
    why: EventReason


@dataclass(frozen=True, slots=True)
class DeleteNodeRecord:
    """Delete a Slurm node record that no pod stands for any more.

    With `renews` it goes before the pod that will make it anew is created, and only while the
    record is still of the slurmd that started then (Unix seconds).
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
class RefusedReservation:
    """What slurmctld said to one of these, and when it is asked again (Unix seconds)."""

    words: str
    again_at: float


@dataclass(frozen=True, slots=True)
class TopologyRejection:
    """What slurmctld did not take, its words, and when it is asked again (Unix seconds)."""

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
    | CreateClaims
    | CreatePod
    | OwnClaim
    | PatchPod
    | DrainNode
    | UndrainNode
    | ResumeNode
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
