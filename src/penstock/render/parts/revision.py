"""ControllerRevisions: the templates that the pods of a worker set are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata


@dataclass(frozen=True, slots=True)
class Revision:
    """The part of an object that its pods are made from."""

    hash: str
    """Value of the pods' revision label."""
    name: str
    """Name of the ControllerRevision."""
    data: Json


def record(of: KubeObject, revision: Revision, number: int, labels: Mapping[str, str]) -> Json:
    """The ControllerRevision that records a revision as the object's `number`-th."""
    meta = of.metadata
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": object_metadata(revision.name, meta.namespace, labels, owner(of)),
        "data": revision.data,
        "revision": number,
    }
