"""Claim templates of a StatefulSet, which are immutable once it exists.

Source: Kubernetes API reference, StatefulSetSpec; documentation, "StatefulSets", Limitations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import same_quantity
from penstock.base.text import list_some
from penstock.catalog.reasons.pods import PodReason

_FIELD = "volumeClaimTemplates"


def keep(
    manifest: Json, live: Json | None, field: str = "spec.persistence"
) -> tuple[Json, list[Finding]]:
    """Return the manifest with the live StatefulSet's templates, and the condition about that.

    Equal quantities in another notation are no difference. `field` declares the PVCs. Pods stay
    while their template mounts a PVC that the StatefulSet lacks: Kubernetes would delete them and
    could not create others.
    """
    if live is None:
        return manifest, []
    asked = cast("list[Json]", manifest["spec"].get(_FIELD) or [])
    there = cast("list[Json]", live["spec"].get(_FIELD) or [])
    differing = [
        f"{name}.{path}" if path else name
        for name in dict.fromkeys([_name(one) for one in (*asked, *there)])
        for path in _differences(_spec(asked, name), _spec(there, name))
    ]
    if not differing and list(map(_identity, asked)) == list(map(_identity, there)):
        return manifest, []
    spec = {key: value for key, value in manifest["spec"].items() if key != _FIELD}
    if there:
        spec[_FIELD] = [{"metadata": _metadata(one), "spec": one["spec"]} for one in there]
    findings: list[Finding] = []
    lacking = sorted({_name(one) for one in asked} - {_name(one) for one in there})
    if lacking:
        spec["template"] = live["spec"]["template"]
        words = (
            f"{field}: StatefulSet {live['metadata']['name']} lacks the claim templates "
            f"{list_some(lacking)}, which Kubernetes does not add to it, so its pods stay as they "
            # kubectl may take the new StatefulSet for the old one, and wait for its end for ever.
            f"are. Run kubectl delete statefulset {live['metadata']['name']} --cascade=orphan "
            "--wait=false; the operator recreates it; then delete its pods one after the other"
        )
        findings = [Finding(False, PodReason.CLAIM_TEMPLATE_MISSING, words)]
    elif differing:
        message = (
            f"{field}: the PVC stays as it was made ({', '.join(differing)}): Kubernetes does "
            "not change PVCs of a StatefulSet. To enlarge it, edit the PVC; for another one, "
            "delete the StatefulSet and the PVC"
        )
        findings = [Finding(True, PodReason.CLAIM_KEPT, message)]
    return {**manifest, "spec": spec}, findings


def _metadata(template: Json) -> Json:
    """Of a live template: its labels cannot change either."""
    kept = ("name", "labels", "annotations")
    return {key: template["metadata"][key] for key in kept if template["metadata"].get(key)}


def _identity(template: Json) -> tuple[str, Json]:
    return _name(template), template["metadata"].get("labels") or {}


def _name(template: Json) -> str:
    return str(template["metadata"]["name"])


def _spec(templates: list[Json], name: str) -> Json | None:
    return next((one["spec"] for one in templates if _name(one) == name), None)


def _differences(asked: Any, live: Any) -> list[str]:
    """Return the paths of requested values that differ; an empty path for all of them."""
    if isinstance(asked, dict) and isinstance(live, dict):
        desired, has = cast("Json", asked), cast("Json", live)
        return [
            f"{key}.{path}".rstrip(".")
            for key, value in desired.items()
            for path in _differences(value, has.get(key))
        ]
    if isinstance(asked, list | tuple) and isinstance(live, list | tuple):
        # Typed objects have tuples where the API server's JSON has lists.
        pairs = cast("Sequence[Any]", asked), cast("Sequence[Any]", live)
        same = len(pairs[0]) == len(pairs[1])
        return [] if same and not any(map(_differences, *pairs)) else [""]
    return [] if asked == live or same_quantity(asked, live) else [""]
