"""Tell of the keys that a NodeSet's own partition had and has no more.

A merge patch of `spec.partition.config` replaces the whole text. It is told when slurmctld is told,
or else when its file is written. What was is read from the slurm.conf that is replaced, so a
process that starts between tells it as well.
"""

from __future__ import annotations

from collections.abc import Container

from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.runtime.report import Events
from penstock.decide.partition.conditions import without
from penstock.slurm.partition.removed_keys import removed_keys


def tell(
    caches: SlinkyCaches,
    events: Events,
    controller: Controller,
    texts: tuple[str, str],
    *,
    only: Container[str] | None = None,
    but: Container[str] = (),
) -> None:
    """An event at each NodeSet whose line has less in the second slurm.conf than in the first."""
    if texts[0] == texts[1]:
        return
    found = removed_keys(*texts)
    for nodeset in caches.nodesets_of.get(controller.metadata.key) if found else ():
        name, own = names.partition_name(nodeset), nodeset.spec.partition
        meant = name in found and name not in but and (only is None or name in only)
        if meant and own is not None and own.enabled:
            told = without(name, found[name])
            events.of(NODESETS).normal(nodeset, "PartitionKeysGone", told, "Configure")
