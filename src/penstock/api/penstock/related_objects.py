"""Rules of a Partition about the objects around it."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.admission import Reference, RelatedObjects
from penstock.api.cluster.cluster_ref import CONTROLLER, controller_key
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.penstock.partition import Partition
from penstock.base.text import list_some


def references(obj: Partition) -> Iterator[Reference]:
    """The cluster that a Partition names."""
    group, kind = CONTROLLER
    yield Reference("spec.controllerRef.name", kind, obj.spec.controller_ref.name, group)


def uses(obj: Partition) -> tuple[ObjectKey, ...]:
    """The cluster that a Partition belongs to."""
    return controller_key(obj.spec.controller_ref, obj.metadata.namespace)


def partitions(obj: Partition) -> tuple[str, ...]:
    """Slurm's name of it."""
    return (obj.slurm_name,)


def warnings(obj: Partition, related: RelatedObjects) -> Iterator[str]:
    """Other objects that declare a partition of the same name."""
    if same := related.partitions.get(obj.slurm_name, ()):
        yield (
            f"spec.name: {obj.slurm_name} is declared by {list_some(same)} already, which keeps "
            "it; choose another name, or take it out there"
        )
