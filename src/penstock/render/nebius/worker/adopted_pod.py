"""The patch by which a worker set becomes the controller of a pod that another operator made."""

from __future__ import annotations

from typing import Any, Final, cast

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import same_quantity
from penstock.api.nebius import labels
from penstock.model.worker_set import WorkerSet
from penstock.render.nebius.adopted_workload import has_images

_CONTAINERS: Final = ("slurmd", "munge", "sssd")


def adoption_patch(
    workers: WorkerSet, live: Json, rendered: Json, revision: str
) -> tuple[list[Json], bool]:
    """The JSON patch, and whether the pod matches the spec; it fails if the pod changed.

    `rendered` is Penstock's own pod of the slot, with the hash `revision`. A pod that matches gets
    that hash: it needs no update. Its former one stays in an annotation.
    """
    meta: Json = live["metadata"]
    had: dict[str, str] = meta.get("labels") or {}
    notes: dict[str, str] = meta.get("annotations") or {}
    old = had.get(labels.REVISION, "")
    name = workers.names.pod_prefix
    current = old.startswith(name) and is_as_declared(live, rendered)
    found = {**had, **workers.marks.labels}
    if current:
        found[labels.REVISION] = revision
        notes = {**notes, marks.ADOPTED_REVISION: old}
    owners = [*(meta.get("ownerReferences") or ()), *rendered["metadata"]["ownerReferences"]]
    changed: Json = {**meta, "labels": found, "annotations": notes, "ownerReferences": owners}
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
        *(
            {"op": "add", "path": f"/metadata/{key}", "value": changed[key]}
            for key in ("labels", "annotations", "ownerReferences")
        ),
    ], current


def is_as_declared(live: Json, rendered: Json) -> bool:
    """Whether a pod has the images of its daemons, and slurmd's resources, as declared."""
    ours = {name: one for name, one in _by_name(rendered).items() if name in _CONTAINERS}
    if not has_images(live, {name: one["image"] for name, one in ours.items()}):
        return False
    asked, has = (_requests(one) for one in (rendered, live))
    return asked.keys() == has.keys() and all(same_quantity(asked[k], has[k]) for k in asked)


def _requests(pod: Json) -> Json:
    """What slurmd requests, but for amounts of nothing."""
    resources: Json = _by_name(pod).get("slurmd", {}).get("resources") or {}
    found = cast("Json", resources.get("requests") or {})
    return {name: value for name, value in found.items() if not _is_zero(value)}


def _is_zero(value: Any) -> bool:
    return same_quantity(value, 0)


def _by_name(pod: Json) -> dict[str, Json]:
    spec: Json = pod["spec"]
    return {
        one["name"]: one
        for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    }
