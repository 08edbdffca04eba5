"""The caches of all watched resources, with their indexes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    JOBS,
    POD_MONITORS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_MONITORS,
    ConfigMap,
    StatefulSet,
)
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Cache, Index, Manager
from penstock.kube.cache.own_writes import OwnWrites
from penstock.kube.runtime.declaration import IndexBy

T = TypeVar("T", bound=KubeObject)

DAEMONS = tuple(app_labels.COMPONENTS)
"""Label app.kubernetes.io/name of pods of Slinky's clusters."""
WORKERS = ("slurmd",)
MONITORS = ("slurm-exporter",)
"""That of PodMonitors."""
_FIELDS: Mapping[Resource[Any], str] = {SECRETS: "type!=helm.sh/release.v1"}
"""Field selectors. Helm keeps ten whole releases of each chart in Secrets of up to 1 MiB."""
_ON_DEMAND = frozenset({SECRETS, CONFIG_MAPS})
"""Of these anybody may have many large ones."""


class CacheStore:
    """One cache for each resource. Reading is synchronous and sends nothing (see `Lookup`).

    Of resources of which a cluster has many objects of others it has those with a known label
    app.kubernetes.io/name: `pods` is that of pods, Jobs, DaemonSets, monitors and rights, `pvcs`
    that of PVCs. One of ours without the label gets it back with the next apply, which looks for it
    by name.
    """

    def __init__(
        self, manager: Manager, pods: Iterable[str] = DAEMONS, pvcs: Iterable[str] = WORKERS
    ) -> None:
        self._manager = manager
        ours = _named(pods)
        self._selectors: Mapping[Resource[Any], str] = {
            PODS: ours,
            JOBS: ours,
            CRON_JOBS: ours,
            DAEMON_SETS: ours,
            SERVICE_MONITORS: ours,
            POD_MONITORS: _named(MONITORS),
            SERVICE_ACCOUNTS: ours,
            ROLES: ours,
            ROLE_BINDINGS: ours,
            CLAIMS: _named(pvcs),
        }
        self._caches: dict[Resource[Any], Cache[Any]] = {}
        self._indexes: dict[IndexBy[Any], Index[Any]] = {}
        self.own_config_maps = OwnWrites[ConfigMap]()
        """ConfigMaps as our last writes left them: a watch may not show them yet."""
        self.own_stateful_sets = OwnWrites[StatefulSet]()
        """StatefulSets, likewise."""

    def of(self, resource: Resource[T], *, raw: bool = False) -> Cache[T]:
        """The cache of a resource; `raw` keeps the JSON of its objects.

        Raises RuntimeError for a new one after the manager has started.
        """
        found = cast("Cache[T] | None", self._caches.get(resource))
        if found is None or (raw and not found.keep_raw):
            found = self._caches[resource] = self._manager.cache(
                resource,
                labels=self._selectors.get(resource, ""),
                fields=_FIELDS.get(resource, ""),
                raw=raw,
                on_demand=resource in _ON_DEMAND,
            )
        return found

    def index(self, index: IndexBy[T]) -> Index[T]:
        """The index, built when it is first used and kept up to date."""
        found = cast("Index[T] | None", self._indexes.get(index))
        if found is None:
            found = self._indexes[index] = self.of(index.resource).index(index.values)
        return found

    def get(self, resource: Resource[T], key: str) -> T | None:
        """The object `namespace/name` (or `name`), if it exists."""
        return self.of(resource).get(key)

    def all(self, resource: Resource[T]) -> Iterable[T]:
        """Every object of a resource."""
        return self.of(resource)

    def by(self, index: IndexBy[T], value: str) -> tuple[T, ...]:
        """The objects that have this value in an index."""
        return self.index(index).get(value)

    def is_own_write(self, obj: KubeObject) -> bool:
        """Whether our last write made a ConfigMap what it is, or something newer."""
        return isinstance(obj, ConfigMap) and self.own_config_maps.is_own(obj)


def _named(names: Iterable[str]) -> str:
    """The selector of objects with one of these names."""
    found = tuple(names)
    if len(found) == 1:
        return f"{app_labels.APP_NAME}={found[0]}"
    return f"{app_labels.APP_NAME} in ({','.join(found)})"
