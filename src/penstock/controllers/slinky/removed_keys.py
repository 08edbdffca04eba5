"""Emits events about keys that were removed from a NodeSet's own partition.

A merge patch of `spec.partition.config` replaces the whole text. The event follows the REST call,
or else the write of the file. The former keys are those of the replaced slurm.conf, so a process
that starts in between emits the event as well.
"""

from __future__ import annotations

from collections.abc import Container

from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.catalog.event import Event
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.runtime.report import Events
from penstock.decide.partition.conditions import without
from penstock.slurm.partition.removed_keys import removed_keys


def emit_removed_keys(
    caches: SlinkyCaches,
    events: Events,
    controller: Controller,
    texts: tuple[str, str],
    *,
    only: Container[str] | None = None,
    but: Container[str] = (),
) -> None:
    """Emit an event for each NodeSet whose line lost keys from the first text to the second."""
    if texts[0] == texts[1]:
        return
    found = removed_keys(*texts)
    for nodeset in caches.nodesets_of.get(controller.metadata.key) if found else ():
        name, own = names.partition_name(nodeset), nodeset.spec.partition
        meant = name in found and name not in but and (only is None or name in only)
        if meant and own is not None and own.enabled:
            message = without(name, found[name])
            events.of(NODESETS).normal(nodeset, Event.PARTITION_KEYS_GONE, message, "Configure")
