"""The world that a plan is played in: a small Slurm cluster or two, and who uses them."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec

from fault_plans import tiny_reconciler, worker_sets
from fault_plans.actions.adopted_cluster import LeftPromises, activate, leave
from fault_plans.actions.files import FilePromises
from fault_plans.api_names import OF_SLINKY
from fault_plans.daemonset import MODE, is_daemon, machine_of, workers
from fault_plans.kinds import KINDS, path_of, resource_of, usual
from fault_plans.plan import LARGEST, Layout
from fault_plans.process import Process
from fault_plans.promises.every_state import STALE_S, Promises
from fault_plans.promises.node_pins import PinPromises
from fault_plans.promises.pvc import ClaimPromises
from fault_plans.promises.restarts import RestartPromises
from fault_plans.random_source import Dice
from fault_plans.specs import (
    ACCOUNTING,
    CLAIM,
    DAEMON,
    DATABASE,
    EXTERNAL,
    HOST_KEYS,
    JWT_SECRET,
    PERSISTENT,
    RECORDS,
    SLURM_SECRET,
    TOKEN,
    USER,
)
from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.connectivity import Check
from penstock.kube.client.backoff import JITTER
from penstock.kube.client.transport import Request, Response
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.apiserver.address import parse
from penstock.simulation.event_loop import EPOCH, LoopClock
from penstock.simulation.faults import Fault
from penstock.simulation.kubelet.kubelet import SimulatedNodes
from penstock.simulation.kubelet.pod_lifecycle import node_name
from penstock.simulation.kubelet.pvc import Volumes
from penstock.simulation.kubelet.workload_controllers import WorkloadControllers
from penstock.simulation.slurm.cluster import SimulatedSlurm, SlurmLine
from penstock.slurm.auth.key_files import JWT_KEY
from penstock.translate.slinky.worker_set import MARKS
from support import tiny_api

SPACE = "slurm"
NODESET = "compute"
GROUP = f"/apis/slinky.slurm.net/v1beta1/namespaces/{SPACE}"
CORE = f"/api/v1/namespaces/{SPACE}"
REF: Json = {"controllerRef": {"name": "slurm"}}
MADE = frozenset(
    {
        "/configmaps",
        "/secrets",
        "/services",
        "apps/deployments",
        "apps/statefulsets",
        "policy/poddisruptionbudgets",
    }
)
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
QUIET = frozenset({"events.k8s.io/events", "coordination.k8s.io/leases"})
"""What a settled operator may write: an event a last time, and its Lease."""
Declared = tuple[str, str, str, str, Json]
"""Namespace, plural, kind, name and spec of one of our objects."""
RESTART_S = 1.0
"""After which a process that has ended by itself is started again."""
HESITATES = 0.02
"""Share of the readings of the operator's clock that take time while it waits for a core."""
HESITATIONS = 2
"""So many may come between an answer of Slurm and what is sent because of it."""


