"""Which worker pods are of today's make: ControllerRevisions of a NodeSet."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.parts.digest import canonical_json, revision_hash
from penstock.render.parts.pod_template import pod_labels
from penstock.render.parts.revision import Revision, record

_REPLACE = {"$patch": "replace"}


def revision(nodeset: NodeSet) -> Revision:
    """The revision that pods should have.

    It covers template, slurmd, logfile, ssh, extraConf, ordinalPadding and oversubscribeNode, as
    slurm-operator's does, and nothing that a newer Penstock or another default image would change.
    """
    spec = nodeset.spec
    meta = spec.template.metadata
    metadata = {"labels": pod_labels(spec.template, {}), "annotations": meta.annotations or {}}
    template: Json = {"metadata": metadata, "spec": spec.template.spec}
    parts: dict[str, Any] = {
        "template": {**template, **_REPLACE},
        "slurmd": {**spec.slurmd, **_REPLACE},
        "logfile": {**spec.logfile, **_REPLACE},
        "extraConf": spec.extra_conf,
        "ordinalPadding": spec.ordinal_padding,
        "oversubscribeNode": spec.oversubscribe_node,
    }
    if spec.ssh is not None:
        parts["ssh"] = {**msgspec.to_builtins(spec.ssh), **_REPLACE}
    data: Json = {"spec": parts}
    label = revision_hash(canonical_json(data), nodeset.status.collision_count or None)
    return Revision(label, f"{nodeset.metadata.name}-{label}", data)


def controller_revision(nodeset: NodeSet, of: Revision, number: int) -> Json:
    """The ControllerRevision that records `of` as the NodeSet's `number`-th."""
    labels = slinky_labels.worker_labels(nodeset.metadata.name, nodeset.spec.controller_ref.name)
    return record(nodeset, of, number, {**labels, slinky_labels.REVISION_HASH: of.hash})
