"""Which pods restart or end by a change, by name, daemon and reason; workers of NodeSets apart.

There are three ways: the operator or a workload's controller replaces a pod by itself, a pod ends
for good, and a pod goes on with what it read when it started until somebody restarts it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, OwnerReference
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.references import sharing_key
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.cluster.backups import is_active
from penstock.decide.config.transaction import restarts_slurmctld
from penstock.preview.cluster_copy import ClusterCopy, Key
from penstock.preview.simulated_run import SimulatedRun
from penstock.slurm.conf.apply_method import Force, Item, Plan
from penstock.translate.slinky.cluster import MARKS

PODS = "/pods"
WORKER = "slurmd"
WORKLOADS = {"apps/statefulsets": "StatefulSet", "apps/deployments": "Deployment"}
LABELS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "slurmrestd": "slurmrestd",
    "sackd": "login",
}
"""By daemon of Slurm the label app.kubernetes.io/name of its pods."""


class How(Enum):
    """Who restarts a pod."""

    OPERATOR = "the operator restarts it"
    TEMPLATE = "its template changes"
    ROTATION = "it is replaced in the course of a key rotation"
    ENDS = "it ends for good"
    YOURS = "nobody restarts it but the user"


@dataclass(frozen=True, slots=True)
class Restart:
    """Pods of one daemon that restart, or are to be restarted, for the same reason.

    `of` is the object that creates them, as `Kind namespace/name`. `why` are paths of the template
    or keys of Slurm's configuration. With `loses_state` slurmctld's state, with all jobs, is in
    the pod.
    """

    how: How
    namespace: str
    pods: tuple[str, ...]
    daemon: str
    of: str
    why: tuple[str, ...] = ()
    loses_state: bool = False
    instance: str = ""
    """Name of the Controller, for slurmctld."""

    @property
    def by_itself(self) -> bool:
        """Whether it happens without the user."""
        return self.how is not How.YOURS


def restarts(
    live: ClusterCopy,
    run: SimulatedRun,
    templates: Iterable[tuple[str, Key, tuple[str, ...]]],
    files: Iterable[tuple[Key, Plan, Plan]],
) -> tuple[Restart, ...]:
    """All of them but workers that are replaced, each pod once.

    `templates` are kind, key and changed paths of workloads whose template changes, `files` the
    needs of each Controller's changed configuration, of all files and of the operator's own.
    """
    found = [
        *_replaced(live, run.clusters.caches, templates),
        *_ended(live, run),
        *_rotated(live, run.clusters),
        *(one for key, plan, ours in files for one in _for_files(live, run, key, plan, ours)),
        *deleted(live, run),
    ]
    return tuple(_once(found))


def _once(found: Iterable[Restart]) -> Iterator[Restart]:
    seen: set[Key] = set()
    for one in found:
        left = tuple(pod for pod in one.pods if (one.namespace, pod) not in seen)
        seen |= {(one.namespace, pod) for pod in left}
        if left:
            yield replace(one, pods=left)


def _pods(live: ClusterCopy, space: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the pods that are there now and not on their way out."""
    return tuple(
        sorted(
            key[1]
            for key, pod in live.objects.get(PODS, {}).items()
            if key[0] == space and "deletionTimestamp" not in pod["metadata"]
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        )
    )


def _of(live: ClusterCopy, space: str, daemon: str, instance: str) -> tuple[str, ...]:
    return _pods(live, space, app_labels.selector_labels(LABELS[daemon], instance))


def _daemon(workload: Json) -> str:
    """The daemon of a workload of ours, by the label of its pods."""
    labels = workload["spec"]["template"]["metadata"].get("labels", {})
    name = labels.get(app_labels.APP_NAME, "")
    return next((daemon for daemon, label in LABELS.items() if label == name), name)


def _state_in_pod(caches: SlinkyCaches, space: str, daemon: str, workload: Json) -> bool:
    """Whether pods of a workload have slurmctld's state, with all jobs."""
    labels = workload["spec"]["template"]["metadata"].get("labels", {})
    controller = caches.controllers.get(f"{space}/{labels.get(app_labels.APP_INSTANCE, '')}")
    return daemon == "slurmctld" and controller is not None and not controller.spec.persistent


