"""The operator at work on a copy of a cluster, in simulated time: nothing real is touched.

The copy has no kubelet and no scheduler: what waits for a pod to start or to end stays as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.controllers.operator import REPORTER, Operator
from penstock.controllers.runtime.report import INTERNAL_ERROR
from penstock.kube import Client, Manager, Recorder
from penstock.preview.dry_run import DryRunObject
from penstock.preview.previewed_api import PreviewedApi
from penstock.preview.state import ClusterCopy, Key, SimulatedRun, Slurm
from penstock.simulation.apiserver import ApiServer, Change, Connection
from penstock.simulation.event_loop import EPOCH, LoopClock, simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.reconfigure import Sidecars, slurm_conf
from penstock.simulation.slurm.slurmctld import SimulatedJob, SimulatedSlurmctld, SimulatedSlurmNode
from penstock.simulation.slurm.slurmrestd import InMemorySlurmrestd
from penstock.slurm.rest.http import Answer, unfenced

LONG_S = 60.0
"""Simulated seconds that the operator gets: for several looks at Slurm and what follows."""
C = TypeVar("C")
UNSEEN = frozenset({"events.k8s.io/events", "coordination.k8s.io/leases"})
BASES = ("DOWN", "ERROR", "FUTURE", "UNKNOWN")


def simulate_operator(
    live: ClusterCopy,
    wanted: Iterable[DryRunObject],
    api: PreviewedApi[C],
    now: float | None = None,
) -> SimulatedRun[C]:
    """Let the operator of an API work on `live` with the wanted objects in it.

    `now` are the Unix seconds at which it begins; by default it is now.
    """
    began = time.time() if now is None else now
    return simulate(_simulate_operator(live, tuple(wanted), api, began))


async def _simulate_operator(
    live: ClusterCopy, wanted: tuple[DryRunObject, ...], api: PreviewedApi[C], now: float
) -> SimulatedRun[C]:
    clock = LoopClock()
    clock.jump(now - EPOCH)
    server = ApiServer(clock.time)
    server.absent |= live.absent
    slurms = {key: _slurm(said, clock) for key, said in live.slurm.items()}

    def stored(resource: str, space: str, name: str) -> Json | None:
        return live.objects.get(resource, {}).get((space, name))

    for key, slurm in slurms.items():
        # What somebody changed of partitions in Slurm itself is not part of the plan.
        slurm.slurmctld.read(slurm_conf(api.files(stored, key)))

    def reads(pod: Json, files: Mapping[str, str]) -> None:
        meta = pod["metadata"]
        labels: Mapping[str, str] = meta.get("labels") or {}
        slurm = slurms.get(f"{meta['namespace']}/{labels.get(app_labels.APP_INSTANCE)}")
        if slurm is not None and api.daemon(labels) == "slurmctld":
            slurm.slurmctld.read(slurm_conf(files))

    # Only a real slurmctld shows whether it would reject a configuration.
    etc = partial(api.etc, server.find)
    server.logs = Sidecars(server.find, reads, etc).log
    # Of the other API's objects, of ReplicaSets and of much else there is no copy.
    server.have_elsewhere(_owners(live) - _uids(live))
    for resource, objects in live.objects.items():
        for key, obj in objects.items():
            server.store.put(resource, key, obj)
    for resource, obj in wanted:
        meta = obj["metadata"]
        server.store.put(resource, (meta.get("namespace", ""), meta["name"]), obj)
    before: dict[tuple[str, Key], Json | None] = {}
    after: dict[tuple[str, Key], Json | None] = {}

    def note(change: Change) -> None:
        if change.resource not in UNSEEN:
            what = change.resource, change.key
            before.setdefault(what, change.old.obj if change.old else None)
            after[what] = change.new.obj if change.new else None

    server.store.listeners.append(note)
    connection = Connection(server, "operator")
    client = Client(connection, clock=clock)
    recorder = Recorder(client, REPORTER, "simulated-run")
    manager = Manager(client, recorder=recorder)
    operator = Operator(
        client,
        manager,
        recorder,
        replace(live.settings, apis=(api.group,)),
        url_of=lambda obj: _url(api.cluster_of(obj)),
        exchange=_Exchange(slurms).exchange,
        connect=_connected,
    )
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(LONG_S)
    manager.stop()
    await running
    drained = {key: _drains(slurm) - _drained(live.slurm[key]) for key, slurm in slurms.items()}
    changed = {key: _changed(live.slurm[key], slurm) for key, slurm in slurms.items()}
    failed = tuple(_failures(live, after, api.prefixes))
    return SimulatedRun(before, after, drained, changed, api.clusters(operator), failed)


def _owners(live: ClusterCopy) -> frozenset[str]:
    return frozenset(
        owner["uid"]
        for objects in live.objects.values()
        for obj in objects.values()
        for owner in obj["metadata"].get("ownerReferences") or ()
    )


def _uids(live: ClusterCopy) -> frozenset[str]:
    return frozenset(
        obj["metadata"].get("uid", "")
        for objects in live.objects.values()
        for obj in objects.values()
    )


def _failures(
    live: ClusterCopy, after: Mapping[tuple[str, Key], Json | None], prefixes: tuple[str, ...]
) -> Iterator[str]:
    """The words of failures that the objects did not have before."""
    for (resource, key), now in sorted(after.items(), key=lambda one: one[0]):
        words = _failure(now or {}) if resource.startswith(prefixes) else ""
        if words and not _failure(live.objects.get(resource, {}).get(key) or {}):
            yield words


def _failure(obj: Json) -> str:
    status: Json = obj.get("status") or {}
    conditions: list[Json] = status.get("conditions") or []
    return next((one["message"] for one in conditions if one["reason"] == INTERNAL_ERROR), "")


def _changed(state: Slurm | str, slurm: InMemorySlurmrestd) -> frozenset[str]:
    now = slurm.slurmctld.nodes
    return frozenset(
        node.name
        for node in (state.nodes if isinstance(state, Slurm) else ())
        if (found := now.get(node.name)) is not None
        if (set(found.features), found.weight, found.gres)
        != (set(node.features), node.weight, node.gres)
    )


def _drains(slurm: InMemorySlurmrestd) -> frozenset[str]:
    return frozenset(n for n, node in slurm.slurmctld.nodes.items() if "DRAIN" in node.flags)


def _drained(state: Slurm | str) -> frozenset[str]:
    nodes = state.nodes if isinstance(state, Slurm) else ()
    return frozenset(node.name for node in nodes if "DRAIN" in node.state)


class _Exchange:
    """Each cluster's simulated slurmrestd, by the name in the URL."""

    def __init__(self, slurms: Mapping[str, InMemorySlurmrestd]) -> None:
        self._slurms = slurms

    async def exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        """Answer as that cluster's Slurm would. Raises ConnectionRefusedError."""
        space, _, name = (urlsplit(url).hostname or "").partition(".")
        slurm = self._slurms.get(f"{space}/{name}")
        if slurm is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return await slurm.exchange(url, method, headers, body, fence)


