"""Whether PVCs that a SlurmCluster names exist, and whether several nodes can have its jail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jail import JailReason
from penstock.catalog.reasons.object import ObjectReason

JAIL_SHARED: Final = ConditionType.JAIL_SHARED
"""Type of the condition about the access modes of the jail's PVC. It does not affect Ready."""
_SHARED: Final = JailReason.SHARED.value


@dataclass(frozen=True, slots=True)
class NamedPvc:
    """A PVC that a field names, as the cache has it."""

    field: str
    name: str
    namespace: str
    is_jail: bool
    access_modes: Sequence[str] | None
    """None while it does not exist."""


def findings(every: Iterable[NamedPvc], old: Iterable[Condition]) -> Iterator[Finding]:
    """PVCs that are absent, and a jail that pods on one Kubernetes node alone can mount."""
    pvcs = list(every)
    if absent := [one for one in pvcs if one.access_modes is None]:
        shown = [f"{one.field}: PVC {one.name} does not exist" for one in absent]
        words = f"{list_some(shown, '; ')} in namespace {absent[0].namespace}"
        next_step = "Create it; pods that mount it wait until then"
        yield Finding(False, ObjectReason.PVC_NOT_FOUND, f"{words}. {next_step}")
    jail = next((one for one in pvcs if one.is_jail and one.access_modes), None)
    if jail is not None and _SHARED not in (jail.access_modes or ()):
        words = f"{jail.field}: PVC {jail.name} has {list_some(jail.access_modes or ())}"
        next_step = f"name a PVC with {_SHARED}, or keep all pods on one Kubernetes node"
        yield _shared(False, JailReason.NOT_SHARED, f"{words}, so one node at a time: {next_step}")
    elif find(old, JAIL_SHARED) is not None:
        yield _shared(True, JailReason.SHARED, "")


def _shared(ok: bool, reason: ConditionReason, words: str) -> Finding:
    return Finding(ok, reason, words, type=JAIL_SHARED, excluded_from_ready=True)
