"""Effects of a simulated run: which objects change, what Slurm's files need, which pods restart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import Json
from penstock.decide.observed.pod import slurm_node_name
from penstock.preview.effect import Effects, Touched, WorkerPods, Workers, Workload
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.restarts import restarts
from penstock.preview.state import ClusterCopy, SimulatedRun, Slurm

C = TypeVar("C")
PODS = "/pods"
SERVERS = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"})
BOOKKEEPING = marks.CONTENT_HASH
"""An annotation of ours that follows the data beside it."""
SHOWN_WORKLOADS = ("apps/statefulsets", "apps/deployments")


def effects(live: ClusterCopy, run: SimulatedRun[C], api: PreviewedApi[C]) -> Effects:
    """All effects, in the order of their names."""
    workers = [_workers(live, run, one) for one in api.workers(run)]
    changed = tuple(api.changed_files(live, run))
    workloads = tuple(_workloads(run))
    return Effects(
        tuple(_touched(run)),
        changed,
        workloads,
        tuple(one for one in workers if one.happens),
        restarts(live, run, api, workloads, changed),
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


def _touched(run: SimulatedRun[Any]) -> Iterator[Touched]:
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


def _workloads(run: SimulatedRun[Any]) -> Iterator[Workload]:
    for (resource, key), after in sorted(run.after.items(), key=lambda one: one[0]):
        before = run.before[resource, key]
        if resource not in SHOWN_WORKLOADS or before is None or after is None:
            continue
        paths = tuple(differences(before["spec"]["template"], after["spec"]["template"]))
        if paths:
            yield Workload(str(after["kind"]), key, paths)


def _workers(live: ClusterCopy, run: SimulatedRun[Any], of: WorkerPods) -> Workers:
    there = live.objects.get(PODS, {})
    drained = run.drained.get(of.cluster, frozenset[str]())
    changed = run.changed.get(of.cluster, frozenset[str]())
    created, deleted, leaving, outdated = list[str](), list[str](), list[str](), list[str]()
    touched: list[Pod] = []
    for pod in of.pods:
        name = pod.metadata.name
        before = there.get((of.key[0], name))
        if before is None or before["metadata"].get("uid") != pod.metadata.uid:
            created.append(name)
            continue
        if pod.metadata.deleting and "deletionTimestamp" not in before["metadata"]:
            deleted.append(name)
        elif slurm_node_name(pod) in drained:
            leaving.append(name)
            touched.append(pod)
        elif of.hashes.get(name) not in of.current:
            outdated.append(name)
            touched.append(pod)
    return Workers(
        of.key,
        tuple(created),
        tuple(deleted),
        tuple(leaving),
        tuple(outdated),
        of.strategy,
        tuple(pod.metadata.name for pod in of.pods if slurm_node_name(pod) in changed),
        _jobs(live.slurm.get(of.cluster), touched),
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
