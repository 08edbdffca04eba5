"""The snapshot on which the life of one NodeSet is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import PersistentVolumeClaim, Pod
from penstock.decide.action import TopologyRejection
from penstock.decide.observed.reservations import ObservedReservations
from penstock.decide.observed.revisions import Revisions
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Fact
from penstock.slurm.state import Job, Node


class ControllerState(Enum):
    """What the API server has of the NodeSet's Controller."""

    PRESENT = "present"
    DELETING = "deleting"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class WorkerSetView:
    """All inputs of `penstock.decide.nodeset.plan.plan`.

    `pods` are the pods whose controlling owner is this NodeSet (by uid), terminating ones too.
    `others` are the pods of the namespace that it does not control but whose names are of its form;
    they only serve to find name conflicts. `kubernetes_nodes` needs at least the nodes of `pods`,
    and in DaemonSet mode all there are. `now` is Unix seconds. `creation_blocked` is the finding
    for which no pod can be created now, such as a missing Secret. `rejected_topologies` are the
    topologies that slurmctld rejected, by Slurm node. `pvcs` are those of its pods, by name.
    `cannot_register` is why its Slurm cannot have forgotten workers register again, if it cannot.
    `external` is how an external slurmctld is reached, also when the Controller is gone; None if it
    is inside. `propagated_conditions` are the types of Node conditions that a drain's reason shows.
    """

    workers: WorkerSet
    controller: ControllerState
    pods: tuple[Pod, ...]
    nodes: Fact[Mapping[str, Node]]
    jobs: Fact[tuple[Job, ...]]
    now: float
    revisions: Revisions
    kubernetes_nodes: Mapping[str, KubernetesNode] = field(
        default_factory=dict[str, KubernetesNode]
    )
    others: tuple[Pod, ...] = ()
    creation_blocked: Finding | None = None
    propagated_conditions: tuple[str, ...] = ()
    rejected_topologies: Mapping[str, TopologyRejection] = field(
        default_factory=dict[str, TopologyRejection]
    )
    pvcs: Mapping[str, PersistentVolumeClaim] = field(
        default_factory=dict[str, PersistentVolumeClaim]
    )
    reservations: ObservedReservations = field(default_factory=ObservedReservations)
    cannot_register: str | None = None
    external: ExternalSlurm | None = None

    @property
    def deleting(self) -> bool:
        """Whether the NodeSet itself is being deleted."""
        return self.workers.metadata.deleting

    @property
    def can_create_pods(self) -> bool:
        """Whether pods can be created now: there is a Controller and nothing is missing."""
        return self.controller is ControllerState.PRESENT and self.creation_blocked is None

    @property
    def can_replace_pods(self) -> bool:
        """Whether pods are replaced at all: only while another could be created for each."""
        return self.can_create_pods and not self.deleting
