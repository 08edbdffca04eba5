"""The world that a plan is played in: one small Slurm cluster, and who uses it."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Callable

import msgspec

from penstock.api.meta import Json
from penstock.kube.backoff import JITTER
from penstock.kube.transport import Request, Response
from penstock.testing.apiserver import ApiServer
from penstock.testing.apiserver.address import parse
from penstock.testing.controllers import WorkloadControllers
from penstock.testing.faults import Fault
from penstock.testing.kubelet import Machines
from penstock.testing.loop import EPOCH, LoopClock
from penstock.testing.plans.dice import Dice
from penstock.testing.plans.process import Process
from penstock.testing.plans.promises import Promises
from penstock.testing.slurm import SimulatedSlurm, SlurmLine

SPACE = "slurm"
NODESET = "compute"
GROUP = f"/apis/slinky.slurm.net/v1beta1/namespaces/{SPACE}"
CORE = f"/api/v1/namespaces/{SPACE}"
KINDS = (("controllers", "Controller"), ("restapis", "RestApi"), ("nodesets", "NodeSet"))


class World:
    """Everything but the plan. Make it inside a simulated loop."""

    def __init__(self, seed: int) -> None:
        self.dice = Dice(seed)
        JITTER.set(self.dice.random)
        loop = asyncio.get_running_loop()
        self.server = ApiServer(self.true_time)
        self.slurm = SimulatedSlurm(self.true_time)
        self.machines = Machines(self.server, self.slurm, dice=self.dice.between)
        self.workloads = WorkloadControllers(self.server)
        self.promises = Promises(self.server, self.slurm, self.machines)
        self.clock = LoopClock()
        self.processes: list[Process] = []
        self.writes: list[tuple[float, str]] = []
        self.summary: Counter[str] = Counter()
        self.healed = False
        """Whether nothing more goes wrong, and nobody does anything any more."""
        self._loop = loop
        self._fault = Fault.NONE
        self._coming: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def true_time(self) -> float:
        """Unix seconds, as everybody but a jumping operator has them."""
        return EPOCH + asyncio.get_running_loop().time()

    # Users

    def declare(self, replicas: int) -> None:
        """Make the cluster's objects."""
        ref = {"controllerRef": {"name": "slurm"}}
        self._make("controllers", "Controller", "slurm", {"persistence": {"enabled": True}})
        self._make("restapis", "RestApi", "slurm", ref)
        self.declare_nodeset(replicas)

    def declared(self) -> bytes:
        """All that users declare now, as JSON that `declare_all` takes."""
        found = [
            (plural, kind, obj["metadata"]["name"], obj["spec"])
            for plural, kind in KINDS
            for obj in self.server.objects(f"slinky.slurm.net/{plural}", SPACE)
        ]
        return msgspec.json.encode(found, order="deterministic")

    def declare_all(self, found: list[tuple[str, str, str, Json]]) -> None:
        """Declare what is declared in another world."""
        for plural, kind, name, spec in found:
            self._make(plural, kind, name, spec)

    def declare_nodeset(self, replicas: int) -> None:
        """Make the NodeSet."""
        spec: Json = {"controllerRef": {"name": "slurm"}, "replicas": replicas}
        spec["partition"] = {"enabled": True}
        self._make("nodesets", "NodeSet", NODESET, spec)

    def scale(self, replicas: int) -> None:
        """`kubectl scale`."""
        self.ask("PATCH", f"{GROUP}/nodesets/{NODESET}", {"spec": {"replicas": replicas}})

    def ask(self, method: str, path: str, body: Json) -> Response:
        """What `kubectl` asks; it may be refused."""
        return self.server.ask(method, path, body, user="kubectl")

    def find(self, resource: str, name: str) -> Json | None:
        """An object of the cluster's namespace."""
        return self.server.find(resource, SPACE, name)

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Do that in so many seconds, or when the plan ends if that is sooner."""
        timer = self._loop.call_later(seconds, self._due, callback)
        self._coming[callback] = timer

    def _due(self, callback: Callable[[], None]) -> None:
        if (timer := self._coming.pop(callback, None)) is not None:
            timer.cancel()
            callback()

    # What goes wrong

    def slurm_fault(self, fault: Fault) -> None:
        """Have slurmrestd misbehave, for all who ask."""
        self._fault = fault
        for process in self.processes:
            process.line.rest.fault = fault

    def heal(self) -> None:
        """End all that goes wrong, and all jobs."""
        self.healed = True
        for callback in list(self._coming):
            self._due(callback)
        self.slurm_fault(Fault.NONE)
        self.clock.set_right()
        for process in self.processes:
            process.connection.troubles.clear()
            process.crash_after = None
        for job in list(self.slurm.ctld.jobs.values()):
            self.slurm.finish(job)

    def _make(self, plural: str, kind: str, name: str, spec: Json) -> None:
        body = {"kind": kind, "metadata": {"name": name}, "spec": spec}
        self.server.ask("POST", f"{GROUP}/{plural}", body, user="kubectl")

    # The operator

    def operator(self) -> Process:
        """Start a process of it."""
        line = SlurmLine(self.slurm, self._jwt_key, self.promises.heard)
        dice = self.dice
        process = Process(
            self.server,
            line,
            self.clock,
            latency=lambda: dice.between(0.001, 0.02),
            lag=lambda: dice.between(0.0, 0.1),
            wrote=self._wrote,
        )
        line.rest.fault = self._fault
        self.processes.append(process)
        process.start()
        return process

    async def crash(self, process: Process) -> None:
        """End a process at once."""
        if process in self.processes:
            self.processes.remove(process)
            await process.crash()

    def _wrote(self, request: Request, response: Response) -> None:
        address = parse(request.path)
        path = request.path.partition("/events/")[0]
        # The names of events are random, and nothing else is.
        self.writes.append((self._loop.time(), f"{request.method} {path}"))
        if address.resource == "events.k8s.io/events":
            return
        name = address.name
        if request.method == "POST":
            body: Json = msgspec.json.decode(request.body)
            name = body["metadata"].get("name", name)
        if request.method in {"POST", "DELETE"} or response.status == 201:
            verb = "delete" if request.method == "DELETE" else "create"
            self.summary[f"{verb} {address.resource} {name}"] += 1

    def _jwt_key(self) -> bytes | None:
        for secret in self.server.objects("/secrets", SPACE):
            if "jwt" in secret["metadata"]["name"]:
                return base64.b64decode(next(iter(secret["data"].values())))
        return b""
