"""Effects of a simulated run: which objects change, what Slurm's files need, which pods restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.caches.owners import owned_by
from penstock.decide.observed.pod import slurm_node_name
from penstock.decide.slurm_node import parameters as live_conf
from penstock.preview.cluster_copy import ClusterCopy, Key, Slurm
from penstock.preview.restarts import Restart, restarts
from penstock.preview.simulated_run import SimulatedRun
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.config_maps import config_maps_of, files
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset.revision_meaning import declared_revision, recorded_revision
from penstock.slurm.conf.apply_method import Plan, needs
from penstock.slurm.conf.apply_method_table import table

PODS = "/pods"
SERVERS = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"})
BOOKKEEPING = marks.CONTENT_HASH
"""An annotation of ours that follows the data beside it."""
SHOWN_WORKLOADS = ("apps/statefulsets", "apps/deployments")


@dataclass(frozen=True, slots=True)
class Touched:
    """An object that is created, updated or deleted; `paths` are what changes in it."""

    verb: str
    kind: str
    key: Key
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """A Controller whose configuration changes, and what that needs."""

    key: Key
    plan: Plan
    ours: Plan
    """The part in files that the operator writes: for those of the user's it restarts nothing."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet or Deployment whose pods are replaced, since their template changes."""

    kind: str
    key: Key
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workers:
    """What happens to the pods of a NodeSet.

    `deleted` are deleted at once, since their Slurm nodes are drained and empty; `drained` are
    deleted when their jobs have ended, `jobs` by pod; `outdated` have an older template than the
    NodeSet and stay (`strategy` is the update strategy).
    """

    key: Key
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    drained: tuple[str, ...]
    outdated: tuple[str, ...]
    strategy: str
    changed: tuple[str, ...]
    """Those whose Slurm nodes get other features, weight or GRES, and nothing else happens."""
    jobs: Mapping[str, tuple[int, ...]]
    """Job ids by pod, of those that are named above; empty when Slurm is not known."""

    @property
    def happens(self) -> bool:
        """Whether any pod is concerned."""
        gone = self.deleted or self.drained or self.outdated
        return bool(self.created or gone or self.changed)


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that a change would do."""

    objects: tuple[Touched, ...]
    files: tuple[Files, ...]
    workloads: tuple[Workload, ...]
    workers: tuple[Workers, ...]
    restarts: tuple[Restart, ...]
    unknown: tuple[str, ...]
    """Clusters whose Slurm could not be asked, and why."""
    failed: tuple[str, ...] = ()
    """Clusters whose Slurm could not be asked, and why; their jobs are unknown."""

    @property
    def nothing(self) -> bool:
        """Whether nothing at all would happen."""
        known = self.objects or self.files or self.workers or self.restarts
        return not (known or self.failed)


def effects(live: ClusterCopy, run: SimulatedRun) -> Effects:
    """All effects, in the order of their names."""
    caches = run.clusters.caches
    controllers = sorted(caches.controllers, key=lambda one: one.metadata.key)
    nodesets = sorted(caches.nodesets, key=lambda one: one.metadata.key)
    workers = [_workers(live, run, one) for one in nodesets]
    changed = [found for one in controllers if (found := _files(live, run, one)) is not None]
    workloads = tuple(_workloads(run))
    templates = [(one.kind, one.key, one.paths) for one in workloads]
    return Effects(
        tuple(_touched(run)),
        tuple(changed),
        workloads,
        tuple(one for one in workers if one.happens),
        restarts(live, run, templates, [(one.key, one.plan, one.ours) for one in changed]),
        tuple(
            f"{key}: {said}" for key, said in sorted(live.slurm.items()) if isinstance(said, str)
        ),
        run.failed,
    )


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Paths at which two objects differ, but for what only the server writes, and status."""
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("Json", old), cast("Json", new)
        for key in sorted(before.keys() | after.keys()):
            here = f"{path}.{key}" if path else key
            if (path == "metadata" and key in SERVERS) or here == "status":
                continue
            if key not in before or key not in after:
                yield here
            else:
                yield from differences(before[key], after[key], here)
    elif old != new:
        yield path


def _touched(run: SimulatedRun) -> Iterator[Touched]:
    for (resource, key), after in sorted(run.after.items(), key=lambda one: one[0]):
        before = run.before[resource, key]
        known = after or before
        if resource == PODS or known is None:
            continue
        kind = str(known.get("kind", ""))
        if before is None:
            yield Touched("create", kind, key)
        elif after is None:
            yield Touched("delete", kind, key)
        elif paths := tuple(p for p in differences(before, after) if not p.endswith(BOOKKEEPING)):
            yield Touched("update", kind, key, paths)


def _files(live: ClusterCopy, run: SimulatedRun, controller: Controller) -> Files | None:
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


def _workloads(run: SimulatedRun) -> Iterator[Workload]:
    for (resource, key), after in sorted(run.after.items(), key=lambda one: one[0]):
        before = run.before[resource, key]
        if resource not in SHOWN_WORKLOADS or before is None or after is None:
            continue
        paths = tuple(differences(before["spec"]["template"], after["spec"]["template"]))
        if paths:
            yield Workload(str(after["kind"]), key, paths)


def _workers(live: ClusterCopy, run: SimulatedRun, nodeset: NodeSet) -> Workers:
    meta = nodeset.metadata
    caches = run.clusters.caches
    pods = sorted(caches.workers_of(nodeset), key=lambda pod: pod.metadata.name)
    there = live.objects[PODS]
    key = f"{meta.namespace}/{nodeset.spec.controller_ref.name}"
    drained = run.drained.get(key, frozenset[str]())
    revision = declared_revision(nodeset)
    records = caches.revisions_of.get(owned_by(NODESETS, nodeset))
    known = live_conf.equal_revisions(
        revision, (recorded_revision(nodeset, one) for one in records)
    )
    current = {revision.hash, *known}
    changed = run.changed.get(key, frozenset[str]())
    created, deleted, leaving, outdated = list[str](), list[str](), list[str](), list[str]()
    touched: list[Pod] = []
    for pod in pods:
        name = pod.metadata.name
        before = there.get((meta.namespace, name))
        if before is None or before["metadata"].get("uid") != pod.metadata.uid:
            created.append(name)
            continue
        if pod.metadata.deleting and "deletionTimestamp" not in before["metadata"]:
            deleted.append(name)
        elif slurm_node_name(pod) in drained:
            leaving.append(name)
            touched.append(pod)
        elif slinky_labels.revision_hash(pod.metadata.labels) not in current:
            outdated.append(name)
            touched.append(pod)
    return Workers(
        (meta.namespace, meta.name),
        tuple(created),
        tuple(deleted),
        tuple(leaving),
        tuple(outdated),
        nodeset.spec.update_strategy.type,
        tuple(pod.metadata.name for pod in pods if slurm_node_name(pod) in changed),
        _jobs(live.slurm.get(key), touched),
    )


def _jobs(slurm: Slurm | str | None, pods: list[Pod]) -> dict[str, tuple[int, ...]]:
    if not isinstance(slurm, Slurm):
        return {}
    by_node: dict[str, list[int]] = {}
    hosts = [slurm_node_name(pod) for pod in pods]
    for job in slurm.jobs:
        for node in hosts if job.everywhere else job.nodes:
            by_node.setdefault(node, []).append(job.id)
    return {
        pod.metadata.name: tuple(found)
        for pod in pods
        if (found := by_node.get(slurm_node_name(pod)))
    }
