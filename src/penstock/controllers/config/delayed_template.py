"""Keeps the pod template of slurmctld's StatefulSet while a restart of slurmctld has to wait."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.kube import FIELD_MANAGER, field_differences


def delay(manifests: list[Json], live: Json | None) -> tuple[list[Json], bool]:
    """Return the manifests with the template of `live`, and whether that kept a changed one back.

    `live` is the StatefulSet in the cache. Its manifest stays as it is while the template is equal,
    as the API server's defaults would become fields of the operator otherwise.
    """
    if live is None:
        return manifests, False
    found = [_kept(one, live) for one in manifests]
    return found, any(one is not other for one, other in zip(found, manifests, strict=True))


def with_template_of(manifest: Json, live: Json) -> Json:
    """Return the manifest of a StatefulSet with the pod template of `live`, any other as it is."""
    if not _has_template(manifest):
        return manifest
    return {**manifest, "spec": {**manifest["spec"], "template": live["spec"]["template"]}}


def _has_template(manifest: Json) -> bool:
    return manifest["kind"] == "StatefulSet" and "template" in manifest["spec"]


def _kept(manifest: Json, live: Json) -> Json:
    if not _has_template(manifest):
        return manifest
    differs = field_differences(manifest, live, FIELD_MANAGER)
    if not any(path.startswith("spec.template") for path in differs):
        return manifest
    return with_template_of(manifest, live)
