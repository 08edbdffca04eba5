"""StatefulSets of OpenKruise, as which the original operator made slurmctld, logins and workers.

Penstock makes none. It reads those that are left of the original, to take their pods over.
Source: OpenKruise documentation, "Advanced StatefulSet".
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.kinds import StatefulSet
from penstock.api.kubernetes.resource import Resource

ADVANCED_STATEFUL_SETS: Final = Resource(
    "apps.kruise.io", "v1beta1", "StatefulSet", "statefulsets", StatefulSet, optional=True
)
FINALIZERS: Final = "kruise.io"
"""In the names of finalizers that only OpenKruise's controller removes."""
