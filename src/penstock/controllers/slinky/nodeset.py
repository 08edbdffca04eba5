"""NodeSet: the worker pods of one cluster and their Slurm nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from penstock.api.cluster.marks import ROLLBACK
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    Node,
    PersistentVolumeClaim,
    Pod,
)
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.controller import CONTROLLERS
from penstock.api.slinky.nodeset import NODESETS, NodeSet
from penstock.controllers.advice.overridden_fields import OverriddenFieldDetector
from penstock.controllers.auth.rejected_key import RejectedKeyDetector
from penstock.controllers.nodeset.actor import Actor
from penstock.controllers.observed.members import (
    NODESETS_BY_CLUSTER,
    members_of,
    nodesets_on_node,
    nodesets_with_external_partition,
    nodesets_with_partition,
    worker_of,
)
from penstock.controllers.observed.references import (
    controllers_using_config_map,
    controllers_using_secret,
    nodesets_using_sssd_conf,
)
from penstock.controllers.partition.context import ClusterContext
from penstock.controllers.rollout.revision_history import Same, keep_revisions
from penstock.controllers.rollout.rollback import ROLLED_BACK, Rollbacks
from penstock.controllers.runtime.reconciler import REFUSED, StatusWriter
from penstock.controllers.runtime.report import invalid
from penstock.controllers.runtime.signals import (
    PARTITION_DRIFT,
    PARTITIONS_APPLIED,
    PARTITIONS_POLLED,
    SLURM,
)
from penstock.controllers.runtime.slurm_connections import (
    UNCONNECTED,
    SlurmConnection,
)
from penstock.controllers.runtime.watching import (
    indexed,
    own_key,
    owner_of,
    owners_of,
    spec_changed,
)
from penstock.controllers.slinky.prerequisites import require_cluster
from penstock.controllers.slurm_node.drift import NodeDrifts
from penstock.decide import scale as scale_in_order
from penstock.decide.advice import cgroups, container_rights, gpus, host_network, pod_security
from penstock.decide.cluster import external as outside
from penstock.decide.drift import choice
from penstock.decide.drift import findings as drift_finding
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.partition.conditions import refused as refused_partition
from penstock.decide.plan_cache import PlanCache
from penstock.decide.rollout import maintenance
from penstock.decide.slurm_node import default_topology, slurmd_version
from penstock.decide.slurm_node import parameters as live_conf
from penstock.kube import Expectations, NotFoundError, Result
from penstock.kube.runtime.declaration import Signal, Watch
from penstock.model.worker_set import WorkerSet
from penstock.render.config.content import cgroup_conf, mounted
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.slurm_conf import nodeset_lines
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import pod_spec as worker_spec
from penstock.render.slinky.nodeset import worker_pod as worker
from penstock.slurm.conf.document import Document
from penstock.slurm.known import Unknown
from penstock.slurm.versions import RESERVATION_CALLS_SINCE
from penstock.translate.slinky.worker_set import external_slurm, nodeset_status, worker_set

LOOK_AGAIN_S = 3.0
"""Pause before what Slurm did not let us do is decided anew."""
AT_ONCE_S = 0.02
"""Pause before a NodeSet that changed in the middle of a look is looked at again."""

_LISTENS = "slurmd listens on 6818, and on free ports for jobs,"


def machine_matters(old: Node | None, new: Node | None) -> bool:
    """Whether a change of a Kubernetes Node can change what is decided about its pods.

    Nodes are written every few minutes by their kubelets; most of it means nothing here.
    """
    if old is None or new is None:
        return True
    return (
        old.spec != new.spec
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.labels != new.metadata.labels
        or _statuses(old) != _statuses(new)
    )


def _statuses(node: Node) -> list[tuple[str, str, str | None]]:
    return [(one.type, one.status, one.reason) for one in node.status.conditions or ()]


class NodeSetReconciler(StatusWriter[NodeSet]):
    """Brings NodeSets about, and takes them down again without losing a job."""

    name = "nodeset"
    resource = NODESETS
    watches = (
        Watch(NODESETS, own_key),
        Watch(CONTROLLERS, indexed(NODESETS_BY_CLUSTER, own_key), spec_changed),
        Watch(PODS, owner_of(NODESETS)),
        Watch(NODES, nodesets_on_node, machine_matters),
        Watch(CLAIMS, worker_of),
        *(Watch(one, owners_of(NODESETS)) for one in (SERVICES, BUDGETS)),
        Watch(SECRETS, indexed(NODESETS_BY_CLUSTER, controllers_using_secret)),
        Watch(SECRETS, nodesets_using_sssd_conf),
        # gres.conf is compared with the spec of a NodeSet.
        Watch(CONFIG_MAPS, indexed(NODESETS_BY_CLUSTER, controllers_using_config_map)),
    )
    signals = (
        Signal(SLURM, members_of(NODESETS_BY_CLUSTER)),
        Signal(PARTITIONS_APPLIED, nodesets_with_partition),
        Signal(PARTITION_DRIFT, nodesets_with_partition),
        Signal(PARTITIONS_POLLED, nodesets_with_external_partition),
    )

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(context)
        OverriddenFieldDetector(context, self.resource)
        tools, events = context, self.events
        self._links = context.connections
        self._drift = context.drift
        own = self.lifetimes
        self._written = own.owner(Expectations[Pod](tools.world.pods, tools.client.clock))
        self._quiet = own.by_key(dict[str, PlanCache]())
        self._actor = own.owner(Actor(tools, events, self._written))
        self._nodes = own.owner(NodeDrifts(tools.client, events))
        self._shares = own.by_key(set[str]())
        """NodeSets whose cgroup.conf machines outside have as well."""
        self._rollbacks = own.owner(Rollbacks(tools, events))
        self._keys = own.owner(RejectedKeyDetector(tools))
        own.add(lambda key, _: self._links.need_reservations(key, needs=False))

    async def reconcile(self, key: str) -> Result:
        """Look at one NodeSet; a deleted one is drained before it goes."""
        nodeset = self.world.nodesets.get(key)
        self.lifetimes.observe(key, nodeset)
        if nodeset is None:
            return Result()
        if not self._written.satisfied(key):
            # The cache does not show our own writes yet; acting on it could do them twice.
            return Result(requeue_after=1.0)
        workers = worker_set(nodeset)
        wrong = invalid(nodeset)
        cluster = require_cluster(self.world, nodeset)
        self._links.need_reservations(
            key, needs=maintenance.needs_reservations(workers), of=nodeset
        )
        if isinstance(cluster, ClusterInputs) and self._seen_before(nodeset, workers):
            # A process that has just started would tell that Slurm is silent, and take it back.
            return Result(requeue_after=1.0)
        if await self._rollbacks.look(nodeset, workers):
            return Result(requeue_after=1.0)
        hold = _hold(wrong, cluster, self.world.sssd_of(nodeset))
        same = Same()
        there = isinstance(cluster, ClusterInputs) or self.world.pods_of.get(nodeset.metadata.uid)
        # A NodeSet that waits for its first pod makes nothing yet.
        if there and not nodeset.metadata.deleting:
            fixed = self._actor.refusals.gres(key)
            same = await keep_revisions(self.client, self.world, nodeset, workers, fixed)
        if isinstance(cluster, ClusterInputs) and not nodeset.metadata.deleting and not wrong:
            await self._shared(nodeset, cluster)
        if self.world.has_newer(nodeset):
            # What was written took its time; what was wanted then is not decided on.
            return Result(requeue_after=AT_ONCE_S)
        link = self._links.of(nodeset)
        view = self._view(nodeset, workers, link, hold, same)
        decided = plan(view, self._quiet.setdefault(key, PlanCache()))
        unready = [pod for pod in view.pods if not pod.ready]
        findings = [*wrong, *decided.findings, *self._rollbacks.findings(nodeset)]
        findings += scale_in_order.cost_findings(workers.marks, view.pods)
        refused: Exception | None = None
        done = True
        try:
            done = await self._actor.act(
                nodeset,
                workers,
                cluster if isinstance(cluster, ClusterInputs) else None,
                decided.actions,
                link,
                abandoned=view.is_orphaned,
            )
            if isinstance(cluster, ClusterInputs) and not nodeset.metadata.deleting and not wrong:
                findings += self._refused_partition(nodeset, cluster)
                findings += await self._drifted(nodeset, view, cluster, link)
                findings += _outside(nodeset, cluster, link)
                slurmd = worker_spec.container(cluster, nodeset)
                findings += _container_rights(nodeset, slurmd)
                findings += _gpus(nodeset, cluster, slurmd)
                findings += _slurmd_version(view, cluster, slurmd)
                findings += _topology(view, cluster)
                findings += host_network.findings(
                    nodeset.spec.template.spec, _LISTENS, nodeset.status.conditions
                )
                findings += self._cgroups(nodeset, cluster, link)
                if not cluster.controller.spec.external:
                    findings += await self._keys.findings(key, cluster, unready)
        except REFUSED as error:
            refused = error
            other = Finding(False, "Refused", f"The API server refused it: {error}")
            findings.insert(0, pod_security.finding(str(error)) or other)
        await self._tell(nodeset, decided, findings)
        if refused is not None:
            raise refused
        waits = [
            decided.wake_after,
            None if done else LOOK_AGAIN_S,
            self._actor.registrations.requeue_after(key),
            self._nodes.requeue_after(nodeset),
            self._keys.requeue_after(key, unready),
        ]
        return Result(requeue_after=min(filter(None, waits), default=None))

    async def _drifted(
        self,
        nodeset: NodeSet,
        view: WorkerSetView,
        cluster: ClusterInputs,
        link: SlurmConnection | None,
    ) -> list[Finding]:
        """What was changed in Slurm of its nodes and of its own partition."""
        chosen, wrong = choice(nodeset.metadata.annotations)
        of_nodes = await self._nodes.resolve(nodeset, view, link, chosen)
        own = nodeset.spec.partition is not None and nodeset.spec.partition.enabled
        of_partition = await self._drift.resolve(nodeset, cluster, chosen) if own else []
        words = None
        if of_nodes is not None and of_partition is not None:
            words = [*of_partition, *of_nodes]
        return [*wrong, *drift_finding(words, nodeset.status.conditions)]

    def _refused_partition(self, nodeset: NodeSet, cluster: ClusterInputs) -> list[Finding]:
        """That slurmctld rejects its own partition, in slurmctld's words."""
        own = nodeset.spec.partition is not None and nodeset.spec.partition.enabled
        rejected = self._drift.rejected(cluster.controller.metadata.key)
        words = rejected.get(names.partition_name(nodeset), "")
        return [refused_partition(words)] if own and words else []

    def _cgroups(
        self, nodeset: NodeSet, cluster: ClusterInputs, link: SlurmConnection | None
    ) -> list[Finding]:
        """A warning about the cgroup.conf that pods and machines have in common."""
        controller, key = cluster.controller, nodeset.metadata.key
        if controller.spec.external:
            nodes = link.mirror.snapshot.nodes if link is not None else UNCONNECTED
            if isinstance(nodes, Unknown):
                # What was told of it stays.
                self._shares.add(key)
                return []
            beside = self.world.nodesets_of.get(controller.metadata.key)
            pods = (pod for one in beside for pod in self.world.pods_of.get(one.metadata.uid))
            found = cgroups.outside(cgroups.machines(nodes.value, pods))
        else:
            found = cgroups.shared(controller.spec.extra_conf, cgroup_conf(cluster))
        (self._shares.discard if found is None else self._shares.add)(key)
        return [found] if found is not None else []

    def _seen_before(self, nodeset: NodeSet, workers: WorkerSet) -> bool:
        """Whether its status is from a process that had asked Slurm, while this one has not."""
        asked = self._links.has_answered(
            nodeset, reservations=maintenance.needs_reservations(workers)
        )
        return bool(nodeset.status.observed_generation) and not asked

    def outdated(self, obj: NodeSet) -> frozenset[str]:
        """What is told of something that is no longer declared goes with it."""
        goes = {
            cgroups.SHARED: obj.metadata.key not in self._shares,
            maintenance.CREATED: not maintenance.scheduled(worker_set(obj)),
            ROLLED_BACK: ROLLBACK not in obj.metadata.annotations,
        }
        return frozenset(name for name, gone in goes.items() if gone)

    async def _tell(self, nodeset: NodeSet, decided: Plan, findings: list[Finding]) -> None:
        await self.write(nodeset, findings, nodeset_status(nodeset.status, decided.status))

    async def _shared(self, nodeset: NodeSet, cluster: ClusterInputs) -> None:
        """What the pods need beside themselves: Service, budget, files."""
        shared = worker.shared_objects(cluster)
        for one in shared:
            await self._other_way_of_counting(one)
        await self.objects.apply(nodeset, self.events, shared)
        own = worker.objects(nodeset)
        await self.objects.apply(nodeset, self.events, own)
        if not own:
            name = names.worker_ssh_config(nodeset)
            await self.objects.remove(nodeset, self.events, "ConfigMap", name)

    async def _other_way_of_counting(self, manifest: Json) -> None:
        """Take the field out of a budget that is not asked for, whoever has written it.

        It may have one of the two, and which one changes with the scaling modes. That of
        slurm-operator is not ours to take back by an apply.
        """
        meta = manifest["metadata"]
        live = self.world.budgets.get(f"{meta['namespace']}/{meta['name']}")
        if manifest["kind"] != "PodDisruptionBudget" or live is None or live.metadata.deleting:
            return
        wanted: Json = manifest["spec"]
        other = {"minAvailable", "maxUnavailable"} & live.spec.keys() - wanted.keys()
        if not other:
            return
        spec = {**wanted, **dict.fromkeys(other)}
        body = {"metadata": {"uid": live.metadata.uid}, "spec": spec}
        with contextlib.suppress(NotFoundError):
            await self.client.patch(BUDGETS, meta["namespace"], meta["name"], body)

    def _view(
        self,
        nodeset: NodeSet,
        workers: WorkerSet,
        link: SlurmConnection | None,
        hold: Finding | None,
        same: Same,
    ) -> WorkerSetView:
        meta = nodeset.metadata
        pods = self.world.pods_of.get(meta.uid)
        snapshot = link.mirror.snapshot if link is not None else None
        found = self._machines(nodeset, pods)
        return WorkerSetView(
            workers=workers,
            controller=self._controller_state(nodeset),
            pods=pods,
            nodes=snapshot.nodes if snapshot is not None else UNCONNECTED,
            jobs=snapshot.jobs if snapshot is not None else UNCONNECTED,
            now=self.client.clock.time(),
            revision=worker.revision(nodeset).hash,
            kubernetes_nodes=found,
            pvcs=self._claims(nodeset),
            others=self.world.conflicting_pods(nodeset),
            equal_revisions=same.hashes,
            parameters_by_revision=same.confs,
            creation_blocked=hold,
            propagated_conditions=self.world.settings.propagated_node_conditions,
            reservations=link.reservations.records if link is not None else UNCONNECTED,
            refused_reservation=self._actor.reservations.refused(meta.key),
            cannot_register=self._actor.registrations.unable(meta.key),
            external=external_slurm(self._links.external(nodeset)),
            no_reservations=_no_reservations(link),
            refused_topologies=self._actor.refusals.of(meta.key, pods),
        )

    def _claims(self, nodeset: NodeSet) -> dict[str, PersistentVolumeClaim]:
        if not nodeset.spec.volume_claim_templates:
            return {}
        found = self.world.claims_of.get(nodeset.metadata.key)
        return {claim.metadata.name: claim for claim in found}

    def _machines(self, nodeset: NodeSet, pods: Iterable[Pod]) -> dict[str, Node]:
        """Those that the decision looks at: in DaemonSet mode all there are."""
        if nodeset.spec.scaling_mode == "DaemonSet":
            return {node.metadata.name: node for node in self.world.nodes}
        names_ = {pod.spec.node_name or "" for pod in pods}
        names_ |= set(nodeset.status.ordinal_to_node.values())
        found = ((name, self.world.nodes.get(name)) for name in names_)
        return {name: node for name, node in found if node is not None}

    def _controller_state(self, nodeset: NodeSet) -> ControllerState:
        controller = self.world.controller_of(nodeset)
        if controller is None:
            return ControllerState.ABSENT
        if controller.metadata.deleting:
            return ControllerState.DELETING
        return ControllerState.PRESENT