class World:
    """Everything but the plan. Make it inside a simulated loop."""

    api = OF_SLINKY
    kinds = KINDS
    """Kinds that users declare: plural and kind."""
    shared_pvcs: frozenset[str] = frozenset()
    """PVCs of users that several pods mount."""
    unsettled: frozenset[str] = frozenset()
    """Names of objects whose content depends on more than what is declared in the end."""

    def __init__(self, seed: int, layout: Layout | None = None) -> None:
        self.dice = Dice(seed)
        self.layout = layout = layout or Layout()
        self.places = self._places(layout)
        """What declares workers: namespace and name."""
        self.spaces = tuple(dict.fromkeys(space for space, _ in self.places))
        JITTER.set(self.dice.random)
        loop = asyncio.get_running_loop()
        # Dice of their own: without claims a seed gives what it always gave.
        collects = Dice(seed).choice((0.1, 0.5, 5.0)) if layout.claims is not None else 0.5
        self.api_server = ApiServer(self.true_time, collect_after=collects)
        self.server = self._view(self.api_server)
        """The objects of the clusters in `slurms`."""
        self.slurms = {space: SimulatedSlurm(self.true_time) for space in self.spaces}
        self.slurm = self.slurms[SPACE]
        self.machines = SimulatedNodes(self.server, self.slurms, random_source=self.dice.between)
        self.workloads = WorkloadControllers(self.api_server)
        self.volumes = Volumes(self.api_server, partial(self.dice.between, 0.1, 2.0))
        self.plural = self._plural(layout)
        """Of the objects that declare workers."""
        self.marks = self._marks(layout)
        if layout.tiny:
            tiny_reconciler.install()
        self.promises = Promises(self.server, self.slurms, self.machines, self.marks, self.api)
        self.claims = ClaimPromises(self.server, self.promises.broken, STALE_S, self.shared_pvcs)
        self.pins = PinPromises(self.server, self.promises.broken)
        mounts = self.machines.mounts
        self._files = FilePromises(self.server, mounts, self.promises.broken, self.api)
        self._files.left = layout.left
        self.restarts = RestartPromises(self.server, self.promises.broken, STALE_S)
        self.left: LeftPromises | None = None
        self.clock = LoopClock()
        self.processes: list[Process] = []
        self.writes: list[tuple[float, str]] = []
        self.summary: Counter[str] = Counter()
        self.rights: set[tuple[str, str]] = set()
        """Verbs and resources of the operator's writes, as its Roles name them."""
        self.made: Counter[str] = Counter()
        """Creates by the operator less removals by anybody, of each object but pods."""
        self.api_server.store.listeners.append(self._removed)
        self.closed: dict[tuple[str, int], OSError] = {}
        """Hosts and ports outside that the operator cannot connect to."""
        self.rekeyed: dict[str, bytes] = {}
        """By namespace the last slurm.key that somebody gave."""
        self.promises.hesitation = lambda: HESITATIONS * self.longest_hesitation
        self.longest_hesitation = 0.0
        """Seconds that some readings of the operator's clock take, while it waits for a core."""
        self.healed = False
        """Whether nothing more goes wrong, and nobody does anything any more."""
        self._hesitates = Dice(seed + (44 << 40))
        self._loop = loop
        self._started = 0
        self._edits: dict[tuple[str, str], list[Json]] = {}
        self._specs: dict[tuple[str, str], Json] = {}
        """By namespace and plural what is declared of an Accounting or a Token."""
        self._faults = dict.fromkeys(self.spaces, Fault.NONE)
        self._delays = dict.fromkeys(self.spaces, 0.0)
        self._coming: dict[Callable[[], None], asyncio.TimerHandle] = {}
        for space in self.spaces if layout.external else ():
            self._begin_outside(space)

    # What differs for each API

    def _view(self, server: ApiServer) -> ApiServer:
        return server

    def lines(self) -> dict[str, SlurmLine]:
        """New ways to all Slurm clusters."""
        return {
            space: SlurmLine(
                slurm, partial(self._jwt_key, space), partial(self.promises.heard, space)
            )
            for space, slurm in self.slurms.items()
        }

    def _places(self, layout: Layout) -> tuple[tuple[str, str], ...]:
        return ((SPACE, NODESET), *layout.others)

    def _plural(self, layout: Layout) -> str:
        return "crews" if layout.tiny else "nodesets"

    def _marks(self, layout: Layout) -> WorkerMarks:
        return tiny_api.MARKS if layout.tiny else MARKS

    def _edit(self, body: Json) -> Json:
        """What a change of a NodeSet is for whatever declares workers."""
        return {"spec": worker_sets.for_crew(body["spec"])} if self.layout.tiny else body

    def _size(self, replicas: int) -> Json:
        return {"spec": {"replicas": replicas}}

    def _usual(self, plural: str, spec: Json) -> Json:
        return usual(plural, spec)

    def prepare(self, space: str) -> None:
        """Make what belongs to users and lasts."""

    def in_urls(self, plural: str) -> str:
        """The plural in URLs of a kind that Slinky's API has."""
        return self.plural if plural == "nodesets" else plural

    def true_time(self) -> float:
        """Unix seconds, as everybody but a jumping operator has them."""
        return EPOCH + asyncio.get_running_loop().time()

    # Who is meant: a number stands for one of what the layout has

    def place(self, number: int) -> tuple[str, str]:
        """Namespace and name of a NodeSet."""
        return self.places[number % len(self.places)]

    def space(self, number: int) -> str:
        """A namespace."""
        return self.spaces[number % len(self.spaces)]

    def worker(self, number: int) -> tuple[str, str]:
        """Namespace and name of a worker pod."""
        space, nodeset = self.place(number // LARGEST)
        name = worker_sets.pod_name(self.plural, nodeset, number % LARGEST)
        pod = self._daemon(space, nodeset, number % LARGEST)
        return space, name if pod is None else pod["metadata"]["name"]

    def node(self, number: int) -> tuple[str, str]:
        """Namespace and name of a worker's Slurm node."""
        space, nodeset = self.place(number // LARGEST)
        name = worker_sets.node_of(self.plural, nodeset, number % LARGEST)
        pod = self._daemon(space, nodeset, number % LARGEST)
        return space, name if pod is None else node_name(pod)

    def _daemon(self, space: str, name: str, number: int) -> Json | None:
        """The pod on a machine, of a NodeSet in DaemonSet mode."""
        nodeset = worker_sets.find(self.server, space, name)
        if nodeset is None or not is_daemon(nodeset):
            return None
        machine = f"machine-{number}"
        return next((p for p in workers(self.server, nodeset) if machine_of(p) == machine), None)

    # Users

    def declare(self, replicas: int) -> None:
        """Make the objects of all clusters."""
        if self.layout.left:
            for space in self.spaces:
                leave(self.server, space, replicas)
                for plural, name in (("accountings", RECORDS), ("tokens", USER)):
                    found = self.find(f"slinky.slurm.net/{plural}", name, space)
                    self._specs[space, plural] = dict(found["spec"]) if found is not None else {}
            return
        for space in self.spaces:
            self.declare_controller(space)
            self.declare_restapi(space)
            if self.layout.login:
                self.declare_login(space)
            if self.layout.accounted:
                self._password(space)
                self.declare_accounting(space)
            if self.layout.tokens:
                self.declare_token(space)
        for number in range(len(self.places)):
            self.declare_nodeset(replicas, number)

    def take_over(self) -> None:
        """What was left stays from now on, but for a reason."""
        for space in self.spaces:
            activate(self.server, space)
        self.restarts.left = True
        self.left = LeftPromises(self.server, self.promises.broken)

    def declared(self) -> bytes:
        """All that users declare now, as JSON for `declare_all`.

        Without what only pods and the content of Secrets depend on: these are looked at for
        themselves, and what else there is need not be worked out for each of it.
        """
        found = [
            (space, plural, kind, obj["metadata"]["name"], self._usual(plural, obj["spec"]))
            for space in self.spaces
            for plural, kind in self.kinds
            for obj in self.server.objects(resource_of(plural), space)
        ]
        return msgspec.json.encode((self.layout, found), order="deterministic")

    def declare_all(self, found: list[Declared]) -> None:
        """Declare what is declared in another world."""
        for space in self.spaces:
            self.prepare(space)
        for space, plural, kind, name, spec in found:
            if plural == "loginsets":
                self.host_keys(space)
            if plural == "accountings":
                self._password(space)
            self.make(space, plural, kind, name, spec)

    def declare_controller(self, space: str) -> None:
        """Make a Controller."""
        spec: Json = {"accountingRef": {"name": RECORDS}} if self.layout.accounted else {}
        kind = EXTERNAL if self.layout.external else PERSISTENT
        self.make(space, "controllers", "Controller", "slurm", kind | spec)

    def _begin_outside(self, space: str) -> None:
        """A slurmctld that runs somewhere else, with the keys that it was given."""
        slurm = self.slurms[space]
        slurm.external = True
        slurm.start()
        names = [name for where, name in self.places if where == space]
        lines = [f"NodeSet={one} Feature={one}\nPartitionName={one} Nodes={one}" for one in names]
        slurm.ctld.read("\n".join(lines))
        for name, key in ((SLURM_SECRET, "slurm.key"), (JWT_SECRET, JWT_KEY)):
            data = {key: base64.b64encode(key.encode()).decode()}
            body: Json = {"kind": "Secret", "metadata": {"name": name}, "data": data}
            self.ask("POST", f"/api/v1/namespaces/{space}/secrets", body)

    def declare_accounting(self, space: str) -> None:
        """Make an Accounting, as it was declared last."""
        spec = self._specs.setdefault((space, "accountings"), dict(ACCOUNTING))
        self.make(space, "accountings", "Accounting", RECORDS, spec)

    def declare_token(self, space: str) -> None:
        """Make a Token, as it was declared last."""
        spec = self._specs.setdefault((space, "tokens"), dict(TOKEN))
        self.make(space, "tokens", "Token", USER, spec)

    def edit(self, space: str, plural: str, name: str, spec: Json) -> None:
        """`kubectl patch` of an Accounting or a Token, also of the one that is made next."""
        self._specs[space, plural] = self._specs.get((space, plural), {}) | spec
        self.ask("PATCH", path_of(space, plural, name), {"spec": spec})

    def declare_nodeset(self, replicas: int, number: int = 0) -> None:
        """Make a NodeSet, or a Crew."""
        space, name = self.place(number)
        if self.layout.tiny:
            crew: Json = {"cluster": "slurm", "replicas": replicas}
            self.make(space, "crews", "Crew", name, crew)
            self.make_edits(space, name)
            return
        spec: Json = {**REF, "replicas": replicas, "partition": {"enabled": True}, **DAEMON}
        if (space, name) in self.layout.daemons:
            spec["scalingMode"] = MODE
        if self.layout.claims is not None:
            scaled, deleted = self.layout.claims
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "cache"}, "spec": CLAIM}]
            spec[worker_sets.POLICY] = {"whenScaled": scaled, "whenDeleted": deleted}
        if self.layout.pinned:
            spec["pinToNode"] = True
        self.make(space, "nodesets", "NodeSet", name, spec)
        self.make_edits(space, name)

    def make_edits(self, space: str, name: str) -> None:
        """Change what was made, as users wanted to change the one before it."""
        for one in self._edits.pop((space, name), ()):
            self.ask("PATCH", path_of(space, self.plural, name), one)

    def edit_nodeset(self, number: int, body: Json) -> None:
        """`kubectl patch`, of the next one when this one is going or gone.

        How long it takes to go depends on what goes wrong; what is declared in the end must not.
        """
        space, name = self.place(number)
        body = self._edit(body)
        found = worker_sets.find(self.server, space, name)
        if found is None or "deletionTimestamp" in found["metadata"]:
            self._edits.setdefault((space, name), []).append(body)
        else:
            self.ask("PATCH", path_of(space, self.plural, name), body)

    def declare_restapi(self, space: str) -> None:
        """Make a RestApi."""
        self.make(space, "restapis", "RestApi", "slurm", REF)

    def declare_login(self, space: str) -> None:
        """Make a LoginSet."""
        self.host_keys(space)
        self.make(space, "loginsets", "LoginSet", "login", REF)

    def scale(self, replicas: int, number: int = 0) -> None:
        """`kubectl scale`."""
        space, name = self.place(number)
        self.ask("PATCH", path_of(space, self.plural, name), self._size(replicas))

    def ask(self, method: str, path: str, body: Json) -> Response:
        """What `kubectl` asks; it may be refused."""
        return self.server.ask(method, path, body, user="kubectl")

    def find(self, resource: str, name: str, space: str = SPACE) -> Json | None:
        """An object."""
        return self.server.find(resource, space, name)

    def of_kind(self, plural: str, name: str, space: str) -> Json | None:
        """An object of one of our kinds."""
        return self.find(resource_of(plural), name, space)

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Do that in so many seconds, or when the plan ends if that is sooner."""
        timer = self._loop.call_later(seconds, self._due, callback)
        self._coming[callback] = timer

    def _due(self, callback: Callable[[], None]) -> None:
        if (timer := self._coming.pop(callback, None)) is not None:
            timer.cancel()
            callback()

    def make(self, space: str, plural: str, kind: str, name: str, spec: Json) -> None:
        """`kubectl create` of one of our kinds."""
        body = {"kind": kind, "metadata": {"name": name}, "spec": spec}
        self.ask("POST", path_of(space, plural), body)

    def host_keys(self, space: str) -> None:
        """The user's Secret with ssh host keys."""
        # Generated ones take a second of true time each.
        secret = {"kind": "Secret", "metadata": {"name": "login-ssh-host-keys"}}
        self.ask("POST", f"/api/v1/namespaces/{space}/secrets", {**secret, "data": HOST_KEYS})

    def _password(self, space: str) -> None:
        meta = {"name": DATABASE}
        body = {"kind": "Secret", "metadata": meta, "data": {"password": "c2VjcmV0"}}
        self.ask("POST", f"/api/v1/namespaces/{space}/secrets", body)

    # What goes wrong

    async def _dialled(self, host: str, port: int, _: Check) -> None:
        """A connection from the operator to a host outside."""
        if (error := self.closed.get((host, port))) is not None:
            raise error

    def slurm_fault(self, fault: Fault, space: str) -> None:
        """Have a cluster's slurmrestd misbehave, for all who ask."""
        self._faults[space] = fault
        for process in self.processes:
            process.lines[space].rest.fault = fault

    def slow_answers(self, delay: float, space: str) -> None:
        """Have a cluster's slurmrestd take so many seconds for each answer, for all who ask."""
        self._delays[space] = delay
        for process in self.processes:
            process.lines[space].rest.waits_s = delay

    def heal(self) -> None:
        """End all that goes wrong, and all jobs."""
        self.healed = True
        for callback in list(self._coming):
            self._due(callback)
        for space in self.spaces:
            self.slurm_fault(Fault.NONE, space)
            self.slow_answers(0.0, space)
        self.clock.set_right()
        for process in self.processes:
            process.connection.troubles.clear()
            process.crash_after = None
        for slurm in self.slurms.values():
            for job in list(slurm.ctld.jobs.values()):
                slurm.finish(job)

    # The operator

    def operator(self, *, leased: bool | None = None, identity: str = "") -> Process:
        """Start a process of it; without a Lease when `leased` says so, whatever the layout."""
        self._started += 1
        identity = identity or f"operator-{self._started}"
        lines, dice = self.lines(), self.dice
        process = Process(
            self.api_server,
            lines,
            self.clock,
            identity=identity,
            leased=self.layout.leased if leased is None else leased,
            latency=lambda: dice.between(0.001, 0.02),
            lag=lambda: dice.between(0.0, 0.1),
            acts=self.promises.acts,
            wrote=self._wrote,
            dial=self._dialled,
            tiny=self.layout.tiny,
            names=self.api,
            together=self.layout.together,
            hesitation=self._hesitation,
        )
        for space in self.spaces:
            lines[space].rest.fault = self._faults[space]
            lines[space].rest.waits_s = self._delays[space]
        self.processes.append(process)
        process.start(self._ended)
        return process

    def _hesitation(self) -> float:
        """What a reading of the operator's clock takes, in seconds; usually nothing."""
        if not self.longest_hesitation or self._hesitates.random() >= HESITATES:
            return 0.0
        return self._hesitates.between(0.0, self.longest_hesitation)

    async def crash(self, process: Process) -> None:
        """End a process at once."""
        if process in self.processes:
            self.processes.remove(process)
            await process.crash()

    def _ended(self, process: Process) -> None:
        """A process ended by itself, as it must when it has lost its Lease: it is started again."""
        if process not in self.processes:
            return
        if not process.deposed:
            self.promises.broken.append(f"the operator died: {process.failure!r}")
        self.processes.remove(process)
        self._loop.call_later(RESTART_S, lambda: self.operator(identity=process.identity))

    def _wrote(self, request: Request, response: Response) -> None:
        address = parse(request.path)
        resource = f"{address.resource}/{address.sub}" if address.sub else address.resource
        self.rights.add((VERBS[request.method], resource))
        if response.status == 201:
            # An apply needs both rights where there is nothing yet.
            self.rights.add(("create", resource))
        if address.resource == "coordination.k8s.io/leases":
            return
        path = request.path.partition("/events/")[0]
        # The names of events are random, and nothing else is.
        self.writes.append((self._loop.time(), f"{request.method} {path}"))
        if address.resource in QUIET:
            return
        name = address.name
        if request.method == "POST":
            body: Json = msgspec.json.decode(request.body)
            name = body["metadata"].get("name", name)
        if request.method in {"POST", "DELETE"} or response.status == 201:
            verb = "delete" if request.method == "DELETE" else "create"
            self.summary[f"{verb} {address.resource} {address.namespace}/{name}"] += 1
            if verb == "create" and address.resource in MADE:
                self.made[f"{address.resource} {address.namespace}/{name}"] += 1

    def _removed(self, change: Change) -> None:
        if change.new is None and change.resource in MADE:
            self.made[f"{change.resource} {'/'.join(change.key)}"] -= 1

    def _jwt_key(self, space: str) -> bytes | None:
        for secret in self.server.objects("/secrets", space):
            if JWT_KEY in secret.get("data", ()):
                return base64.b64decode(secret["data"][JWT_KEY])
        return b""
