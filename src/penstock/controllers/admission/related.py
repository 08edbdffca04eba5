"""Finds the related objects of an object in the caches.

Only objects of kinds with rules: whether a Secret or a ConfigMap exists is nothing to answer to a
caller who may be unable to read it. A condition reports it. Of the files of a ConfigMap only those
count that no ConfigMap may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from penstock.api.admission import KindRules, Reference, Registry, RelatedObjects
from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import ObjectKey, Resource
from penstock.kube import Cache
from penstock.kube.cache.on_demand import NotLoadedError

CacheOf = Callable[[Resource[Any]], Cache[Any]]


class RelatedObjectsFinder:
    """Related objects out of the caches of all kinds of a registry. It sends nothing."""

    def __init__(self, registry: Registry, cache_of: CacheOf) -> None:
        self._registry = registry
        self._config_maps = cache_of(CONFIG_MAPS)
        resources = (one.resource for one in registry.kinds)
        self._caches = {(one.group, one.kind): cache_of(one) for one in resources}
        self._users = [
            cache_of(rules.info.resource).index(_uses(rules)) for rules in registry.rules
        ]

    def around(self, obj: KubeObject) -> RelatedObjects:
        """The related objects of one that is written."""
        rules = self._registry.of(obj)
        space = obj.metadata.namespace
        named = [one for one in rules.references(obj) if one.name]
        return self._registry.related_objects(
            obj,
            [one for key in rules.uses(obj) for one in self._using(key)],
            [one for one in named if not self._exists(space, one)],
            self._files(space, named, rules.reserved_files),
        )

    def users(self, obj: KubeObject) -> RelatedObjects:
        """The related objects of one that is deleted: those that use it and stay."""
        key = self._key(obj)
        stay = [
            one for one in self._using(key) if not one.metadata.deleting and self._key(one) != key
        ]
        return RelatedObjects(users=tuple(map(self._registry.named, stay)))

    def _key(self, obj: KubeObject) -> ObjectKey:
        resource = self._registry.of(obj).info.resource
        return resource.key(obj.metadata.namespace, obj.metadata.name)

    def _using(self, key: ObjectKey) -> Iterable[KubeObject]:
        return (one for index in self._users for one in index.get(str(key)))

    def _exists(self, namespace: str, one: Reference) -> bool:
        """Whether it exists; assumed of a kind without rules."""
        cache = self._caches.get((one.group, one.kind))
        return cache is None or cache.get(f"{namespace}/{one.name}") is not None

    def _files(
        self, namespace: str, named: Iterable[Reference], reserved: frozenset[str]
    ) -> dict[str, tuple[str, ...]]:
        """Reserved files in the ConfigMaps that an object names."""
        found: dict[str, tuple[str, ...]] = {}
        for one in named if reserved else ():
            if (one.group, one.kind) != (CONFIG_MAPS.group, CONFIG_MAPS.kind):
                continue
            config_map = self._config_maps.get(f"{namespace}/{one.name}")
            if config_map is None:
                continue
            # Of a large one that nobody has read a condition has to report it.
            with suppress(NotLoadedError):
                text, binary = config_map.data, config_map.binary_data
                found[one.name] = tuple(sorted(reserved & {*(text or ()), *(binary or ())}))
        return found


def _uses(rules: KindRules[Any]) -> Callable[[KubeObject], Iterable[str]]:
    return lambda obj: [str(key) for key in rules.uses(obj)]
