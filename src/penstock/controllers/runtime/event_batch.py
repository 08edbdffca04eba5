"""Events of one reconcile: a few are emitted singly, many are summarized.

A NodeSet that grows by a thousand pods would otherwise emit a thousand events. Each costs the API
server half as much as creating a pod, and nobody reads them.
"""

from __future__ import annotations

from penstock.api.kubernetes.meta import KubeObject
from penstock.base.text import SHOWN, list_some
from penstock.controllers.runtime.report import Events


class EventBatch:
    """Collects the events of one object, and emits them when the block ends, also by an error."""

    def __init__(self, events: Events, obj: KubeObject) -> None:
        self._events = events
        self._obj = obj
        self._notes: dict[tuple[bool, str, str], list[str]] = {}

    def normal(self, reason: str, note: str, action: str) -> None:
        """Something was done."""
        self._notes.setdefault((False, reason, action), []).append(note)

    def warning(self, reason: str, note: str, action: str) -> None:
        """Something is wrong, and a user may want to act."""
        self._notes.setdefault((True, reason, action), []).append(note)

    def __enter__(self) -> EventBatch:
        return self

    def __exit__(self, *_: object) -> None:
        for (bad, reason, action), notes in self._notes.items():
            send = self._events.warning if bad else self._events.normal
            for note in notes if len(notes) <= SHOWN else [list_some(notes, "; ")]:
                send(self._obj, reason, note, action)
