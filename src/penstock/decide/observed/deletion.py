"""How a worker set is deleted: alone, or together with the cluster that its jobs run in."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.cluster.marks import DRAIN_FINALIZER
from penstock.base import times
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm.known import Unknown

PATIENCE_S = 3600.0
"""How long an external slurmctld that does not answer keeps the pods of a worker set that is
deleted together with its cluster. It is longer than a maintenance window's restart of slurmctld,
and bounded, because a namespace must be deletable."""
DELETED_PATIENCE_S = 300.0
"""How long after its deletion a worker set without pods waits for a silent Slurm to delete its node
records. Left records cost a line in sinfo; a set that never goes blocks its namespace."""
GOING_S = 60.0
"""The same for a set that goes with its whole cluster, of an external slurmctld: slurmrestd ends at
the same time, and a namespace is waited for by somebody."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """`silent_since` (Unix seconds) is None unless an external slurmctld is waited for.

    `patience` are the seconds for which it is waited for still. `records_patience` are those for
    which a set without pods waits for a silent Slurm to delete its node records; None for one that
    has pods or no finalizer.
    """

    is_with_cluster: bool = False
    """Whether it is deleted together with its cluster, as by `helm uninstall`."""
    is_external: bool = False
    silent_since: float | None = None
    patience: float | None = None
    records_patience: float | None = None

    @property
    def is_orphaned(self) -> bool:
        """Whether no Slurm is left to answer.

        A slurmctld inside goes with its cluster, and its jobs with it. An external one continues
        with its jobs, so it is queried until it has been silent for `PATIENCE_S`.
        """
        return self.is_with_cluster and (not self.is_external or self.patience == 0.0)


_NONE = Deletion()


def deletion_of(view: WorkerSetView) -> Deletion:
    """The deletion of a worker set; nothing of it for one that is not deleted."""
    if not view.deleting:
        return _NONE
    is_with_cluster = view.controller is not ControllerState.PRESENT
    left = _records_patience(view, is_with_cluster=is_with_cluster)
    if not is_with_cluster or view.external is None:
        return Deletion(is_with_cluster, records_patience=left)
    if not isinstance(view.nodes, Unknown) and not isinstance(view.jobs, Unknown):
        return Deletion(is_with_cluster=True, is_external=True, records_patience=left)
    noted = times.parse(view.external.silent_since)
    since = view.now if noted is None else min(noted, view.now)
    patience = max(0.0, since + PATIENCE_S - view.now)
    return Deletion(True, True, since, patience, left)


def _records_patience(view: WorkerSetView, *, is_with_cluster: bool) -> float | None:
    meta = view.workers.metadata
    deleted = times.parse(meta.deletion_timestamp)
    if deleted is None or view.pods or DRAIN_FINALIZER not in meta.finalizers:
        return None
    if view.workers.is_of_cluster:
        # Records go with its slurmctld, which somebody else may have deleted before, as a
        # namespace's deletion does.
        return 0.0
    seconds = GOING_S if is_with_cluster else DELETED_PATIENCE_S
    return max(0.0, deleted + seconds - view.now)
