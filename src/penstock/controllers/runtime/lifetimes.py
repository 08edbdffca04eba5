"""The lifetime of objects: state in memory belongs to one object and goes with it.

Loops keep what they remember by `namespace/name`, because that is what the work queue hands them.
A name may be taken by another object later, so each loop compares uids before it does anything
else. The work queue runs one reconcile per key at a time: whatever a reconcile of the former object
has written is there when its successor's begins, and is forgotten then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from penstock.api.kubernetes.meta import KubeObject

Forget = Callable[[str, str], None]
"""Drops all state of the object that had this key (`namespace/name`) and this uid."""


class Owner(Protocol):
    """Something with state by the key of an object."""

    def forget(self, key: str, /) -> None:
        """Drop all state of the object that had this key."""
        ...


OwnerT = TypeVar("OwnerT", bound=Owner)
StateT = TypeVar("StateT", bound=dict[str, Any] | set[str])


class Lifetimes:
    """The uid of the object that each key of one loop stood for at its last reconcile.

    Who keeps state of these objects registers it once, where it is made.
    """

    def __init__(self, *forgets: Forget) -> None:
        self._forgets = list(forgets)
        self._uids: dict[str, str] = {}

    def add(self, forget: Forget) -> None:
        """Call this at the end of each object."""
        self._forgets.append(forget)

    def owner(self, one: OwnerT) -> OwnerT:
        """Register something that keeps state by key, and return it."""
        self.add(lambda key, _: one.forget(key))
        return one

    def by_key(self, state: StateT) -> StateT:
        """Register a mapping or a set of keys, and return it."""
        self.add(lambda key, _: _drop(state, key))
        return state

    def by_uid(self, state: StateT) -> StateT:
        """Register a mapping or a set of uids, and return it."""
        self.add(lambda _, uid: _drop(state, uid))
        return state

    def observe(self, key: str, obj: KubeObject | None) -> None:
        """Forget the object that had this key if it is gone, or another one has its name."""
        uid = obj.metadata.uid if obj is not None else None
        before = self._uids.get(key)
        if before is not None and before != uid:
            for forget in self._forgets:
                forget(key, before)
        if uid is None:
            self._uids.pop(key, None)
        else:
            self._uids[key] = uid


def _drop(state: dict[str, Any] | set[str], name: str) -> None:
    if isinstance(state, dict):
        state.pop(name, None)
    else:
        state.discard(name)
