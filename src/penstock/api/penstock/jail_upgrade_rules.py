"""Faults of JailUpgrades, and the objects that they name."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.admission import Problem, Reference
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.penstock.backup_rules import CLUSTER
from penstock.api.penstock.jail_upgrade import LONGEST_NAME, JailUpgrade


def problems(obj: JailUpgrade) -> Iterator[Problem]:
    """Faults of a JailUpgrade."""
    spec, name = obj.spec, obj.metadata.name
    if len(name) > LONGEST_NAME:
        yield Problem(
            "metadata.name",
            f"has {len(name)} characters: choose one of at most {LONGEST_NAME}, its Jobs are "
            "called jail-compare-NAME",
        )
    if not spec.cluster_ref.name:
        yield Problem("spec.clusterRef.name", "must not be empty")
    if not spec.image:
        yield Problem("spec.image", "must not be empty")
    if spec.image and spec.image == spec.from_image:
        yield Problem("spec.fromImage", "is spec.image too: name the image that the jail has now")
    if spec.undo and not spec.approved:
        yield Problem("spec.undo", "is for an upgrade that was approved")


def references(obj: JailUpgrade) -> Iterator[Reference]:
    """The cluster that a JailUpgrade names."""
    group, kind = CLUSTER
    yield Reference("spec.clusterRef.name", kind, obj.spec.cluster_ref.name, group)


def uses(obj: JailUpgrade) -> tuple[ObjectKey, ...]:
    """The cluster that a JailUpgrade belongs to."""
    return (ObjectKey(*CLUSTER, obj.metadata.namespace, obj.spec.cluster_ref.name),)