def _no_reservations(link: SlurmConnection | None) -> str:
    client = link.client if link is not None else None
    return client.lacks(RESERVATION_CALLS_SINCE) if client is not None else ""


def _outside(
    nodeset: NodeSet, cluster: ClusterInputs, link: SlurmConnection | None
) -> list[Finding]:
    """What is to be told of its own partition when slurm.conf is not written here."""
    own = nodeset.spec.partition is not None and nodeset.spec.partition.enabled
    if not own or not cluster.controller.spec.external:
        return []
    records = link.partitions.records if link is not None else UNCONNECTED
    return [outside.partition(nodeset, nodeset_lines(nodeset), records)]


def _container_rights(nodeset: NodeSet, slurmd: Json) -> list[Finding]:
    """What containers of jobs lack, by what its workers are declared with."""
    pod = nodeset.spec.template.spec
    found = container_rights.finding(slurmd, pod, nodeset.status.conditions)
    return [found] if found is not None else []


def _slurmd_version(view: WorkerSetView, cluster: ClusterInputs, slurmd: Json) -> list[Finding]:
    """Whether slurmctld and the probes can work with the releases that its slurmds reported."""
    # Nobody reports the release of an external slurmctld.
    slurmctld = None if cluster.controller.spec.external else release.running(cluster)
    found = slurmd_version.finding(slurmctld, view.pods, view.nodes, slurmd)
    return [found] if found is not None else []


