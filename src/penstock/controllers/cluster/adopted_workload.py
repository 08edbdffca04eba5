"""Pods that another operator made stay as they are, while they serve what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.controllers.runtime.object_store import ObjectStore
from penstock.kube import FIELD_MANAGER, has_other_managers
from penstock.render.slinky.cluster import adopted_workload as held
from penstock.render.slinky.cluster.adopted_workload import REPLACED, REPLACING, WorkloadSpec

ADOPTED = "PodsAdopted"
"""Type of the condition that tells of pods that another operator made."""
_WORKLOADS = ("StatefulSet", "Deployment")


@dataclass(frozen=True, slots=True)
class WorkloadAdoption:
    """What becomes of a workload: `foreign` is one that another operator made.

    While `stays`, its pods are left as they are. `noted` says for what. A workload that has no note
    yet gets one first, alone: what is seen while its fields change hands is known by it.
    """

    manifests: tuple[Json, ...]
    live: Json | None = None
    is_foreign: bool = False
    keeps_pods: bool = False
    spec_hash: str = ""
    first: bool = False

    def apply(self, *, stays: bool | None = None) -> list[Json]:
        """The manifests to write; `stays` overrules what was found."""
        return [
            self._of(one, self.keeps_pods if stays is None else stays) for one in self.manifests
        ]

    def _of(self, manifest: Json, stays: bool) -> Json:
        if manifest["kind"] not in _WORKLOADS or self.live is None:
            return manifest
        if not self.is_foreign:
            return held.in_live_spelling(manifest, self.live)
        if stays:
            return held.without_template(manifest, self.spec_hash)
        if self.first:
            return held.without_template(manifest, REPLACING)
        return held.with_template(held.in_live_spelling(manifest, self.live), self.live)

    @property
    def findings(self) -> list[Finding]:
        """What a user is told while pods stay as another operator made them."""
        if not self.is_foreign:
            return []
        if not self.keeps_pods:
            told = "The pods are made as Penstock makes them"
            return [Finding(True, "PodsReplaced", told, type=ADOPTED, inverted=True)]
        told = (
            "The pods stay as slurm-operator made them. They are replaced when what is declared of "
            f"them changes, or when {marks.ADOPTED_PODS} is {marks.REPLACE}"
        )
        return [Finding(True, "PodsAsTheyWere", told, type=ADOPTED)]


def inspect(
    objects: ObjectStore,
    of: KubeObject,
    manifests: Sequence[Json],
    declared: WorkloadSpec,
    *,
    asked: bool = False,
    fits: bool = True,
) -> WorkloadAdoption:
    """Whether the pods of the one workload among `manifests` stay as another operator made them.

    `fits` says whether what the daemon started with is what it should have; `asked` that its pods
    are to be replaced in any case, as is an annotation of the object.
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
    noted = held.spec_hash(declared)
    wants = asked or of.metadata.annotations.get(marks.ADOPTED_PODS) == marks.REPLACE
    # A note of an earlier version is read once: its pods have what is declared, or they go.
    same = was == noted or (
        (held.is_older(was) if was is not None else fits) and held.satisfies(declared, live)
    )
    stays = same and not wants
    return WorkloadAdoption(
        found, live, is_foreign=True, keeps_pods=stays, spec_hash=noted, first=was is None
    )
