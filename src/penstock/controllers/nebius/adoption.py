"""Takes over the workloads of the original: their pods stay until their spec changes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Final, cast

from penstock.api.cluster import marks
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import STATEFUL_SETS
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.base.text import list_some
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import Event
from penstock.catalog.reasons.pods import PodReason
from penstock.controllers.nebius.advanced_stateful_sets import StatefulSetReleaser
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.report import Events
from penstock.kube import FIELD_MANAGER, AlreadyExistsError, has_other_managers
from penstock.render.nebius import adopted_workload as render
from penstock.render.nebius.adopted_workload import DeclaredPods
from penstock.render.parts import kept_template as template
from penstock.render.parts.kept_template import REPLACED, REPLACING

_KINDS: Final = ("StatefulSet", "Deployment", "DaemonSet")
ADOPTED: Final = ConditionType.PODS_ADOPTED
"""Type of the condition about adopted pods."""


@dataclass(slots=True)
class AdoptionReport:
    """Names of workloads by whether their pods stay, and why a replacement waits."""

    kept: list[str] = field(default_factory=list[str])
    replaced: list[str] = field(default_factory=list[str])
    waits: str = ""

    def note(self, found: AdoptedWorkload, *, stays: bool = False) -> None:
        """Note one workload."""
        if found.is_handed_over or found.keeps_pods or stays:
            self.kept.append(found.manifest["metadata"]["name"])
        elif found.is_foreign:
            self.replaced.append(found.manifest["metadata"]["name"])

    def findings(self) -> list[Finding]:
        """The condition while pods of the original stay, and after their replacement."""
        if not self.kept and not self.replaced:
            return []
        if not self.kept:
            message = "The pods have Penstock's template"
            return [Finding(True, PodReason.REPLACED, message, type=ADOPTED, inverted=True)]
        message = (
            f"The pods of {list_some(sorted(self.kept))} stay as soperator made them. They are "
            f"replaced when their spec changes, or when {marks.ADOPTED_PODS} is {marks.REPLACE}"
        )
        if self.waits:
            return [
                Finding(True, PodReason.REPLACEMENT_WAITS, f"{message}. {self.waits}", type=ADOPTED)
            ]
        return [Finding(True, PodReason.AS_THEY_WERE, message, type=ADOPTED)]


@dataclass(frozen=True, slots=True)
class AdoptedWorkload:
    """One workload; `is_foreign` is one that the original made, whose pods may stay.

    `is_handed_over`: its successor was created just now, and no cache shows it yet.
    """

    manifest: Json
    live: Json | None = None
    is_foreign: bool = False
    keeps_pods: bool = False
    note: str = ""
    first: bool = False
    is_handed_over: bool = False

    def apply(self, *, stays: bool = False) -> Json:
        """The manifest to apply; the pods stay while they match their spec, and if it `stays`."""
        if self.live is None or self.manifest["kind"] not in _KINDS:
            return self.manifest
        if not self.is_foreign:
            return template.in_live_spelling(self.manifest, self.live)
        if self.keeps_pods or stays:
            noted = self._noted()
            return render.kept(self.manifest, self.note if self.keeps_pods or not noted else noted)
        if self.first:
            return render.kept(self.manifest, REPLACING)
        return template.with_template(
            template.in_live_spelling(self.manifest, self.live), self.live
        )

    def _noted(self) -> str:
        annotations: Json = (self.live or {}).get("metadata", {}).get("annotations") or {}
        return str(annotations.get(marks.ADOPTED_TEMPLATE) or "")


class Adoption:
    """That of the workloads of all SlurmClusters and NodeConfigurators."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._client = context.client
        self._caches = context.caches
        self._objects = context.objects
        self._events = events
        self._releaser = StatefulSetReleaser(context, events)

    async def inspect(
        self, obj: KubeObject, manifest: Json, pods: DeclaredPods, *, asked: bool = False
    ) -> AdoptedWorkload:
        """The plan for one workload; OpenKruise's hands its pods over first. Raises KubeError.

        `asked`, or an annotation of the object, has the pods replaced in any case.
        """
        live = self._objects.live(manifest)
        if manifest["kind"] == "StatefulSet" and await self._hand_over(obj, manifest, pods, live):
            return AdoptedWorkload(manifest, is_handed_over=True)
        if live is None or not _is_controlled_by(live, obj):
            # One of somebody else is rejected when the manifest is applied.
            return AdoptedWorkload(manifest)
        annotations: Json = live["metadata"].get("annotations") or {}
        was = annotations.get(marks.ADOPTED_TEMPLATE)
        if was == REPLACED:
            return AdoptedWorkload(manifest, live, is_foreign=True)
        if was is None and not has_other_managers(live, FIELD_MANAGER, "spec", "template"):
            return AdoptedWorkload(manifest, live)
        same = was == pods.note or (
            was is None and render.has_images(live["spec"]["template"], pods.images)
        )
        wants = asked or obj.metadata.annotations.get(marks.ADOPTED_PODS) == marks.REPLACE
        return AdoptedWorkload(
            manifest,
            live,
            is_foreign=True,
            keeps_pods=same and not wants,
            note=pods.note,
            first=was is None,
        )

    async def _hand_over(
        self, obj: KubeObject, manifest: Json, pods: DeclaredPods, live: Json | None
    ) -> bool:
        """Create the successor before OpenKruise's StatefulSet goes; whether it was just created.

        The successor has the only record of the template from then on.
        """
        meta = manifest["metadata"]
        found = self._releaser.advanced(obj, meta["name"])
        if found is None:
            return False
        if live is None and found.metadata.deleting and not found.metadata.finalizers:
            return False
        if live is None:
            raw = self._caches.advanced_stateful_sets.raw(found.metadata.key)
            if raw is None:
                return True
            same = render.has_images(raw["spec"]["template"], pods.images)
            made = render.successor(manifest, raw, pods.note if same else REPLACING)
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(STATEFUL_SETS, made)
                note = f"Created StatefulSet {meta['name']}, which takes over OpenKruise's pods"
                self._events.normal(obj, Event.CREATE_SUCCEEDED, note, "Adopt")
        await self._releaser.orphan(obj, ADVANCED_STATEFUL_SETS, found)
        return live is None


def _is_controlled_by(live: Json, obj: KubeObject) -> bool:
    owners = cast("list[Json]", live["metadata"].get("ownerReferences") or [])
    return any(one.get("controller") and one.get("uid") == obj.metadata.uid for one in owners)
