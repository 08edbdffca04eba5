"""The MariaDB that the operator runs for the slurmdbd of an Accounting."""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.render.parts import merge
from penstock.render.parts.embedded_database import DatabaseInputs
from penstock.render.parts.owner import owner

APP: Final = "slurmdbd-database"
"""Label app.kubernetes.io/name of its pod."""
_PLACE: Final = ("nodeSelector", "affinity", "tolerations", "priorityClassName", "schedulerName")
_PULL: Final = "imagePullSecrets"


def inputs(accounting: Accounting) -> DatabaseInputs | None:
    """What it is rendered from; None for an Accounting with another database.

    It runs where `spec.template` has slurmdbd run.
    """
    declared, given = accounting.spec.embedded_database, accounting.spec.template.spec
    if declared is None or accounting.spec.external:
        return None
    place = {field: given[field] for field in _PLACE if given.get(field)}
    if not declared.image_pull_secrets and given.get(_PULL):
        place[_PULL] = merge.items(given[_PULL])
    meta = accounting.metadata
    return DatabaseInputs(
        name=names.accounting_database(accounting),
        namespace=meta.namespace,
        owner=owner(accounting),
        labels=app_labels.labels(APP, meta.name),
        selector=app_labels.selector_labels(APP, meta.name),
        declared=declared,
        password_hash="",
        place=place,
    )
