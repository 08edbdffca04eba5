"""The world of plans with SlurmClusters: jails, their Jobs and sconfigcontrollers, and users."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

from fault_plans import nebius_specs as specs
from fault_plans import worker_sets
from fault_plans.actions.left_slurmcluster import LEFT_NODESET, LeftPromises, leave
from fault_plans.actions.power import PowerSaving
from fault_plans.actions.reboots import Reboots
from fault_plans.actions.replacements import Replacements
from fault_plans.api_names import CLUSTER, NEIGHBOURS, OF_NEBIUS
from fault_plans.neighbours import neighbours
from fault_plans.plan import Layout
from fault_plans.promises.nebius_objects import ObjectPromises
from fault_plans.server_view import ServerView, named_after
from fault_plans.specs import HOST_KEYS
from fault_plans.world import NODESET, SPACE, World
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.apiserver import ApiServer
from penstock.simulation.kubelet.config_writer import ConfigWriter
from penstock.simulation.kubelet.jail import Jail
from penstock.simulation.kubelet.jobs import Jobs
from penstock.simulation.kubelet.workload_controllers import KRUISE
from penstock.simulation.slurm.cluster import SlurmLine
from penstock.translate.nebius.worker_set import marks


class NebiusWorld(World):
    """One SlurmCluster in each namespace, with NodeSets or workers of its own."""

    api = OF_NEBIUS
    shared_pvcs = frozenset(specs.PVCS)
    unsettled = frozenset({names.partition_record(CLUSTER)})
    kinds = ((worker_sets.OF_CLUSTER, "SlurmCluster"), (worker_sets.OF_NEBIUS, "NodeSet"))

    def __init__(self, seed: int, layout: Layout) -> None:
        super().__init__(seed, layout)
        self.jails = {space: Jail(self._loop.time) for space in self.spaces}
        mounts, between = self.machines.mounts, self.dice.between
        mounts.jails.update(self.jails)
        self.jobs = Jobs(self.server, self.jails, between, self.machines.silent)
        self.writer = ConfigWriter(self.server, self.jails, between, mounts.jail_changed)
        self.objects = ObjectPromises(self.server, self.promises.broken)
        self.reboots = Reboots(self.server, self.slurms, self.promises.broken, between)
        self.left_cluster: LeftPromises | None = None
        self.at_end: list[Callable[[], None]] = []
        """What users do once nothing goes wrong any more."""
        self.background: list[asyncio.Task[None]] = []
        self.checks_run = 0
        self.replacements: Replacements | None = None
        self.power: dict[str, PowerSaving] = {}
        """By namespace, where jobs power nodes up."""
        self.neighbours = neighbours(self.api_server, layout, self.promises.broken, self.dice)
        """Further clusters of the same namespace."""

    @property
    def is_older(self) -> bool:
        """Whether SlurmClusters have the older shape."""
        return self.layout.nebius == specs.OLDER

    def _view(self, server: ApiServer) -> ApiServer:
        of_others = named_after(*NEIGHBOURS)
        return (
            ServerView(server, lambda name: not of_others(name)) if self.layout.together else server
        )

    def lines(self) -> dict[str, SlurmLine]:
        """New ways to all Slurm clusters."""
        return super().lines() | {one.name: one.line() for one in self.neighbours}

    def _places(self, layout: Layout) -> tuple[tuple[str, str], ...]:
        if layout.nebius == specs.CURRENT:
            return ((SPACE, LEFT_NODESET if layout.left else NODESET), *layout.others)
        spaces = dict.fromkeys((SPACE, *(space for space, _ in layout.others)))
        return tuple((space, CLUSTER) for space in spaces)

    def _plural(self, layout: Layout) -> str:
        return worker_sets.OF_CLUSTER if layout.nebius == specs.OLDER else worker_sets.OF_NEBIUS

    def _marks(self, layout: Layout) -> WorkerMarks:
        return marks("SlurmCluster" if layout.nebius == specs.OLDER else "NodeSet")

    def _edit(self, body: Json) -> Json:
        reference: str = body["spec"]["slurmd"]["image"]
        if self.is_older:
            return _of_workers({"slurmd": {"image": reference}})
        return {"spec": {"slurmd": {"image": specs.image(reference)}}}

    def _size(self, replicas: int) -> Json:
        return _of_workers({"size": replicas}) if self.is_older else super()._size(replicas)

    def _usual(self, plural: str, spec: Json) -> Json:
        if plural == worker_sets.OF_NEBIUS:
            # Ephemeral nodes are in slurm.conf, each by its name.
            return spec if spec.get("ephemeralNodes") else {**spec, "replicas": 1}
        if not self.is_older:
            return spec
        nodes = spec["slurmNodes"]
        return {**spec, "slurmNodes": {**nodes, "worker": {**nodes["worker"], "size": 1}}}

    def in_urls(self, plural: str) -> str:
        """The plural in URLs of the kind that is what one of Slinky's is."""
        of = {"nodesets": worker_sets.in_urls(self.plural), "controllers": "slurmclusters"}
        return of.get(plural, plural)

    def prepare(self, space: str) -> None:
        """Make the user's PVCs and ssh host keys."""
        for name in specs.PVCS:
            body = {"kind": "PersistentVolumeClaim", "metadata": {"name": name}}
            self.ask("POST", f"/api/v1/namespaces/{space}/persistentvolumeclaims", body)
        secret = {"kind": "Secret", "metadata": {"name": specs.HOST_KEYS}, "data": HOST_KEYS}
        self.ask("POST", f"/api/v1/namespaces/{space}/secrets", secret)
        self._password(space)

    def declare(self, replicas: int) -> None:
        """Make the objects of all clusters."""
        if self.layout.left:
            for space in self.spaces:
                leave(self, space, replicas)
            return
        for space in self.spaces:
            self.prepare(space)
            if not self.is_older:
                self.declare_cluster(space)
        for number in range(len(self.places)):
            self.declare_nodeset(replicas, number)
        for one in self.neighbours:
            one.declare()

    def take_over(self) -> None:
        """What was left stays from now on, but for a reason."""
        if self.layout.no_kruise:
            self.workloads.absent.add(KRUISE)
        self.restarts.left = True
        self.left_cluster = LeftPromises(self.server, self.promises.broken)

    def declare_cluster(self, space: str, replicas: int = 0) -> None:
        """Make a SlurmCluster."""
        spec = specs.slurm_cluster(
            self.layout.nebius,
            replicas,
            has_pvcs=self.layout.claims is not None,
            accounted=self.layout.accounted,
        )
        self.make(space, worker_sets.OF_CLUSTER, "SlurmCluster", CLUSTER, spec)

    def declare_nodeset(self, replicas: int, number: int = 0) -> None:
        """Make what declares workers."""
        space, name = self.place(number)
        if self.is_older:
            self.declare_cluster(space, replicas)
        else:
            spec = specs.node_set(replicas, pvcs=self.layout.claims)
            self.make(space, self.plural, "NodeSet", name, spec)
        self.make_edits(space, name)

    def edit_cluster(self, space: str, spec: Json) -> None:
        """`kubectl patch` of a SlurmCluster; nothing while there is none."""
        path = f"{worker_sets.group_path(worker_sets.OF_CLUSTER)}/namespaces/{space}"
        self.ask("PATCH", f"{path}/slurmclusters/{CLUSTER}", {"spec": spec})

    def cluster(self, space: str) -> Json | None:
        """The SlurmCluster of a namespace."""
        return self.find(worker_sets.CLUSTERS, CLUSTER, space)

    @property
    def prefix(self) -> str:
        """Of the names of StatefulSets and Deployments."""
        return "" if self.is_older else f"{CLUSTER}-"

    def heal(self) -> None:
        """End all that goes wrong."""
        super().heal()
        self.jobs.failing.clear()
        for one in self.at_end:
            one()
        self.writer.paused.clear()
        for space in self.spaces:
            self.writer.schedule(space)

    def _jwt_key(self, space: str) -> bytes | None:
        secret = self.find("/secrets", names.jwt_secret(CLUSTER), space)
        return base64.b64decode(secret["data"][names.JWT_KEY]) if secret is not None else b""


def _of_workers(changes: Json) -> Json:
    return {"spec": {"slurmNodes": {"worker": changes}}}
