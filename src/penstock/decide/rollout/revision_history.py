"""The ControllerRevisions of a NodeSet: which there shall be, and which hashes mean the same.

Each template that pods were made from has one, named `<nodeset>-<hash>`; the wanted one has the
highest number, also when a template comes back. Old ones go, but for `revisionHistoryLimit` and
those that a pod still has.

slurm-operator, or another version of Penstock, hashes the same template to something else. Where
the status says that a NodeSet of this very generation had another hash, that one means the same: it
is noted at the wanted revision, for good, and its pods are not updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import ControllerRevision, Pod
from penstock.model.worker_set import WorkerSet


@dataclass(frozen=True, slots=True)
class History:
    """What shall be: the wanted revision's `number` and hashes of the same meaning.

    `exists` says whether there is a record of it, `is_recorded` whether that says so already.
    `gone` are records to delete.
    """

    equal_hashes: tuple[str, ...]
    number: int
    exists: bool
    is_recorded: bool
    gone: tuple[ControllerRevision, ...]


def history(
    workers: WorkerSet, wanted: str, records: Sequence[ControllerRevision], pods: Iterable[Pod]
) -> History:
    """Decide for the template whose hash is `wanted`; `records` are all that the NodeSet owns."""
    found = next((one for one in records if hash_of(workers, one) == wanted), None)
    noted = same_as(found) if found is not None else ()
    same = tuple(sorted({*noted, *_told(workers)} - {wanted}))
    highest = max((one.revision for one in records if one is not found), default=0)
    number = found.revision if found is not None and found.revision > highest else highest + 1
    used = {workers.marks.revision_of(pod.metadata.labels) for pod in pods} | {wanted, *same}
    old = sorted(
        (one for one in records if used.isdisjoint({hash_of(workers, one), *same_as(one)})),
        key=lambda one: (one.revision, one.metadata.name),
    )
    kept = max(0, workers.revision_history_limit)
    return History(
        equal_hashes=same,
        number=number,
        exists=found is not None,
        is_recorded=found is not None and (noted, found.revision) == (same, number),
        gone=tuple(old[: max(0, len(old) - kept)]),
    )


def hash_of(workers: WorkerSet, record: ControllerRevision) -> str:
    """The hash of the template that a ControllerRevision records; its name ends with it."""
    return record.metadata.name.removeprefix(f"{workers.metadata.name}-")


def same_as(record: ControllerRevision) -> tuple[str, ...]:
    """Hashes that mean the same, as noted."""
    text = record.metadata.annotations.get(SAME_REVISIONS, "")
    return tuple(sorted(filter(None, text.split(","))))


def _told(workers: WorkerSet) -> tuple[str, ...]:
    last = workers.last
    if not last.revision or last.observed_generation != workers.metadata.generation:
        return ()
    return (last.revision,)
