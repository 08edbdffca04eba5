"""Writes the ControllerRevisions of the templates that a worker set's pods are made from."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import REVISIONS
from penstock.controllers.workers.caches import WorkerCaches, owner_of
from penstock.controllers.workers.source import WorkerSource
from penstock.decide.rollout.revision_history import history
from penstock.decide.slurm_node import parameters
from penstock.kube import AlreadyExistsError, Client, NotFoundError


@dataclass(frozen=True, slots=True)
class EqualRevisions:
    """Hashes of revisions that need no other pod than the wanted one.

    `parameters` are those of the wanted one, and of those that differ from it only in parameters
    that change in Slurm itself, or in how they are written.
    """

    hashes: frozenset[str] = frozenset()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


async def record_revisions(
    client: Client, caches: WorkerCaches, source: WorkerSource, fixed: Collection[str] = ()
) -> EqualRevisions:
    """Write what is missing and delete what is too old; returns which equal the wanted one.

    `fixed` are counts of generic resources that do not change live; see
    `penstock.decide.slurm_node.parameters.equal_revisions`.

    To be done before the status is written: that is where another operator's hash is read from.
    Raises KubeError.
    """
    workers, wanted = source.workers, source.revision()
    meta = workers.metadata
    records = [source.recorded(one) for one in caches.revisions_of.get(owner_of(workers))]
    found = history(workers, wanted.hash, records, caches.pods_of.get(owner_of(workers)))
    notes = {SAME_REVISIONS: ",".join(found.equal_hashes)} if found.equal_hashes else {}
    if not found.exists:
        manifest = source.revision_manifest(found.number)
        manifest["metadata"] |= {"annotations": notes} if notes else {}
        # It may exist already: our own, not in the cache yet, or that of an object that is going.
        with contextlib.suppress(AlreadyExistsError):
            await client.create(REVISIONS, manifest)
    elif not found.is_recorded:
        change = {"metadata": {"annotations": notes}, "revision": found.number}
        with contextlib.suppress(NotFoundError):
            await client.patch(REVISIONS, meta.namespace, wanted.name, change)
    for one in found.gone:
        with contextlib.suppress(NotFoundError):
            await client.delete(REVISIONS, meta.namespace, one.name, uid=one.uid)
    equal = parameters.equal_revisions(wanted, records, fixed)
    equal[wanted.hash] = workers.parameters
    return EqualRevisions(frozenset({*found.equal_hashes, *equal} - {wanted.hash}), equal)
