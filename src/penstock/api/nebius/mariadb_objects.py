"""MariaDB and Grant of mariadb-operator: the fields that the operator reads.

Source: API reference of mariadb-operator 25, `k8s.mariadb.com/v1alpha1`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from penstock.api.kubernetes.meta import Condition, Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource

_GROUP: Final = "k8s.mariadb.com"
_READY: Final = "Ready"


class MariaDbStatus(KubeStruct, frozen=True):
    """Status of either kind."""

    conditions: tuple[Condition, ...] | None = None


class MariaDb(KubeObject, frozen=True):
    """A database that mariadb-operator runs."""

    spec: Json = field(default_factory=dict[str, Any])
    status: MariaDbStatus = MariaDbStatus()


class Grant(MariaDb, frozen=True):
    """Rights of a user of such a database."""


def not_ready(obj: MariaDb) -> str | None:
    """Why mariadb-operator reports an object as not ready, in its words; None when it is ready."""
    for one in obj.status.conditions or ():
        if one.type == _READY:
            return None if one.status == "True" else (one.message or one.reason)
    return "mariadb-operator has not reported on it yet"


MARIADBS: Final = Resource(
    _GROUP,
    "v1alpha1",
    "MariaDB",
    "mariadbs",
    MariaDb,
    optional=True,
    forbidden_is_absent=True,
)
GRANTS: Final = Resource(
    _GROUP,
    "v1alpha1",
    "Grant",
    "grants",
    Grant,
    optional=True,
    forbidden_is_absent=True,
)
