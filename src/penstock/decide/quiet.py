"""What was looked at before and asked for nothing, so that it need not be looked at again.

A settled fleet gives each decision thousands of pods of which one has changed. Caches and mirror
keep the objects that did not change, so identity tells: the same pod, node record, jobs and machine
under the same NodeSet give the same answer, and "nothing" does not depend on the time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.decide.slots import Places

Looked = tuple[object, object, object, object]


class Quiet:
    """Things that asked for nothing, by a key, with what was looked at. For one NodeSet.

    It changes what a decision costs, never what is decided.
    """

    def __init__(self) -> None:
        self.places: tuple[tuple[object, ...], Places] | None = None
        """The last places in DaemonSet mode, with what they were worked out of."""
        self._settings: tuple[Any, ...] = ()
        self._looked: dict[str, Looked] = {}

    def under(self, *settings: Any) -> None:
        """Say what all decisions depend on besides; what was known under others is forgotten."""
        if settings != self._settings:
            self._settings = settings
            self._looked.clear()

    def holds(self, key: str, pod: object, record: object, jobs: object, machine: object) -> bool:
        """Whether the very same objects asked for nothing before.

        Jobs are gathered anew for each decision, so they are compared.
        """
        known = self._looked.get(key)
        # Written out, as it is asked for each of thousands of pods.
        return (
            known is not None
            and known[0] is pod
            and known[1] is record
            and known[3] is machine
            and known[2] == jobs
        )

    def note(self, key: str, looked: Looked) -> None:
        """These asked for nothing."""
        self._looked[key] = looked

    def keep(self, keys: Collection[str]) -> None:
        """Forget all others, once there are more of them than of these."""
        if len(self._looked) > 2 * len(keys):
            self._looked = {key: self._looked[key] for key in keys if key in self._looked}