def _topology(view: WorkerSetView, cluster: ClusterInputs) -> list[Finding]:
    """Whether a job can use its nodes, by the topology.yaml that is declared here."""
    controller = cluster.controller.spec
    files = {} if controller.external else mounted(cluster, {})
    lines = [line for one in cluster.nodesets for line in nodeset_lines(one)]
    named = [f"Topology={one.spec.topology}" for one in cluster.partitions if one.spec.topology]
    found = default_topology.finding(
        view.workers.marks,
        files,
        (controller.extra_conf, *lines, *named),
        view.pods,
        view.nodes,
        view.kubernetes_nodes,
    )
    return [found] if found is not None else []


def _gpus(nodeset: NodeSet, cluster: ClusterInputs, slurmd: Json) -> list[Finding]:
    """Whether what its workers are given is what Slurm's jobs may ask for."""
    controller = cluster.controller.spec
    conf, here = Document.parse(controller.extra_conf), not controller.external
    gres_conf = mounted(cluster, {}).get("gres.conf") if here else None
    if nodeset.spec.scaling_mode == "DaemonSet" and "nodename" in (gres_conf or "").lower():
        # Its nodes are called as their machines.
        gres_conf = None
    declared = gpus.Declared(
        slurmd=slurmd,
        gres=live_conf.read(nodeset.spec.extra_conf).gres,
        node=names.slurm_node_name(nodeset, 0),
        gres_conf=gres_conf,
        types=(conf.get("GresTypes") or "") if here and not conf.includes() else None,
    )
    found = gpus.finding(declared, nodeset.status.conditions)
    return [found] if found is not None else []


def _hold(wrong: list[Finding], *needed: object) -> Finding | None:
    """Why no pod is made now: what is wrong, or the first thing needed that is not there."""
    return next((one for one in (*wrong, *needed) if isinstance(one, Finding)), None)
