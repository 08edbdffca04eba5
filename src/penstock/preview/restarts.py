"""Which pods restart or end by a change, by name, daemon and reason; workers apart.

There are three ways: the operator or a workload's controller replaces a pod by itself, a pod ends
for good, and a pod goes on with what it read when it started until somebody restarts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json, OwnerReference
from penstock.decide.config.transaction import restarts_slurmctld
from penstock.preview.effect import Files, How, Restart, Workload
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.state import ClusterCopy, Key, SimulatedRun
from penstock.slurm.conf.apply_method import Force, Plan

C = TypeVar("C")
PODS = "/pods"
WORKER = "slurmd"
WORKLOADS = {"apps/statefulsets": "StatefulSet", "apps/deployments": "Deployment"}


def restarts(
    live: ClusterCopy,
    run: SimulatedRun[C],
    api: PreviewedApi[C],
    workloads: Iterable[Workload],
    changed: Sequence[Files],
) -> tuple[Restart, ...]:
    """All of them but workers that are replaced, each pod once.

    `workloads` are those whose template changes, `changed` the needs of changed configurations.
    """
    found = [
        *_replaced(live, run, api, workloads),
        *_ended(live, run, api),
        *api.restarts(live, run, changed),
        *deleted(live, run, api),
    ]
    return tuple(_once(found))


def pods_with(live: ClusterCopy, space: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the pods that are there now and not on their way out."""
    return tuple(
        sorted(
            key[1]
            for key, pod in live.objects.get(PODS, {}).items()
            if key[0] == space and "deletionTimestamp" not in pod["metadata"]
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        )
    )


def cure(kind: str, space: str, name: str) -> str:
    """How a user restarts the pods of a StatefulSet or Deployment."""
    return f"kubectl rollout restart {kind.lower()}/{name} -n {space}"


def restarted_daemons(plan: Plan) -> dict[str, tuple[str, ...]]:
    """By daemon the items of a changed configuration that take effect by its restart only."""
    found: dict[str, list[str]] = {}
    for item in plan.items:
        for daemon in item.need.daemons if item.need.force is Force.RESTART else ():
            found.setdefault(daemon, []).append(str(item))
    return {daemon: tuple(why) for daemon, why in found.items()}


def slurmctld_restart(
    declared_by: tuple[str, Key],
    pods: tuple[str, ...],
    workload: str,
    why: tuple[str, ...],
    *,
    ours: Plan,
    persistent: bool,
) -> Restart:
    """The restart of slurmctld. `declared_by` is the kind and key that kubectl annotates.

    The operator restarts it for files of its own (`ours`), where slurmctld's state outlives the
    pod.
    """
    kind, (space, name) = declared_by
    how = How.OPERATOR if persistent and restarts_slurmctld(ours) else How.YOURS
    asks = f'{marks.RESTART}="slurmctld@$(date +%s)"'
    words = f"kubectl annotate {kind} -n {space} --overwrite {name} {asks}"
    if not persistent:
        words = f"kubectl delete pod {' '.join(pods)} -n {space}"
    of = f"StatefulSet {space}/{workload}"
    return Restart(how, space, pods, "slurmctld", of, why, words, loses_state=not persistent)


def _once(found: Iterable[Restart]) -> Iterator[Restart]:
    seen: set[Key] = set()
    for one in found:
        left = tuple(pod for pod in one.pods if (one.namespace, pod) not in seen)
        seen |= {(one.namespace, pod) for pod in left}
        if left:
            yield replace(one, pods=left)


def _labels(workload: Json) -> Mapping[str, str]:
    return workload["spec"]["template"]["metadata"].get("labels", {})


def _replaced(
    live: ClusterCopy, run: SimulatedRun[C], api: PreviewedApi[C], workloads: Iterable[Workload]
) -> Iterator[Restart]:
    for one in workloads:
        resource = next(name for name, kind in WORKLOADS.items() if kind == one.kind)
        workload, space = live.objects[resource][one.key], one.key[0]
        pods = pods_with(live, space, workload["spec"]["selector"]["matchLabels"])
        labels = _labels(workload)
        yield Restart(
            How.TEMPLATE,
            space,
            pods,
            api.daemon(labels),
            f"{one.kind} {'/'.join(one.key)}",
            one.paths,
            loses_state=api.has_state(run, space, labels),
        )


def _ended(live: ClusterCopy, run: SimulatedRun[C], api: PreviewedApi[C]) -> Iterator[Restart]:
    """Pods of workloads that are deleted, or get fewer replicas."""
    for (resource, key), after in run.after.items():
        workload = live.objects.get(resource, {}).get(key)
        if resource not in WORKLOADS or workload is None:
            continue
        kind, labels, space = WORKLOADS[resource], _labels(workload), key[0]
        daemon, of = api.daemon(labels), f"{kind} {'/'.join(key)}"
        pods = pods_with(live, space, workload["spec"]["selector"]["matchLabels"])
        lost = api.has_state(run, space, labels)
        if after is None or "deletionTimestamp" in after["metadata"]:
            why = ("is deleted",)
            yield Restart(How.ENDS, space, pods, daemon, of, why, loses_state=lost)
            continue
        before, now = (one["spec"].get("replicas", 1) for one in (workload, after))
        if now >= before:
            continue
        if kind == "StatefulSet":
            pods = tuple(pod for pod in pods if int(pod.rpartition("-")[2]) >= now)
        yield Restart(How.ENDS, space, pods, daemon, of, (f"has {now} replicas, not {before}",))


def deleted(live: ClusterCopy, run: SimulatedRun[Any], api: PreviewedApi[Any]) -> Iterator[Restart]:
    """Pods that the operator deleted for another reason, such as an annotation that asks for it."""
    for (resource, (space, name)), after in sorted(run.after.items(), key=lambda one: one[0]):
        before = live.objects.get(resource, {}).get((space, name))
        if resource != PODS or before is None:
            continue
        daemon = api.daemon(before["metadata"].get("labels", {}))
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
