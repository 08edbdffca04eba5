"""The caches of the Kubernetes kinds that the clusters of each API are made of."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REVISIONS,
    SECRETS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    ConfigMap,
    Pod,
    StatefulSet,
)
from penstock.api.kubernetes.spec_parts import ConfigMapKeySelector
from penstock.controllers.caches.owners import controlling_owner
from penstock.controllers.caches.store import CacheStore
from penstock.kube.runtime.declaration import IndexBy

_PODS_BY_OWNER = IndexBy(PODS, controlling_owner)
_PODS_BY_NAMESPACE = IndexBy(PODS, lambda pod: [pod.metadata.namespace])
_REVISIONS_BY_OWNER = IndexBy(REVISIONS, controlling_owner)
_SECRETS_BY_OWNER = IndexBy(SECRETS, controlling_owner)


class KubernetesCaches:
    """Typed access to the store. An API adds the caches of its kinds in a subclass of its own.

    `pods_of`, `revisions_of` and `secrets_of` find by `owned_by`.
    """

    def __init__(self, store: CacheStore) -> None:
        self.store = store
        self.pods = store.of(PODS)
        self.nodes = store.of(NODES)
        self.claims = store.of(CLAIMS)
        self.secrets = store.of(SECRETS)
        self.config_maps = store.of(CONFIG_MAPS, raw=True)
        self.services = store.of(SERVICES, raw=True)
        self.stateful_sets = store.of(STATEFUL_SETS, raw=True)
        self.deployments = store.of(DEPLOYMENTS, raw=True)
        self.budgets = store.of(BUDGETS, raw=True)
        self.revisions = store.of(REVISIONS)
        self.monitors = store.of(SERVICE_MONITORS, raw=True)
        self.pods_of = store.index(_PODS_BY_OWNER)
        self.pods_in = store.index(_PODS_BY_NAMESPACE)
        self.revisions_of = store.index(_REVISIONS_BY_OWNER)
        self.secrets_of = store.index(_SECRETS_BY_OWNER)

    def config_map(self, key: str) -> ConfigMap | None:
        """One of ours by `namespace/name`, as it was seen or as our last write left it."""
        return self.store.own_config_maps.latest(key, self.config_maps.get(key))

    def stateful_set(self, key: str) -> StatefulSet | None:
        """One of ours by `namespace/name`, as it was seen or as our last write left it."""
        return self.store.own_stateful_sets.latest(key, self.stateful_sets.get(key))

    def file(self, namespace: str, ref: ConfigMapKeySelector) -> str | None:
        """The text of one file of a ConfigMap; None while it is absent."""
        config_map = self.config_maps.get(f"{namespace}/{ref.name}")
        return files_of(config_map).get(ref.key) if config_map is not None else None

    def service_addresses_beside(self, namespace: str) -> frozenset[str]:
        """Cluster addresses of the Services of all other namespaces that are watched."""
        return frozenset(
            str(address)
            for one in self.services
            if one.metadata.namespace != namespace
            for address in one.spec.get("clusterIPs") or (one.spec.get("clusterIP"),)
            if address and address != "None"
        )

    def pods_labelled(self, namespace: str, component: str, instance: str) -> tuple[Pod, ...]:
        """Pods of one workload of ours, by name."""
        wanted = app_labels.selector_labels(component, instance)
        found = [
            pod
            for pod in self.pods_in.get(namespace)
            if wanted.items() <= pod.metadata.labels.items()
        ]
        return tuple(sorted(found, key=lambda pod: pod.metadata.name))


def files_of(config_map: ConfigMap) -> Mapping[str, str]:
    """All files of a ConfigMap; bytes that are not UTF-8 are kept as surrogates."""
    if not config_map.binary_data:
        return config_map.data or {}
    binary = {
        name: base64.b64decode(value).decode(errors="surrogateescape")
        for name, value in config_map.binary_data.items()
    }
    return binary | (config_map.data or {})
