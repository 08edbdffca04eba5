"""The revision of a worker set's template, and those that need no other pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Revisions:
    """Revisions by hash; `wanted` is that of new pods.

    Pods of an `equal` one need no update: another operator hashed the same template, or they differ
    in what changes live only. `parameters` has those of the node by revision, for the latter.
    """

    wanted: str
    equal: frozenset[str] = frozenset()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def current(self) -> frozenset[str]:
        """The wanted one and those equal to it."""
        return frozenset((self.wanted, *self.equal))