def _replaced(
    live: ClusterCopy, caches: SlinkyCaches, templates: Iterable[tuple[str, Key, tuple[str, ...]]]
) -> Iterator[Restart]:
    for kind, key, paths in templates:
        resource = next(one for one, name in WORKLOADS.items() if name == kind)
        workload = live.objects[resource][key]
        pods = _pods(live, key[0], workload["spec"]["selector"]["matchLabels"])
        daemon = _daemon(workload)
        lost = _state_in_pod(caches, key[0], daemon, workload)
        yield Restart(How.TEMPLATE, key[0], pods, daemon, f"{kind} {'/'.join(key)}", paths, lost)


def _ended(live: ClusterCopy, run: SimulatedRun) -> Iterator[Restart]:
    """Pods of workloads that are deleted, or get fewer replicas."""
    for (resource, key), after in run.after.items():
        workload = live.objects.get(resource, {}).get(key)
        if resource not in WORKLOADS or workload is None:
            continue
        kind, daemon = WORKLOADS[resource], _daemon(workload)
        pods = _pods(live, key[0], workload["spec"]["selector"]["matchLabels"])
        of = f"{kind} {'/'.join(key)}"
        lost = _state_in_pod(run.clusters.caches, key[0], daemon, workload)
        if after is None or "deletionTimestamp" in after["metadata"]:
            yield Restart(How.ENDS, key[0], pods, daemon, of, ("is deleted",), lost)
            continue
        before, now = (one["spec"].get("replicas", 1) for one in (workload, after))
        if now >= before:
            continue
        if kind == "StatefulSet":
            pods = tuple(pod for pod in pods if int(pod.rpartition("-")[2]) >= now)
        yield Restart(How.ENDS, key[0], pods, daemon, of, (f"has {now} replicas, not {before}",))


def _rotated(live: ClusterCopy, clusters: SlinkyClusters) -> Iterator[Restart]:
    """Pods that read slurm.key at their start only, when it changes."""
    caches = clusters.caches
    for controller in sorted(caches.controllers, key=lambda one: one.metadata.key):
        space, ref = controller.metadata.namespace, names.slurm_key_ref(controller)
        before = live.objects.get("/secrets", {}).get((space, ref.name))
        now = caches.secrets.get(f"{space}/{ref.name}")
        # munged follows its key without a restart.
        has_munge = controller.spec.munge_key_ref is not None
        if controller.spec.external or has_munge or before is None or now is None:
            continue
        had: dict[str, str] = before.get("data") or {}
        if had.get(ref.key) == (now.data or {}).get(ref.key):
            continue
        why = (f"{ref.key} of Secret {ref.name}",)
        for login in caches.loginsets_of.get(controller.metadata.key):
            name = login.metadata.name
            of = f"Deployment {space}/{names.login_workload(login)}"
            yield Restart(How.ROTATION, space, _of(live, space, "sackd", name), "sackd", of, why)
        accounting = clusters.declared(controller).accounting
        if accounting is not None and controller in sharing_key(accounting, caches.store):
            of = f"StatefulSet {space}/{names.accounting_workload(accounting)}"
            pods = _of(live, space, "slurmdbd", accounting.metadata.name)
            yield Restart(How.ROTATION, space, pods, "slurmdbd", of, why)


def _for_files(
    live: ClusterCopy, run: SimulatedRun, key: Key, plan: Plan, ours: Plan
) -> Iterator[Restart]:
    """Daemons that take over a changed configuration by a restart only."""
    clusters = run.clusters
    controller = clusters.caches.controllers.get("/".join(key))
    if controller is None:
        return
    by_daemon: dict[str, list[str]] = {}
    for item in plan.items:
        for daemon in item.need.daemons if item.need.force is Force.RESTART else ():
            by_daemon.setdefault(daemon, []).append(str(item))
    for daemon, why in by_daemon.items():
        if daemon == "slurmctld":
            yield _slurmctld(live, controller, ours, tuple(why))
        elif daemon in LABELS:
            yield from _left(live, run, controller, daemon, tuple(why))
    yield from _standbys(live, clusters, controller, plan.items)


