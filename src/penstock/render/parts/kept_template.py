"""Workloads whose pods another operator made, and which keep their pod template.

An annotation records it (`marks.ADOPTED_TEMPLATE`): a hash of the desired pods when the workload
was adopted, and REPLACED once the operator's own template was written.
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.render.parts import empty_values as empty
from penstock.render.parts.stateful_set import FIXED

REPLACED: Final = "replaced"
"""In place of the note, once our template has been written."""
REPLACING: Final = "replacing"
"""In place of the note, before that."""

_POLICY: Final = "podManagementPolicy"


def in_live_spelling(manifest: Json, live: Json) -> Json:
    """Our manifest for a workload of ours, with the empty fields that its template has already.

    A StatefulSet keeps its podManagementPolicy, which cannot change.
    """
    spec: Json = manifest["spec"]
    template = empty.spelt_as(spec["template"], live["spec"]["template"])
    has = live["spec"].get(_POLICY)
    kept = {_POLICY: has} if has and _POLICY in spec else {}
    return {**manifest, "spec": {**spec, "template": template, **kept}}


def without_template(manifest: Json, noted: str) -> Json:
    """Our manifest for a workload whose pods stay: all but their template."""
    spec = {k: v for k, v in manifest["spec"].items() if k not in ("template", *FIXED)}
    return {**with_note(manifest, noted), "spec": spec}


def with_template(manifest: Json, live: Json) -> Json:
    """Our manifest for another operator's workload from now on; what cannot change stays."""
    fixed = {key: live["spec"][key] for key in FIXED if key in live["spec"]}
    spec = {k: v for k, v in manifest["spec"].items() if k not in FIXED}
    return {**with_note(manifest, REPLACED), "spec": spec | fixed}


def with_note(manifest: Json, value: str) -> Json:
    """The manifest with this note."""
    metadata: Json = manifest["metadata"]
    annotations: Json = metadata.get("annotations") or {}
    noted = annotations | {marks.ADOPTED_TEMPLATE: value}
    return {**manifest, "metadata": {**metadata, "annotations": noted}}
