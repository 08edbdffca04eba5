"""Faults of the MariaDB that the operator runs for slurmdbd."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.admission import Problem
from penstock.api.cluster.embedded_database import EmbeddedDatabase
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.quantity import FORM, is_quantity, quantity


def database_problems(path: str, declared: EmbeddedDatabase) -> Iterator[Problem]:
    """Values with which Kubernetes creates no pod or PVC."""
    if not declared.image:
        yield Problem(f"{path}.image", "name an image of MariaDB")
    size = declared.storage.size
    if not is_quantity(size) or quantity(size) <= 0:
        yield Problem(f"{path}.storage.size", f"{str(size)[:60]!r}: write {FORM}, above 0")
    fields = {"resources": declared.resources}
    found = list(shapes.excess(path, fields)) or shapes.shape_problems(
        path, fields, shapes.CONTAINER
    )
    yield from (Problem(*one) for one in found)
