"""Further clusters of a SlurmCluster's namespace, each with its own Slurm, keys, jail and nodes.

Nothing goes wrong for them but what goes wrong for the operator, so whatever happens to the first
cluster must leave their pods and jobs alone.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.api_names import BESIDE, CLUSTER, NEIGHBOURS, SECOND
from fault_plans.kinds import path_of
from fault_plans.plan import Layout
from fault_plans.random_source import Dice
from fault_plans.server_view import ServerView, named_after
from fault_plans.specs import DAEMON, HOST_KEYS, PERSISTENT
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.render.config.content import content_hash
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.event_loop import EPOCH
from penstock.simulation.kubelet.config_writer import ConfigWriter
from penstock.simulation.kubelet.jail import Jail
from penstock.simulation.kubelet.jobs import Jobs
from penstock.simulation.kubelet.kubelet import SimulatedNodes
from penstock.simulation.kubelet.pod_lifecycle import PODS
from penstock.simulation.slurm.cluster import Knowledge, SimulatedSlurm, SlurmLine
from penstock.simulation.slurm.slurmctld import SimulatedJob
from penstock.simulation.slurm.slurmrestd import Answer as RestAnswer
from penstock.slurm.auth.key_files import JWT_KEY
from penstock.slurm.stand_in import stand_ins

SPACE = "slurm"
WORKERS = 2
REFERRED = ("/configmaps", "/secrets", "/services", "/persistentvolumeclaims", PODS)
WRITTEN = (*REFERRED, "apps/statefulsets", "apps/deployments")
"""Resources whose objects name others; those of users do not."""
_WORD = re.compile(r"[a-z0-9][a-z0-9.-]*")
_QUIET_POLL_S = 1.0


class Neighbour:
    """One cluster of two workers and a job on both, once it runs."""

    def __init__(self, name: str, server: ApiServer, broken: list[str], dice: Dice) -> None:
        self.name = name
        self.server = ServerView(server, named_after(name))
        self.broken = broken
        self._loop = asyncio.get_running_loop()
        self.slurm = SimulatedSlurm(lambda: EPOCH + self._loop.time())
        self.machines = SimulatedNodes(
            self.server,
            {SPACE: self.slurm},
            names=(f"{name}-machine-0", f"{name}-machine-1"),
            random_source=dice.between,
        )
        self.is_declared = False
        self.replicas = WORKERS
        self.job: SimulatedJob | None = None
        """A job on all workers that nobody ends while this cluster is as declared."""
        self.server.store.listeners.append(self._changed)

    def declare(self) -> None:
        """Make its objects."""
        self.is_declared = True
        self._declare()
        self._watch()

    def scale(self, replicas: int) -> None:
        """`kubectl scale` of its workers."""
        self._let_go()
        self.replicas = replicas
        body = {"spec": {"replicas": replicas}}
        self._ask("PATCH", path_of(SPACE, self.plural, f"{self.name}-compute"), body)

    def remove(self) -> None:
        """Delete all that declares it."""
        self._let_go()
        self.is_declared = False
        for path in self._declared():
            self._ask("DELETE", path, {})

    def missing(self) -> list[str]:
        """What is not as it was declared."""
        pods = [one for one in self.server.objects(PODS, SPACE) if self._is_worker(one)]
        if not self.is_declared:
            found = [self.server.find(*_found(path)) for path in self._declared()]
            return [f"{one['metadata']['name']} is left" for one in (*found, *pods) if one]
        if any(self.server.find(*_found(path)) is None for path in self._declared()):
            return [f"{self.name} is not there"]
        found = list(self._problems())
        wanted = {f"{self.name}-compute-{number}" for number in range(self.replicas)}
        if {one["metadata"]["name"] for one in pods} != wanted:
            found.append(f"the workers of {self.name} are {len(pods)}")
        if set(self.slurm.ctld.nodes) != wanted:
            found.append(f"the Slurm nodes of {self.name} are {sorted(self.slurm.ctld.nodes)}")
        if not self.slurm.up or not self.slurm.rest_up:
            found.append(f"slurmctld or slurmrestd of {self.name} does not run")
        return found

    def line(self) -> SlurmLine:
        """A way to its Slurm cluster."""
        return SlurmLine(self.slurm, self.jwt_key, self._answered)

    def jwt_key(self) -> bytes | None:
        """The key of its tokens."""
        for secret in self.server.objects("/secrets", SPACE):
            for key in (JWT_KEY, names.JWT_KEY):
                if key in secret.get("data", ()):
                    return base64.b64decode(secret["data"][key])
        return b""

    @property
    def plural(self) -> str:
        """Of the object that declares its workers."""
        return "nodesets"

    def _declare(self) -> None:
        ref: Json = {"controllerRef": {"name": self.name}}
        nodes: Json = {**ref, "replicas": self.replicas, "partition": {"enabled": True}, **DAEMON}
        self._make("controllers", "Controller", self.name, PERSISTENT)
        self._make("restapis", "RestApi", self.name, ref)
        self._make("nodesets", "NodeSet", f"{self.name}-compute", nodes)

    def _declared(self) -> tuple[str, ...]:
        every = (("nodesets", f"{self.name}-compute"), ("restapis", self.name))
        return tuple(path_of(SPACE, *one) for one in (*every, ("controllers", self.name)))

    def _problems(self) -> Iterator[str]:
        for path in self._declared():
            yield from _not_ready(self.server, path)

    def _is_worker(self, pod: Json) -> bool:
        name: str = pod["metadata"]["name"]
        return name.startswith(f"{self.name}-compute-")

    def _make(self, plural: str, kind: str, name: str, spec: Json) -> None:
        body = {"kind": kind, "metadata": {"name": name}, "spec": spec}
        self._ask("POST", path_of(SPACE, plural), body)

    def _ask(self, method: str, path: str, body: Json) -> None:
        self.server.ask(method, path, body, user="kubectl")

    def _let_go(self) -> None:
        if self.job is not None:
            self.slurm.finish(self.job)
            self.job = None

    def _watch(self) -> None:
        """Submit the job once all runs."""
        if not self.is_declared:
            return
        if self.job is None and not self.missing():
            self.job = self.slurm.submit(self.replicas)
        self._loop.call_later(_QUIET_POLL_S, self._watch)

    def _changed(self, change: Change) -> None:
        if change.resource != PODS or self.job is None or change.old is None:
            return
        gone = change.new is None or "deletionTimestamp" in change.new.obj["metadata"]
        name = change.key[1]
        if gone and "populate" not in name:
            self.broken.append(f"pod {name} goes, of a cluster that nobody touched")

    def _answered(self, asked: Any, answer: Any, knew: Knowledge) -> RestAnswer:
        found = cast("RestAnswer", answer(asked))
        nodes = self.slurm.ctld.nodes
        # For a moment there are stand-ins, when a worker that slurmctld forgot is to register.
        own = {*stand_ins(nodes), *(one for one in nodes if one.startswith(self.name))}
        strange = sorted(nodes.keys() - own)
        if strange:
            self.broken.append(f"slurmctld of {self.name} has nodes {strange}")
        return found

    def wrong(self) -> list[str]:
        """What became of its job."""
        found = self.job
        if found is not None and found.state != {"RUNNING"}:
            return [f"the job of {self.name} is {found.state}"]
        return [f"{self.name} lost a job" for _ in self.slurm.lost_jobs]


class NebiusNeighbour(Neighbour):
    """A second SlurmCluster of the namespace, with a NodeSet."""

    def __init__(self, name: str, server: ApiServer, broken: list[str], dice: Dice) -> None:
        super().__init__(name, server, broken, dice)
        self.jail = Jail(self._loop.time)
        jails, mounts = {SPACE: self.jail}, self.machines.mounts
        mounts.jails.update(jails)
        self.jobs = Jobs(self.server, jails, dice.between, self.machines.silent)
        self.writer = ConfigWriter(self.server, jails, dice.between, mounts.jail_changed)
        for pvc in specs.PVCS:
            body = {"kind": "PersistentVolumeClaim", "metadata": {"name": f"{name}-{pvc}"}}
            self._ask("POST", f"/api/v1/namespaces/{SPACE}/persistentvolumeclaims", body)
        meta = {"name": f"{name}-{specs.HOST_KEYS}"}
        secret: Json = {"kind": "Secret", "metadata": meta, "data": HOST_KEYS}
        self._ask("POST", f"/api/v1/namespaces/{SPACE}/secrets", secret)

    @property
    def plural(self) -> str:
        """Of the object that declares its workers."""
        return worker_sets.OF_NEBIUS

    def _declare(self) -> None:
        cluster = self._own(specs.slurm_cluster(specs.CURRENT, 0))
        nodes = self._own(specs.node_set(self.replicas)) | {"clusterName": self.name}
        self._make(worker_sets.OF_CLUSTER, "SlurmCluster", self.name, cluster)
        self._make(worker_sets.OF_NEBIUS, "NodeSet", f"{self.name}-compute", nodes)

    def _own(self, spec: Json) -> Json:
        """The spec with PVCs and Secrets of this cluster."""
        text = msgspec.json.encode(spec).decode()
        for one in (*specs.PVCS, specs.HOST_KEYS):
            text = text.replace(f'"{one}"', f'"{self.name}-{one}"')
        return cast("Json", msgspec.json.decode(text))

    def _declared(self) -> tuple[str, ...]:
        nodes = (worker_sets.OF_NEBIUS, f"{self.name}-compute")
        return tuple(path_of(SPACE, *one) for one in (nodes, (worker_sets.OF_CLUSTER, self.name)))

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        startup = self.server.find("/configmaps", SPACE, names.slurm_configs(self.name))
        data: dict[str, str] = {} if startup is None else startup["data"]
        if self.jail.present() != data:
            yield f"the jail of {self.name} has other files"
        found = self.server.find(worker_sets.CLUSTERS, SPACE, self.name) or {}
        if found.get("status", {}).get("effectiveConfigHash") != content_hash(data):
            yield f"slurmctld of {self.name} has other files"


def neighbours(
    server: ApiServer, layout: Layout, broken: list[str], dice: Dice
) -> tuple[Neighbour, ...]:
    """Those of a layout."""
    if not layout.together:
        return ()
    return (
        NebiusNeighbour(SECOND, server, broken, dice),
        Neighbour(BESIDE, server, broken, dice),
    )


def mixed_up(server: ApiServer) -> list[str]:
    """Objects of one cluster that name an object of another one."""
    every = {one: server.objects(one, SPACE) for one in WRITTEN}
    named: dict[str, set[str]] = {}
    for resource in REFERRED:
        for obj in every[resource]:
            name: str = obj["metadata"]["name"]
            if _owner(name) != CLUSTER or name.startswith(f"{CLUSTER}-"):
                named.setdefault(_owner(name), set()).add(name)
    found: list[str] = []
    for resource, objects in every.items():
        for obj in objects:
            name = obj["metadata"]["name"]
            content = {
                key: value for key, value in obj.items() if key not in ("metadata", "status")
            }
            words = set(_WORD.findall(msgspec.json.encode(content).decode()))
            for owner, others in named.items():
                strange = words & others if owner != _owner(name) else ()
                found += [f"{resource} {name} names {one} of {owner}" for one in sorted(strange)]
    return found


def _owner(name: str) -> str:
    return next((one for one in NEIGHBOURS if named_after(one)(name)), CLUSTER)


def _found(path: str) -> tuple[str, str, str]:
    """Resource, namespace and name of a URL path."""
    group, plural, name = path.split("/")[2], path.split("/")[-2], path.split("/")[-1]
    return f"{group}/{plural}", SPACE, name


def _not_ready(server: ApiServer, path: str) -> Iterator[str]:
    obj = server.find(*_found(path))
    if obj is None:
        return
    status: Json = obj.get("status", {})
    conditions: list[Json] = status.get("conditions", [])
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "absent")
    if ready != "True" or status.get("observedGeneration") != obj["metadata"]["generation"]:
        yield f"{obj['kind']} {obj['metadata']['name']}: Ready is {ready}"
