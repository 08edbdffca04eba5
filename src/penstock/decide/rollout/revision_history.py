"""The ControllerRevisions of a worker set: which there shall be, and which hashes mean the same.

Each template that pods were made from has one; the wanted one has the highest number, also when a
template comes back. Old ones go, but for `revision_history_limit` and those that a pod still has.

Another operator, or another version of Penstock, hashes the same template to something else. Where
the status says that an object of this very generation had another hash, that one means the same: it
is noted at the wanted revision, for good, and its pods are not updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Pod
from penstock.model.recorded_revision import RecordedRevision
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
    gone: tuple[RecordedRevision, ...]


def history(
    workers: WorkerSet, wanted: str, records: Sequence[RecordedRevision], pods: Iterable[Pod]
) -> History:
    """Decide for the template whose hash is `wanted`; `records` are all that the set owns."""
    found = next((one for one in records if one.hash == wanted), None)
    noted = found.equal_hashes if found is not None else ()
    same = tuple(sorted({*noted, *_told(workers)} - {wanted}))
    highest = max((one.number for one in records if one is not found), default=0)
    number = found.number if found is not None and found.number > highest else highest + 1
    kept = max(0, workers.revision_history_limit)
    wanted_hashes = {wanted, *same}
    others = [one for one in records if wanted_hashes.isdisjoint({one.hash, *one.equal_hashes})]
    gone: list[RecordedRevision] = []
    # Nearly always there are no others, and thousands of pods.
    if len(others) > kept:
        used = {workers.marks.revision_of(pod.metadata.labels) for pod in pods}
        unused = (one for one in others if used.isdisjoint({one.hash, *one.equal_hashes}))
        old = sorted(unused, key=lambda one: (one.number, one.name))
        gone = old[: max(0, len(old) - kept)]
    return History(
        equal_hashes=same,
        number=number,
        exists=found is not None,
        is_recorded=found is not None and (noted, found.number) == (same, number),
        gone=tuple(gone),
    )


def _told(workers: WorkerSet) -> tuple[str, ...]:
    last = workers.last
    if not last.revision or last.observed_generation != workers.metadata.generation:
        return ()
    return (last.revision,)
