"""Events of one pass: the few each, the many together.

A NodeSet that grows by a thousand pods would else write a thousand events, each as dear to the API
server as half a pod, and none of them read.
"""

from __future__ import annotations

from penstock.api.kubernetes.meta import KubeObject
from penstock.base.text import SHOWN, list_some
from penstock.controllers.runtime.report import Events


class EventBatch:
    """Gathers what is to be told of one object until the block ends, however it ends."""

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
