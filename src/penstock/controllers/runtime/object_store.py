"""Applies rendered objects to the API server, and emits events about changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    SECRETS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    ConfigMap,
    StatefulSet,
)
from penstock.api.kubernetes.meta import Json, KubeObject, ObjectMeta
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.event import Event
from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.controllers.runtime.report import Events
from penstock.kube import AlreadyExistsError, Applier, Cache, Client, ConflictError, NotFoundError
from penstock.kube.cache.store import version_of
from penstock.kube.runtime.state import gone
from penstock.render.parts.stateful_set import FIXED

UPSTREAM = ("slurm-operator", "slurm_operator")
"""The field managers of slurm-operator and of soperator."""
_OLDER = "manager"
"""That of its older versions. Other programs have the same default, so it is only adopted with a
change of ours."""

_OF_PODS = (("spec", "template"), *(("spec", field) for field in FIXED))
"""What stays another operator's while its pods stay."""


class ObjectStore:
    """Applies manifests of the few kinds that clusters are made of.

    `more` are kinds that only one API has, each with its cache.
    """

    def __init__(
        self,
        client: Client,
        caches: KubernetesCaches,
        more: Iterable[tuple[Resource[Any], Cache[Any]]] = (),
    ) -> None:
        self._client = client
        self._applier = Applier(client)
        self._caches: dict[str, tuple[Resource[Any], Cache[Any]]] = {
            "Service": (SERVICES, caches.services),
            "ConfigMap": (CONFIG_MAPS, caches.config_maps),
            "Secret": (SECRETS, caches.secrets),
            "StatefulSet": (STATEFUL_SETS, caches.stateful_sets),
            "Deployment": (DEPLOYMENTS, caches.deployments),
            "PodDisruptionBudget": (BUDGETS, caches.budgets),
            "ServiceMonitor": (SERVICE_MONITORS, caches.monitors),
            **{resource.kind: (resource, cache) for resource, cache in more},
        }
        self._config_maps = caches.store.own_config_maps
        self._stateful_sets = caches.store.own_stateful_sets
        self._settled: dict[str, tuple[str, Json]] = {}
        """By uid the version that was found to hold a manifest: not compared again."""
        self._written: dict[str, tuple[int, Json]] = {}
        """By uid the version that our last change made, and the manifest that it holds."""
        for _, cache in self._caches.values():
            cache.subscribe(self._seen)

    def _seen(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if (one := gone(old, new)) is not None:
            self._applier.forget(one.metadata.uid)
            if isinstance(one, ConfigMap):
                self._config_maps.forget(one.metadata.key)
            self._settled.pop(one.metadata.uid, None)
            self._written.pop(one.metadata.uid, None)

    async def apply(self, of: KubeObject, events: Events, manifests: Iterable[Json]) -> None:
        """Create or update each object, in order; an event names what differed from the manifest.

        Raises NotOursError for an object that belongs to somebody else; KubeError.
        """
        for manifest in manifests:
            resource, cache = self._caches[manifest["kind"]]
            meta = manifest["metadata"]
            key = f"{meta['namespace']}/{meta['name']}"
            seen = found.metadata if (found := cache.get(key)) is not None else ObjectMeta()
            if seen.deleting:
                # It is recreated once it is gone: the watch event starts a reconcile.
                continue
            if self._settled.get(seen.uid) == (seen.resource_version, manifest):
                continue
            version, last = self._written.get(seen.uid, (0, None))
            if last == manifest and version_of(seen.resource_version) < version:
                # The cache does not show our own change yet.
                continue
            # The cache of Secrets has no JSON: one is looked up when it may differ.
            live = cache.raw(key) if cache.keep_raw else None
            # What it wrote besides goes with ours. A template goes only with a change of it.
            stays = _pods_stay(manifest)
            applied = await self._applier.ensure(
                resource,
                manifest,
                live,
                takes_over=(*UPSTREAM, _OLDER),
                at_once=UPSTREAM,
                leave=_OF_PODS if stays else (),
                along_with="spec.template" if _is_workload(manifest) and not stays else "",
            )
            if seen.uid and applied.done == "unchanged":
                self._settled[seen.uid] = (seen.resource_version, manifest)
            if applied.done != "unchanged" and resource is CONFIG_MAPS:
                made = applied.live["metadata"].get("resourceVersion", "")
                self._config_maps.note(key, version_of(made))
            message = f"{resource.kind} {meta['name']}"
            if applied.done == "created":
                events.normal(of, Event.CREATE_SUCCEEDED, f"Created {message}", "Create")
            elif applied.done == "updated":
                if resource is CONFIG_MAPS:
                    self._config_maps.wrote(msgspec.convert(applied.live, ConfigMap))
                elif resource is STATEFUL_SETS:
                    self._stateful_sets.wrote(msgspec.convert(applied.live, StatefulSet))
                now = applied.live["metadata"].get("resourceVersion", "")
                if seen.uid:
                    # Without it any object that the cache lacks, or has no more, would be this one.
                    self._written[seen.uid] = version_of(now), manifest
                shown = ", ".join(applied.changed[:3]) + (", ..." if applied.changed[3:] else "")
                events.normal(of, Event.UPDATE_SUCCEEDED, f"Updated {message}: {shown}", "Update")

    def live(self, manifest: Json) -> Json | None:
        """The whole object of a manifest as it was last seen; not for Secrets."""
        _, cache = self._caches[manifest["kind"]]
        meta = manifest["metadata"]
        return cache.raw(f"{meta['namespace']}/{meta['name']}")

    async def remove(self, of: KubeObject, events: Events, kind: str, name: str) -> None:
        """Delete an object that `of` needs no more; one that is not its own is left."""
        live = self._own(of, kind, name)
        if live is None:
            return
        resource, _ = self._caches[kind]
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._client.delete(
                resource, live.metadata.namespace, name, uid=live.metadata.uid
            )
            events.normal(of, Event.DELETE_SUCCEEDED, f"Deleted {kind} {name}", "Delete")

    def has_own(self, of: KubeObject, kind: str, name: str) -> bool:
        """Whether an object is there that `of` controls."""
        return self._own(of, kind, name) is not None

    def _own(self, of: KubeObject, kind: str, name: str) -> KubeObject | None:
        _, cache = self._caches[kind]
        live = cache.get(f"{of.metadata.namespace}/{name}")
        if live is None or live.metadata.deleting:
            return None
        owner = live.metadata.controller
        return live if owner is not None and owner.uid == of.metadata.uid else None

    async def create_secret(self, of: KubeObject, events: Events, manifest: Json) -> None:
        """Make a Secret that is not there yet; one that is, is never touched."""
        if await self._create_secret(manifest):
            name = manifest["metadata"]["name"]
            events.normal(of, Event.CREATE_SUCCEEDED, f"Generated Secret {name}", "Create")

    async def restore_secret(self, of: KubeObject, events: Events, manifest: Json) -> None:
        """Make a Secret that was deleted, with its former content."""
        if await self._create_secret(manifest):
            name = manifest["metadata"]["name"]
            note = (
                f"Secret {name} was deleted while the cluster works: created it again with the "
                "same content. Change its content for another key"
            )
            events.warning(of, Event.KEY_RESTORED, note, "Create")

    async def _create_secret(self, manifest: Json) -> bool:
        try:
            await self._client.create(SECRETS, manifest)
        except AlreadyExistsError:
            return False
        return True


def _is_workload(manifest: Json) -> bool:
    return manifest["kind"] in ("StatefulSet", "Deployment", "DaemonSet")


def _pods_stay(manifest: Json) -> bool:
    """Whether it is a workload's without the template of its pods."""
    return _is_workload(manifest) and "template" not in manifest["spec"]