async def _connected(host: str, port: int, _check: object) -> None:
    """Whether hosts outside can be reached is no part of the plan."""
    del host, port


def _url(key: str) -> str:
    space, _, name = key.partition("/")
    return f"http://{space}.{name}"


def _slurm(state: Slurm | str, clock: LoopClock) -> InMemorySlurmrestd:
    ctld = SimulatedSlurmctld(clock.time)
    rest = InMemorySlurmrestd(ctld)
    if isinstance(state, str):
        rest.fault = Fault.REFUSE
        return rest
    for node in state.nodes:
        base = next((one for one in BASES if one in node.state), "IDLE")
        ctld.nodes[node.name] = SimulatedSlurmNode(
            node.name,
            base,
            set(node.state) - {*BASES, "IDLE", "ALLOCATED", "MIXED", "COMPLETING"},
            node.reason,
            node.reason_user,
            node.comment,
            list(node.features),
            list(node.active_features),
            list(node.partitions),
            node.address,
            node.topology or "",
            node.slurmd_start_time,
            node.weight,
            node.gres,
        )
    for job in state.jobs:
        ctld.jobs[job.id] = SimulatedJob(
            job.id,
            list(job.nodes),
            set(job.state),
            job.name,
            job.user,
            job.partition,
            job.start_time or 0,
            job.time_limit,
        )
    ctld.touch()
    return rest
