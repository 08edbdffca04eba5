"""The lifetime of objects: state in memory belongs to one object and goes with it.

Loops keep what they remember by `namespace/name`, because that is what the work queue hands them.
A name may be taken by another object later, so each loop compares uids before it does anything
else. The work queue runs one reconcile per key at a time: whatever a reconcile of the former object
has written is there when its successor's begins, and is forgotten then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.api.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

Forget = Callable[[str, str], None]
"""Drops all state of the object that had this key (`namespace/name`) and this uid."""


class Lifetimes:
    """The uid of the object that each key of one loop stood for at its last reconcile."""

    def __init__(self, forget: Forget) -> None:
        self._forget = forget
        self._uids: dict[str, str] = {}

    def observe(self, key: str, obj: KubeObject | None) -> None:
        """Call `forget` if the object that had this key is gone, or another one has its name."""
        uid = obj.metadata.uid if obj is not None else None
        before = self._uids.get(key)
        if before is not None and before != uid:
            self._forget(key, before)
        if uid is None:
            self._uids.pop(key, None)
        else:
            self._uids[key] = uid


def gone(old: T | None, new: T | None) -> T | None:
    """The object that a change in a cache took away, if it did.

    A watch that was interrupted may show a deletion and the creation of another object under the
    same name as one change.
    """
    if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
        return old
    return None
