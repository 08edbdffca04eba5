"""Restarts of the daemons of a Controller that follow from its configuration or its key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from penstock.api.cluster import labels as app_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.observed.references import sharing_key
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.cluster.backups import is_active
from penstock.preview.effect import Files, How, Restart
from penstock.preview.restarts import cure, pods_with, restarted_daemons, slurmctld_restart
from penstock.preview.state import ClusterCopy, SimulatedRun
from penstock.slurm.conf.apply_method import Item
from penstock.translate.slinky.cluster import MARKS

LABELS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "slurmrestd": "slurmrestd",
    "sackd": "login",
}
"""By daemon of Slurm the label app.kubernetes.io/name of its pods."""


def of_configuration(
    live: ClusterCopy, run: SimulatedRun[SlinkyClusters], changed: Sequence[Files]
) -> Iterator[Restart]:
    """Restarts for changed keys and files, and for a changed slurm.key."""
    yield from _rotated(live, run.clusters)
    for one in changed:
        yield from _for_files(live, run, one)


def _of(live: ClusterCopy, space: str, daemon: str, instance: str) -> tuple[str, ...]:
    return pods_with(live, space, app_labels.selector_labels(LABELS[daemon], instance))


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
    live: ClusterCopy, run: SimulatedRun[SlinkyClusters], of: Files
) -> Iterator[Restart]:
    """Daemons that take over a changed configuration by a restart only."""
    clusters = run.clusters
    controller = clusters.caches.controllers.get("/".join(of.key))
    if controller is None:
        return
    space, name = of.key
    for daemon, why in restarted_daemons(of.plan).items():
        if daemon == "slurmctld":
            yield slurmctld_restart(
                ("controller", of.key),
                _of(live, space, daemon, name),
                names.controller_workload(controller),
                why,
                ours=of.ours,
                persistent=controller.spec.persistent,
            )
        elif daemon in LABELS:
            yield from _left(live, run, controller, daemon, why)
    yield from _standbys(live, clusters, controller, of.plan.items)


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
    live: ClusterCopy,
    run: SimulatedRun[SlinkyClusters],
    controller: Controller,
    daemon: str,
    why: tuple[str, ...],
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
        yield Restart(How.YOURS, space, pods, daemon, of, why, _cure(of))


def _cure(of: str) -> str:
    kind, _, key = of.partition(" ")
    space, _, name = key.partition("/")
    if kind == "NodeSet":
        message = f"change an annotation of spec.template of NodeSet {name}"
        return f"{message}, and each is replaced once it is drained"
    return cure(kind, space, name)


def _stays(run: SimulatedRun[SlinkyClusters], space: str, name: str) -> bool:
    """Whether a pod is the same one at the end of the simulated run, and is not terminating."""
    pod = run.clusters.caches.pods.get(f"{space}/{name}")
    return pod is not None and not pod.metadata.deleting
