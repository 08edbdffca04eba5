"""Revision history: the ControllerRevisions of a worker set, and hashes of equal templates.

Each template that pods were created from has one. The current template has the highest number, also
when it is used again. Old ones are deleted, except `revision_history_limit` and those of pods.

Another operator, or another version of Penstock, has another hash for the same template. When the
status records another hash for the same generation of the object, both are equal: the current
revision records it for good, and pods with that hash are not updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Pod
from penstock.model.recorded_revision import RecordedRevision
from penstock.model.worker_set import WorkerSet


@dataclass(frozen=True, slots=True)
class History:
    """Desired state of the history: the current revision's `number` and equal hashes.

    `exists` is whether it has a ControllerRevision, `is_recorded` whether that one has both values
    already. `gone` are ControllerRevisions to delete.
    """

    equal_hashes: tuple[str, ...]
    number: int
    exists: bool
    is_recorded: bool
    gone: tuple[RecordedRevision, ...]


def history(
    workers: WorkerSet, wanted: str, records: Sequence[RecordedRevision], pods: Iterable[Pod]
) -> History:
    """Return the history for the template with the hash `wanted`; the set owns all `records`."""
    found = next((one for one in records if one.hash == wanted), None)
    noted = found.equal_hashes if found is not None else ()
    same = tuple(sorted({*noted, *_last_revision(workers)} - {wanted}))
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


def _last_revision(workers: WorkerSet) -> tuple[str, ...]:
    last = workers.last
    is_of_spec = last.observed_generation == workers.metadata.generation
    if not last.revision or not last.is_revision_of_spec or not is_of_spec:
        return ()
    return (last.revision,)
