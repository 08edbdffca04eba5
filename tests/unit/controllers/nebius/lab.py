"""The operator and SlurmClusters of either shape, on simulated Kubernetes nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from fault_plans import worker_sets
from fault_plans.api_names import CLUSTER
from fault_plans.kinds import path_of
from fault_plans.nebius_specs import CURRENT, OLDER
from fault_plans.nebius_world import NebiusWorld
from fault_plans.plan import Layout
from fault_plans.promises import nebius_state
from fault_plans.world import CORE, SPACE
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.apiserver import Change
from penstock.simulation.event_loop import simulate
from penstock.simulation.kubelet.jobs import JOBS

SHAPES = (OLDER, CURRENT)
MACHINES = frozenset({"machine-0", "machine-1", "machine-2"})
CLUSTERS = "slurmclusters"
NODESETS = "nodesets"
JOB = names.populate_job(CLUSTER)


class Lab:
    """A world in which nothing goes wrong by itself. `made` is what came into being, in order."""

    def __init__(self, shape: str, *, left: bool = False) -> None:
        self.world = NebiusWorld(1, Layout(nebius=shape, left=left))
        self.made: list[str] = []
        self.gone: list[str] = []
        self.world.server.store.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        name = f"{change.resource.rpartition('/')[2]}/{change.key[1]}"
        if change.old is None:
            self.made.append(name)
        elif change.new is None:
            self.gone.append(name)

    def stop_kubelets(self) -> None:
        """Have no Kubernetes node run a pod."""
        self.world.machines.silent |= MACHINES

    def start_kubelets(self) -> None:
        """Have them run again."""
        self.world.machines.silent -= MACHINES

    def find(self, resource: str, name: str) -> Json | None:
        """An object by `group/plural` and name."""
        return self.world.find(resource, name)

    def get(self, resource: str, name: str) -> Json:
        """One that exists."""
        found = self.find(resource, name)
        assert found is not None, f"there is no {resource} {name}"
        return found

    @property
    def cluster(self) -> Json:
        """The SlurmCluster."""
        return self.get(worker_sets.CLUSTERS, CLUSTER)

    def of_kind(self, plural: str, name: str = CLUSTER) -> Json:
        """A SlurmCluster or a NodeSet."""
        return self.find(f"{worker_sets.NEBIUS}/{plural}", name) or {}

    def condition(
        self, type_: str = "Ready", plural: str = CLUSTERS, name: str = CLUSTER
    ) -> tuple[str, str, str]:
        """Status, reason and message of a condition; empty without it."""
        found: list[Json] = self.of_kind(plural, name).get("status", {}).get("conditions", [])
        for one in found:
            if one["type"] == type_:
                return one["status"], one["reason"], one.get("message", "")
        return "", "", ""

    def phase(self, plural: str = CLUSTERS, name: str = CLUSTER) -> str:
        """The phase of a SlurmCluster or a NodeSet."""
        phase: str = self.of_kind(plural, name).get("status", {}).get("phase", "")
        return phase

    def make(self, path: str, kind: str, name: str, **fields: object) -> None:
        """`kubectl create`, of an object of somebody else."""
        self.world.ask("POST", path, {"kind": kind, "metadata": {"name": name}, **fields})

    def delete(self, plural: str, name: str = CLUSTER) -> None:
        """`kubectl delete` of a SlurmCluster or a NodeSet."""
        of = worker_sets.OF_CLUSTER if plural == CLUSTERS else worker_sets.OF_NEBIUS
        self.world.ask("DELETE", path_of(SPACE, of, name), {})

    def complete_job(self, type_: str = "Complete", message: str = "") -> None:
        """Have the Job that fills the jail end."""
        self.get(JOBS, JOB)
        body = {"status": {"conditions": [{"type": type_, "status": "True", "message": message}]}}
        path = f"/apis/batch/v1/namespaces/{SPACE}/jobs/{JOB}/status"
        self.world.server.ask("PATCH", path, body, user="jobs")

    def pods(self, prefix: str = "") -> list[str]:
        """Names of pods that are not being deleted."""
        return [
            pod["metadata"]["name"]
            for pod in self.world.server.objects("/pods", SPACE)
            if pod["metadata"]["name"].startswith(prefix)
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def until(self, is_so: Callable[[], object], seconds: float = 120) -> None:
        """Wait in simulated time."""
        for _ in range(int(seconds * 10)):
            if is_so():
                return
            await asyncio.sleep(0.1)
        raise AssertionError((self.phase(), self.of_kind(CLUSTERS).get("status")))

    async def available(self) -> None:
        """Wait until all is as declared."""
        await self.until(lambda: not nebius_state.missing(self.world))

    async def settled(self, seconds: float = 30) -> list[str]:
        """What the operator writes in so many seconds, but for events."""
        before = len(self.world.writes)
        await asyncio.sleep(seconds)
        return [what for _, what in self.world.writes[before:] if "/events" not in what]

    def deletes(self) -> list[str]:
        """Paths that the operator deleted."""
        return [what for _, what in self.world.writes if what.startswith("DELETE")]


@asynccontextmanager
async def operated(lab: Lab) -> AsyncGenerator[None]:
    """An operator runs while the block does, and keeps all promises."""
    process = lab.world.operator()
    try:
        yield
    finally:
        failure = process.failure
        await lab.world.crash(process)
        assert failure is None
        assert lab.world.promises.broken == [], lab.world.promises.broken


def played(
    play: Callable[[Lab], Awaitable[None]],
    shape: str = CURRENT,
    *,
    replicas: int = 2,
    before: Callable[[Lab], None] = lambda _: None,
) -> None:
    """Play a story: `before` it a cluster is declared, and then the operator starts."""

    async def run() -> None:
        lab = Lab(shape)
        before(lab)
        if replicas >= 0:
            lab.world.declare(replicas)
        async with operated(lab):
            await play(lab)

    simulate(run())


__all__ = [
    "CLUSTERS",
    "CORE",
    "CURRENT",
    "JOB",
    "JOBS",
    "NODESETS",
    "OLDER",
    "SHAPES",
    "SPACE",
    "Lab",
    "operated",
    "played",
]
