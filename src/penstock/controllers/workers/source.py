"""What an API gives so that its workers can be led: the seam between one API and the engine.

The engine reads the model and asks for manifests of single objects. Which fields of which kind they
come from, and what else an API does for its workers, is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.decide.drift import Choice
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.model.worker_status import ExternalSlurm


class WorkerSource(Protocol):
    """The workers of one object in the version that a reconcile has read.

    `object` is of the kind `resource`: events are about it, finalizers stand on it. `problems` are
    its own faults: nothing that belongs to it changes while there are any. `is_cluster_ready`
    means that its cluster has all that pods need to start. Unless `is_template_known`, `revision`
    is that of the last status, and nothing is recorded.
    """

    object: KubeObject
    resource: Resource[Any]
    workers: WorkerSet
    problems: Sequence[Finding]
    is_cluster_ready: bool
    is_template_known: bool = True

    # What is known of it and of its cluster

    def has_newer(self) -> bool:
        """Whether somebody has changed the spec since the object was read."""
        ...

    def cluster_state(self) -> ControllerState:
        """What the API server has of the object of its cluster."""
        ...

    def connection(self) -> SlurmConnection | None:
        """The connection to its cluster's Slurm, if there is one yet."""
        ...

    def external(self) -> ExternalSlurm | None:
        """How its slurmctld is asked if it is external; None if it is inside."""
        return None

    def creation_blocked(self) -> Finding | None:
        """Why no pod can be created now."""
        ...

    # Manifests, which are asked for only while the cluster is ready

    def pod(self, slot: WorkerSlot) -> Json:
        """The pod of a slot, as it is to be created."""
        ...

    def pvcs(self, slot: WorkerSlot) -> Sequence[Json]:
        """The PVCs of a slot."""
        return ()

    async def apply_shared_objects(self) -> None:
        """Create or update what its pods need besides themselves. Raises KubeError."""

    # Revisions

    def revision(self) -> RecordedRevision:
        """The template that new pods are made from."""
        ...

    def recorded(self, record: ControllerRevision) -> RecordedRevision:
        """What a ControllerRevision of the object records."""
        ...

    def revision_manifest(self, number: int) -> Json:
        """The ControllerRevision that records the template of now as the `number`-th."""
        ...

    def rollback_patch(self, live: Json, value: str, spec: Json | None) -> list[Json]:
        """The JSON patch that declares a recorded template again and notes the `value` as done.

        `live` is the object's spec as the API server has it, `spec` the `RecordedRevision.spec`;
        None where only the value is noted.
        """
        ...

    def parameters_patch(self, parameters: str) -> Json:
        """The fields of the spec that declare these parameters; empty if it has none for them."""
        ...

    # What only its API does for workers

    def partition_findings(self) -> list[Finding]:
        """Findings about the partition that the object declares for its nodes."""
        return []

    async def partition_drift(self, chosen: Choice) -> list[str] | None:
        """Do what is `chosen` when that partition was changed in Slurm; what still differs.

        None while that is not known. Raises KubeError.
        """
        del chosen
        return []

    async def findings(
        self, view: WorkerSetView, connection: SlurmConnection | None
    ) -> list[Finding]:
        """Further findings, of which no decision depends. Raises KubeError."""
        del view, connection
        return []

    def requeue_after(self, view: WorkerSetView) -> float | None:
        """Seconds after which those are to be computed again; None when a watch shows that."""
        del view
        return None
