"""Emits events about overridden fields, such as those of `helm upgrade` after a patch.

The object's managedFields have all that is compared, so only a change while no operator runs is
missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.event import Event
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.advice.overridden_fields import describe, find_overridden
from penstock.kube.runtime.state import StateByUid


@dataclass(slots=True)
class _State:
    seen: Json | None = None
    """Metadata and spec of the last version."""


class OverriddenFieldDetector:
    """Looks at each new generation of what is in a cache with JSON; silent while not leading."""

    def __init__(self, context: Context, resource: Resource[Any]) -> None:
        self._client = context.client
        self._cache = cache = context.caches.store.of(resource, raw=True)
        self._events = Events(context.recorder, resource)
        self._states = StateByUid(cache, _State)
        cache.subscribe(self._compare)

    def _compare(self, _: KubeObject | None, new: KubeObject | None) -> None:
        if new is None:
            return
        state = self._states.of(new)
        before = state.seen
        if before is not None and before["metadata"].get("generation") == new.metadata.generation:
            return
        now = self._cache.raw(new.metadata.key)
        if now is None:
            return
        state.seen = {"metadata": now["metadata"], "spec": now.get("spec", {})}
        found = find_overridden(before, now) if before is not None else ()
        leads = self._client.guard is None or self._client.guard()
        if found and leads and not new.metadata.deleting:
            self._events.warning(new, Event.FIELDS_SET_BACK, describe(found), "Observe")
