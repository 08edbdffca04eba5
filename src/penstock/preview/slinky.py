"""The clusters of `slinky.slurm.net` in a plan, with their Partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.nodeset import NODESETS
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.caches.store import CacheStore
from penstock.controllers.observed.members import cluster_keys
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.observed.slinky_endpoints import oldest_restapi
from penstock.controllers.observed.slurm_endpoints import SLURM_USER
from penstock.controllers.operator import Operator
from penstock.controllers.runtime.apis import SHARED, SLINKY
from penstock.decide.slurm_node import parameters as live_conf
from penstock.preview import slinky_restarts
from penstock.preview.effect import Files, Restart, WorkerPods
from penstock.preview.previewed_api import Find, PreviewedApi
from penstock.preview.slinky_restarts import LABELS
from penstock.preview.state import ClusterCopy, Objects, SimulatedRun, SlurmService
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.config_maps import config_maps_of, files
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset.revision_meaning import declared_revision, recorded_revision
from penstock.slurm.conf.apply_method import needs
from penstock.slurm.conf.apply_method_table import table

T = TypeVar("T", bound=KubeObject)
_DAEMONS = {label: daemon for daemon, label in LABELS.items()}


class SlinkyPreview(PreviewedApi[SlinkyClusters]):
    """Controllers with what belongs to them."""

    group = SLINKY
    cluster_kind = CONTROLLERS
    prefixes = (f"{SLINKY}/", f"{SHARED}/")

    def watch(self, store: CacheStore) -> None:
        """As its reconcilers do."""
        SlinkyCaches(store)

    def services(self, objects: Objects) -> Mapping[str, SlurmService | str]:
        """That of the oldest RestApi of each Controller."""
        restapis = _decoded(objects, RESTAPIS)
        found: dict[str, SlurmService | str] = {}
        for one in _decoded(objects, CONTROLLERS):
            key = one.metadata.key
            restapi = oldest_restapi(tuple(r for r in restapis if key in cluster_keys(r)))
            if restapi is None:
                found[key] = f"no RestApi refers to Controller {one.metadata.name}"
                continue
            service = f"{names.restapi_service(restapi)}:slurmrestd"
            space, jwt = one.metadata.namespace, names.jwt_key_ref(one)
            found[key] = SlurmService(space, service, jwt, SLURM_USER)
        return found

    def files(self, find: Find, key: str) -> Mapping[str, str]:
        """Those of the startup ConfigMap."""
        space, _, name = key.partition("/")
        return (find("/configmaps", space, f"{name}-config") or {}).get("data") or {}

    def etc(self, find: Find, pod: Json) -> Mapping[str, str] | None:
        """Its volumes define it."""
        del find, pod

    def cluster_of(self, declares_slurmrestd: RestApi) -> str:
        """The Controller of a RestApi."""
        return next(iter(cluster_keys(declares_slurmrestd)), "/")

    def clusters(self, operator: Operator) -> SlinkyClusters:
        """As the Operator has them."""
        return operator.clusters

    def changed_files(
        self, live: ClusterCopy, run: SimulatedRun[SlinkyClusters]
    ) -> Iterator[Files]:
        """With the files of the user that are beside ours."""
        for one in sorted(run.clusters.caches.controllers, key=lambda one: one.metadata.key):
            if (found := _files(live, run, one)) is not None:
                yield found

    def workers(self, run: SimulatedRun[SlinkyClusters]) -> Iterator[WorkerPods]:
        """Those of NodeSets."""
        caches = run.clusters.caches
        for nodeset in sorted(caches.nodesets, key=lambda one: one.metadata.key):
            meta = nodeset.metadata
            pods = sorted(caches.workers_of(nodeset), key=lambda pod: pod.metadata.name)
            revision = declared_revision(nodeset)
            records = caches.revisions_of.get(owned_by(NODESETS, nodeset))
            known = live_conf.equal_revisions(
                revision, (recorded_revision(nodeset, one) for one in records)
            )
            yield WorkerPods(
                (meta.namespace, meta.name),
                f"{meta.namespace}/{nodeset.spec.controller_ref.name}",
                tuple(pods),
                {p.metadata.name: slinky_labels.revision_hash(p.metadata.labels) for p in pods},
                frozenset({revision.hash, *known}),
                nodeset.spec.update_strategy.type,
            )

    def daemon(self, labels: Mapping[str, str]) -> str:
        """By app.kubernetes.io/name."""
        return _DAEMONS.get(labels.get(app_labels.APP_NAME, ""), "")

    def has_state(
        self, run: SimulatedRun[SlinkyClusters], namespace: str, labels: Mapping[str, str]
    ) -> bool:
        """That of a Controller with `persistence.enabled: false`."""
        key = f"{namespace}/{labels.get(app_labels.APP_INSTANCE, '')}"
        controller = run.clusters.caches.controllers.get(key)
        is_slurmctld = self.daemon(labels) == "slurmctld"
        return is_slurmctld and controller is not None and not controller.spec.persistent

    def restarts(
        self, live: ClusterCopy, run: SimulatedRun[SlinkyClusters], changed: Sequence[Files]
    ) -> Iterator[Restart]:
        """For keys, files, and slurm.key."""
        return slinky_restarts.of_configuration(live, run, changed)


def _files(
    live: ClusterCopy, run: SimulatedRun[SlinkyClusters], controller: Controller
) -> Files | None:
    """Compares with the files that slurmctld has; a cluster that is new has none."""
    meta = controller.metadata
    there = live.objects["/configmaps"].get((meta.namespace, names.config_map(controller)))
    if there is None or controller.spec.external:
        return None
    before: dict[str, str] = there.get("data") or {}
    cluster = run.clusters.cluster(controller)
    wanted = files(cluster)
    old = live.objects["slinky.slurm.net/controllers"].get((meta.namespace, meta.name))
    had = _users_files(live, msgspec.convert(old, Controller)) if old is not None else {}
    has = {
        name: text
        for config_map in config_maps_of(ClusterInputs(controller, live.settings.images))
        for name, text in run.clusters.config_data(controller).get(config_map, {}).items()
    }
    rows = table(release.running(cluster))
    plan = needs({**before, **had}, {**wanted, **has}, rows)
    ours = needs(before, wanted, rows)
    return Files((meta.namespace, meta.name), plan, ours) if plan.items else None


def _users_files(live: ClusterCopy, controller: Controller) -> dict[str, str]:
    """The files of the user's ConfigMaps that are beside ours at /etc/slurm now."""
    found: dict[str, str] = {}
    for name in config_maps_of(ClusterInputs(controller, live.settings.images)):
        config_map = live.objects.get("/configmaps", {}).get((controller.metadata.namespace, name))
        found |= (config_map or {}).get("data") or {}
    return found


def _decoded(objects: Objects, resource: Resource[T]) -> list[T]:
    found = objects.get(f"{resource.group}/{resource.plural}", {})
    return [msgspec.convert(obj, resource.type) for obj in found.values()]
