"""Adopted workloads: pods of another operator stay as long as they match the spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.pods import PodReason
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.kube import FIELD_MANAGER, has_other_managers
from penstock.render.parts import kept_template as kept
from penstock.render.parts.kept_template import REPLACED, REPLACING
from penstock.render.slinky.cluster import adopted_workload as adopted
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec

ADOPTED = ConditionType.PODS_ADOPTED
"""Type of the condition about adopted pods."""
_WORKLOADS = ("StatefulSet", "Deployment")


@dataclass(frozen=True, slots=True)
class WorkloadAdoption:
    """Plan for a workload; `is_foreign` is one of another operator.

    Its pods stay while `keeps_pods`, and `spec_hash` records for which spec. A workload without a
    record gets one first, alone, so that it is recognized while its fields change owners.
    """

    manifests: tuple[Json, ...]
    live: Json | None = None
    is_foreign: bool = False
    keeps_pods: bool = False
    spec_hash: str = ""
    first: bool = False

    def apply(self, *, stays: bool | None = None) -> list[Json]:
        """Return the manifests to apply; `stays` overrides `keeps_pods`."""
        return [
            self._of(one, self.keeps_pods if stays is None else stays) for one in self.manifests
        ]

    def _of(self, manifest: Json, stays: bool) -> Json:
        if manifest["kind"] not in _WORKLOADS or self.live is None:
            return manifest
        if not self.is_foreign:
            return kept.in_live_spelling(manifest, self.live)
        if stays:
            return kept.without_template(manifest, self.spec_hash)
        if self.first:
            return kept.without_template(manifest, REPLACING)
        return kept.with_template(kept.in_live_spelling(manifest, self.live), self.live)

    @property
    def findings(self) -> list[Finding]:
        """The condition while pods of another operator stay, and after their replacement."""
        if not self.is_foreign:
            return []
        if not self.keeps_pods:
            message = "The pods have Penstock's template"
            return [Finding(True, PodReason.REPLACED, message, type=ADOPTED, inverted=True)]
        message = (
            "The pods stay as slurm-operator made them. They are replaced when their spec changes, "
            f"or when {marks.ADOPTED_PODS} is {marks.REPLACE}"
        )
        return [Finding(True, PodReason.AS_THEY_WERE, message, type=ADOPTED)]


def inspect(
    objects: ObjectStore,
    of: KubeObject,
    manifests: Sequence[Json],
    declared: WorkloadSpec,
    *,
    asked: bool = False,
    fits: bool = True,
) -> WorkloadAdoption:
    """Return the plan for the one workload among `manifests`.

    `fits` is whether the daemon started with its desired configuration. `asked`, or an annotation
    of the object, has the pods replaced in any case.
    """
    found = tuple(manifests)
    manifest = next(one for one in found if one["kind"] in _WORKLOADS)
    live = objects.live(manifest)
    if live is None:
        return WorkloadAdoption(found)
    annotations: Json = live["metadata"].get("annotations") or {}
    was = annotations.get(marks.ADOPTED_TEMPLATE)
    if was == REPLACED:
        return WorkloadAdoption(found, live, is_foreign=True)
    if was is None and not has_other_managers(live, FIELD_MANAGER, "spec", "template"):
        return WorkloadAdoption(found, live)
    noted = adopted.spec_hash(declared)
    wants = asked or of.metadata.annotations.get(marks.ADOPTED_PODS) == marks.REPLACE
    # A record of an earlier version counts once: pods that do not match the spec are replaced.
    same = was == noted or (
        (adopted.is_older(was) if was is not None else fits) and adopted.satisfies(declared, live)
    )
    stays = same and not wants
    return WorkloadAdoption(
        found, live, is_foreign=True, keeps_pods=stays, spec_hash=noted, first=was is None
    )