def _slurmctld(
    live: ClusterCopy, controller: Controller, ours: Plan, why: tuple[str, ...]
) -> Restart:
    space, name = controller.metadata.namespace, controller.metadata.name
    pods = _of(live, space, "slurmctld", name)
    of = f"StatefulSet {space}/{names.controller_workload(controller)}"
    persistent = controller.spec.persistent
    how = How.OPERATOR if persistent and restarts_slurmctld(ours) else How.YOURS
    return Restart(how, space, pods, "slurmctld", of, why, not persistent, name)


def _standbys(
    live: ClusterCopy, clusters: SlinkyClusters, controller: Controller, items: Collection[Item]
) -> Iterator[Restart]:
    """Backups of slurmctld, which read their files at their start only."""
    pods = clusters.slurmctld_pods(controller)
    if len(pods) < 2 or not items or not any(is_active(MARKS, pod) for pod in pods):
        return
    space = controller.metadata.namespace
    there = _of(live, space, "slurmctld", controller.metadata.name)
    waiting = {pod.metadata.name for pod in pods if not is_active(MARKS, pod)}
    of = f"StatefulSet {space}/{names.controller_workload(controller)}"
    why = tuple(map(str, items))
    found = tuple(name for name in there if name in waiting)
    yield Restart(How.OPERATOR, space, found, "slurmctld", of, why)


def _left(
    live: ClusterCopy, run: SimulatedRun, controller: Controller, daemon: str, why: tuple[str, ...]
) -> Iterator[Restart]:
    """Daemons that the operator does not restart for their configuration."""
    space, key = controller.metadata.namespace, controller.metadata.key
    clusters, caches = run.clusters, run.clusters.caches
    yours: list[tuple[str, str]] = []
    match daemon:
        case "slurmd":
            yours = [
                (one.metadata.name, f"NodeSet {one.metadata.key}")
                for one in caches.nodesets_of.get(key)
            ]
        case "slurmrestd":
            yours = [
                (one.metadata.name, f"Deployment {space}/{names.restapi_workload(one)}")
                for one in caches.restapis_of.get(key)
            ]
        case "sackd":
            yours = [
                (one.metadata.name, f"Deployment {space}/{names.login_workload(one)}")
                for one in caches.loginsets_of.get(key)
            ]
        case _:
            accounting = clusters.declared(controller).accounting
            if accounting is not None and not accounting.spec.external:
                of = f"StatefulSet {space}/{names.accounting_workload(accounting)}"
                yours = [(accounting.metadata.name, of)]
    for instance, of in yours:
        pods = tuple(p for p in _of(live, space, daemon, instance) if _stays(run, space, p))
        yield Restart(How.YOURS, space, pods, daemon, of, why)


def _stays(run: SimulatedRun, space: str, name: str) -> bool:
    """Whether a pod is the same one at the end of the simulated run, and is not terminating."""
    pod = run.clusters.caches.pods.get(f"{space}/{name}")
    return pod is not None and not pod.metadata.deleting


def deleted(live: ClusterCopy, run: SimulatedRun) -> Iterator[Restart]:
    """Pods that the operator deleted for another reason, such as an annotation that asks for it."""
    for (resource, (space, name)), after in sorted(run.after.items(), key=lambda one: one[0]):
        before = live.objects.get(resource, {}).get((space, name))
        if resource != PODS or before is None:
            continue
        labels = before["metadata"].get("labels", {})
        daemon = next((d for d, w in LABELS.items() if w == labels.get(app_labels.APP_NAME)), "")
        gone = after is None or "deletionTimestamp" in after["metadata"]
        if daemon in ("", WORKER) or not gone or "deletionTimestamp" in before["metadata"]:
            continue
        owners: list[Json] = before["metadata"].get("ownerReferences") or [{}]
        of = msgspec.convert(owners[0], OwnerReference)
        if of.is_kind("apps", "ReplicaSet"):
            # ReplicaSets are not simulated: its pods give way to others of the Deployment's name.
            continue
        message = f"{of.kind or 'Pod'} {space}/{of.name or name}"
        yield Restart(How.OPERATOR, space, (name,), daemon, message)
