"""Keep the records of the templates that a NodeSet's pods are made from."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import REVISIONS
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.runtime.caches import World
from penstock.decide.rollout.revision_history import history
from penstock.decide.slurm_node import parameters as live_conf
from penstock.kube import AlreadyExistsError, Client, NotFoundError
from penstock.model.worker_set import WorkerSet
from penstock.render.slinky.nodeset import revision_meaning as meaning
from penstock.render.slinky.nodeset import worker_pod as worker


@dataclass(frozen=True, slots=True)
class Same:
    """Hashes of revisions that need no other pod than the wanted one.

    `confs` are the extraConf of the wanted one, and of those that differ from it in what changes
    live or in how it is written only.
    """

    hashes: frozenset[str] = frozenset()
    confs: Mapping[str, str] = field(default_factory=dict[str, str])


async def keep_revisions(
    client: Client, world: World, nodeset: NodeSet, workers: WorkerSet, fixed: Collection[str] = ()
) -> Same:
    """Write what is missing and delete what is too old; returns which mean the wanted one.

    `fixed` are counts of generic resources that do not change live; see `live_conf.alike`.

    To be done before the status is written: that is where another operator's hash is read from.
    Raises KubeError.
    """
    meta = nodeset.metadata
    revision = worker.revision(nodeset)
    wanted = meaning.declared_revision(nodeset)
    every = world.revisions_of.get(meta.uid)
    records = [meaning.recorded_revision(nodeset, one) for one in every]
    found = history(workers, revision.hash, records, world.pods_of.get(meta.uid))
    notes = {marks.SAME_REVISIONS: ",".join(found.equal_hashes)} if found.equal_hashes else {}
    if not found.exists:
        manifest = worker.controller_revision(nodeset, revision, found.number)
        manifest["metadata"] |= {"annotations": notes} if notes else {}
        # It may be there already: our own, not seen yet, or that of a NodeSet that is just going.
        with contextlib.suppress(AlreadyExistsError):
            await client.create(REVISIONS, manifest)
    elif not found.is_recorded:
        change = {"metadata": {"annotations": notes}, "revision": found.number}
        with contextlib.suppress(NotFoundError):
            await client.patch(REVISIONS, meta.namespace, revision.name, change)
    for one in found.gone:
        with contextlib.suppress(NotFoundError):
            await client.delete(REVISIONS, meta.namespace, one.name, uid=one.uid)
    confs = live_conf.equal_revisions(wanted, records, fixed)
    confs[revision.hash] = workers.parameters
    return Same(frozenset({*found.equal_hashes, *confs} - {revision.hash}), confs)
