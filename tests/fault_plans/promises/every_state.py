"""What must hold in every state, checked against the truth of the simulated world."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from math import inf

from fault_plans import worker_sets
from fault_plans.actions import files
from fault_plans.api_names import CLUSTER, OF_SLINKY, ApiNames
from fault_plans.daemonset import Unfit, is_daemon, machine_of, workers
from fault_plans.process import LEASE_SPACE, OPERATOR, listed_at, shown_at
from fault_plans.promises.budget import Budget
from fault_plans.promises.maintenance import ReservedPromises
from penstock.api.cluster.marks import CONFIG_HASH, CONFIG_RESTART
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.active_check import ACTIVE_CHECKS
from penstock.api.nebius.common import GROUP
from penstock.decide.check.reaction import check_of
from penstock.decide.observed.drain_reason import is_own_reason
from penstock.model.node_mark import OUT_OF_SERVICE
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.apiserver import ApiServer, Change
from penstock.simulation.apiserver.connection import sent_at
from penstock.simulation.apiserver.server import COLLECTOR
from penstock.simulation.kubelet.kubelet import NODES, SimulatedNodes
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of, node_name
from penstock.simulation.kubelet.workload_controllers import KINDS, KRUISE
from penstock.simulation.slurm.cluster import Knowledge, SimulatedSlurm
from penstock.simulation.slurm.reconfigure import rejection
from penstock.simulation.slurm.rest_replies import RestRequest
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.slurm.rest.http import Answer

EXPENDABLE = frozenset({"apps/controllerrevisions", "batch/jobs", KRUISE})
"""What the operator may delete besides pods: records, a Job that is declared to go, and those
StatefulSets of OpenKruise whose pods it takes over."""
OF_SLURMDBD = (names.slurmdbd_configs(CLUSTER), names.service(CLUSTER, "accounting"))
"""Secret and Service of slurmdbd of a SlurmCluster."""
LEASES = "coordination.k8s.io/leases"
AT_ONCE_S = 0.1
"""How soon after a fresh answer a request must be sent that relies on it."""
LONG_S = 1.0
"""How long a request takes that is not held up on its way."""
_JOB = re.compile(r": job ([0-9]+) ")
STALE_S = 120.0
"""The oldest view that anybody may act on: a silent watch is given up after 90 s."""


class Promises:
    """Notes in `broken` what the operator did and must never do. `slurms` are by namespace."""

    def __init__(
        self,
        server: ApiServer,
        slurms: Mapping[str, SimulatedSlurm],
        machines: SimulatedNodes,
        marks: WorkerMarks,
        names: ApiNames = OF_SLINKY,
    ) -> None:
        self._marks = marks
        self._names = names
        self.broken: list[str] = []
        self._unfit = Unfit(server)
        self.check_shares: dict[str, int] = {}
        """By namespace how many nodes checks may drain, where there are any."""
        self.budget = Budget(server, slurms, self.broken)
        self._reserved = ReservedPromises(server, slurms, self._unfit, self.broken, STALE_S)
        self._server = server
        self._slurms = slurms
        self._machines = machines
        self._wanted: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        self._templates: dict[str, tuple[float, Json]] = {}
        """By uid of a NodeSet, since when its pods are wanted as they are, and how."""
        self._restarts: defaultdict[str, set[str]] = defaultdict(set)
        """By uid of a pod of slurmctld, hashes of files that take effect by a restart."""
        self._clusters_at: dict[str, float] = {}
        """By uid of a cluster's object, when it was created."""
        self._taken_at: dict[str, float] = {}
        """By uid of a pod, when somebody else than the operator had it deleted."""
        self._out_at: dict[str, float] = {}
        """By Kubernetes node, when it was out of service last."""
        self.hesitation: Callable[[], float] = lambda: 0.0
        """Seconds that the operator may have waited for a core since it decided what it sends."""
        self.replaces: Callable[[Json], None] = partial(_never_replaced, self.broken)
        """Called with each Kubernetes node that the operator deletes."""
        self.has_moved: Callable[[str, str, str], bool] = _never_moved
        """Whether a Slurm node of a namespace left the machine of the drain with this reason."""
        for space, slurm in slurms.items():
            slurm.starting.append(partial(self._starts, space))
        server.deleting.append(self._delete)
        server.store.listeners.append(self._changed)

    def _starts(self, space: str) -> None:
        """Slurmctld never starts where it would read a configuration that it refuses."""
        real = self._server.find("/configmaps", space, self._names.startup)
        words = rejection(real.get("data") or {}) if real is not None else None
        if words is not None:
            self.broken.append(f"slurmctld of {space} started on a bad configuration: {words}")

    def acts(self, identity: str, what: str) -> None:
        """Whoever sends something that changes the world holds the Lease when it does."""
        lease = self._server.find(LEASES, LEASE_SPACE, self._names.lease)
        holder = lease["spec"].get("holderIdentity") if lease is not None else None
        if holder != identity:
            self.broken.append(f"{identity} sent {what} while {holder} held the Lease")

    def _changed(self, change: Change) -> None:
        if change.resource == PODS:
            marked = _notes(change.last.obj).get(CONFIG_RESTART)
            if marked:
                self._restarts[change.last.obj["metadata"]["uid"]].add(marked)
        if change.resource == NODES and any(
            one is not None and OUT_OF_SERVICE in _notes(one.obj)
            for one in (change.old, change.new)
        ):
            self._out_at[change.key[1]] = _now()
        if change.resource == self._names.clusters and change.old is None:
            self._clusters_at[change.last.obj["metadata"]["uid"]] = _now()
        if change.resource == worker_sets.CLUSTERS:
            # Its maintenance decides how many workers its NodeSets have.
            for nodeset in worker_sets.every(self._server, change.key[0]):
                self._declared(nodeset, gone="deletionTimestamp" in nodeset["metadata"])
        elif change.resource in worker_sets.RESOURCES:
            meta = change.last.obj["metadata"]
            gone = change.new is None or "deletionTimestamp" in meta
            self._declared(change.last.obj, gone=gone)

    def _is_unused(self, space: str, resource: str, name: str) -> bool:
        """Whether it is slurmdbd's of a SlurmCluster whose slurmctld does not name slurmdbd."""
        if not (name.endswith("accounting") or name in OF_SLURMDBD):
            return False
        if resource not in {*KINDS, "/services", "/secrets"}:
            return False
        if all(app_of(pod) != "slurmctld" for pod in self._server.objects(PODS, space)):
            # No slurmctld has read any file: accounting was switched off right after the creation.
            return True
        startup = self._server.find("/configmaps", space, self._names.startup)
        texts: dict[str, str] = (startup or {}).get("data") or {}
        return not any("AccountingStorageHost=" in text for text in texts.values())

    def _is_exporters(self, space: str, obj: Json) -> bool:
        """Whether it is an object of an exporter that its SlurmCluster has switched off."""
        meta = obj["metadata"]
        owner = next(iter(meta.get("ownerReferences", ())), {"name": ""})["name"]
        component = meta.get("labels", {}).get("app.kubernetes.io/component", "exporter")
        cluster = self._server.find(worker_sets.CLUSTERS, space, owner)
        return component == "exporter" and not (cluster or {"spec": {}})["spec"].get(
            "slurmNodes", {}
        ).get("exporter", {}).get("enabled")

    def _is_checks(self, space: str, obj: Json) -> bool:
        """Whether an object is of a check that goes, or the check of a benchmark that is off."""
        meta = obj["metadata"]
        if meta.get("labels", {}).get("app.kubernetes.io/component") != "soperatorchecks":
            return False
        if obj["kind"] == ACTIVE_CHECKS.kind:
            none: Json = {}
            owners: list[Json] = meta.get("ownerReferences", [])
            owner: str = owners[0]["name"] if owners else ""
            cluster: Json = self._server.find(worker_sets.CLUSTERS, space, owner) or none
            checks: Json = cluster.get("spec", none).get("periodicChecks") or none
            return not checks.get("ncclBenchmark", {}).get("enabled")
        name = meta["name"].removeprefix(names.sbatch_script(""))
        check = self._server.find(f"{GROUP}/{ACTIVE_CHECKS.plural}", space, name)
        return check is None or "deletionTimestamp" in check["metadata"]

    def _declared(self, nodeset: Json, *, gone: bool) -> None:
        meta, daemon = nodeset["metadata"], is_daemon(nodeset)
        wanted = 0 if gone or daemon else worker_sets.replicas(self._server, nodeset)
        self._wanted[meta["uid"]].append((_now(), wanted))
        template = worker_sets.template(nodeset)
        if self._templates.get(meta["uid"], (0.0, {}))[1] != template:
            self._templates[meta["uid"]] = _now(), template

    def _delete(self, user: str, obj: Json, resource: str) -> None:
        """No pod is deleted whose slurmd runs and whose node has a job or may get one.

        A drain that somebody lifted after Slurm's fresh answer, on which the request was sent at
        once, cannot be seen by anybody.
        """
        if user == COLLECTOR and resource == PODS:
            self._collected(obj)
        if user != OPERATOR and resource == PODS:
            self._taken_at.setdefault(obj["metadata"]["uid"], _now())
        if user != OPERATOR or "deletionTimestamp" in obj["metadata"]:
            return
        if resource == NODES:
            self.replaces(obj)
            return
        space, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if resource != PODS:
            needed = not self._is_unused(space, resource, name)
            others = self._is_exporters(space, obj) or self._is_checks(space, obj)
            if resource not in EXPENDABLE and needed and not others:
                self.broken.append(f"{resource} {name} was deleted")
            return
        if self._machines.runs_daemon(obj) and not self._is_restart(obj):
            app = app_of(obj)
            self.broken.append(f"pod {name} was deleted though its {app} runs")
        if not self._machines.runs_slurmd(obj) or self._abandoned(obj):
            return
        slurm, node = self._slurms[space], node_name(obj)
        asked = listed_at.get().get(space, float("-inf"))
        at_once = sent_at.get() - asked < AT_ONCE_S + self.hesitation()
        if at_once and slurm.lifted_at.get(node, float("-inf")) >= asked:
            return
        jobs = [job.id for job in slurm.jobs_on(node) if "CONFIGURING" not in job.state]
        if jobs:
            self.broken.append(f"pod {name} was deleted while jobs {jobs} ran on it")
        record = slurm.ctld.nodes.get(node)
        if record is None and slurm.ctld.had_no_node_calls:
            # Where slurmrestd creates no nodes, a worker that Slurm forgot is replaced by design,
            # also one that is wanted, within a budget: tests of decide.rollout.cannot_register.
            return
        if record is None:
            self.broken.append(f"pod {name} was deleted though its slurmd runs unregistered")
        elif record.flags & {"POWERING_DOWN", "POWERED_DOWN", "POWERING_UP"}:
            # No job starts there before a boot.
            return
        elif "DRAIN" not in record.flags:
            self.broken.append(f"pod {name} was deleted while its node took jobs")
        self._needed(obj)

    def _collected(self, pod: Json) -> None:
        """A NodeSet does not go before its pods, and takes no job along."""
        if not self._machines.runs_slurmd(pod) or "deletionTimestamp" in pod["metadata"]:
            return
        slurm, node = self._slurms[pod["metadata"]["namespace"]], node_name(pod)
        clusters, space = self._names.clusters, pod["metadata"]["namespace"]
        controller = self._server.find(clusters, space, CLUSTER)
        jobs = [job.id for job in slurm.jobs_on(node)]
        if jobs and (controller is not None or _is_of_cluster(pod)):
            name = pod["metadata"]["name"]
            self.broken.append(f"pod {name} went with its NodeSet while jobs {jobs} ran on it")

    def _needed(self, pod: Json) -> None:
        """No more pods are taken away than somebody asked for, by a view of two minutes ago.

        Pods of an older template go as well, and for two minutes any pod may be one of those. What
        was long on its way was decided on when there were others, and what others delete in the
        last second nobody can have seen. A scale-in counts a pod that goes with its Kubernetes
        node: another takes its place.
        """
        if _now() - sent_at.get() > LONG_S or self._leaves(pod):
            return
        meta = pod["metadata"]
        owner = next(iter(meta.get("ownerReferences", ())), {"uid": "", "name": ""})
        nodeset = worker_sets.find(self._server, meta["namespace"], owner["name"])
        if nodeset is not None and nodeset["metadata"]["uid"] == owner["uid"]:
            changed, _ = self._templates[owner["uid"]]
            old = worker_sets.is_old(nodeset, pod)
            if old or (changed > 0.0 and _now() - changed < STALE_S):
                return
            if is_daemon(nodeset):
                self._daemon_needed(pod, nodeset)
                return
        living = [
            one
            for one in self._server.objects(PODS, meta["namespace"])
            if (self._stays(one["metadata"]) or self._leaves(one))
            and any(o["uid"] == owner["uid"] for o in one["metadata"].get("ownerReferences", ()))
        ]
        history = self._wanted[owner["uid"]]
        late = [wanted for when, wanted in history if when > _now() - STALE_S]
        before = [wanted for when, wanted in history if when <= _now() - STALE_S][-1:]
        fewest = min(late + before, default=0)
        if len(living) <= fewest:
            self.broken.append(
                f"pod {meta['name']} was deleted though all {len(living)} of {fewest} are wanted"
            )

    def _leaves(self, pod: Json) -> bool:
        """Whether its Kubernetes node is, or was lately, out of service."""
        on = pod["spec"].get("nodeName", "")
        now = self._server.find(NODES, "", on)
        if now is not None and OUT_OF_SERVICE in _notes(now):
            return True
        return _now() - self._out_at.get(on, float("-inf")) < STALE_S

    def _daemon_needed(self, pod: Json, nodeset: Json) -> None:
        """A pod leaves its Kubernetes node only when that is not, or was not lately, as it was."""
        if "deletionTimestamp" in nodeset["metadata"]:
            return
        machine, name = machine_of(pod), pod["metadata"]["name"]
        if self._unfit.lately(machine, STALE_S):
            return
        mates = [one for one in workers(self._server, nodeset) if machine_of(one) == machine]
        if len([one for one in mates if self._stays(one["metadata"])]) <= 1:
            self.broken.append(f"pod {name} was deleted though {machine} is for workers")

    def _stays(self, meta: Json) -> bool:
        """Whether a pod stays, as far as the sender of the request of now can know."""
        taken = self._taken_at.get(meta["uid"], float("-inf"))
        return "deletionTimestamp" not in meta or taken > sent_at.get() - LONG_S

    def heard(
        self,
        space: str,
        asked: RestRequest,
        answer: Callable[[RestRequest], Answer],
        knew: Knowledge,
    ) -> Answer:
        """Drains of others are never cleared or reworded, records in use never deleted.

        Slurm knows no preconditions: a drain that was set between a fresh answer and the request
        that follows it at once cannot be seen by anybody.
        """
        self.budget.look(space)
        if asked.method == "GET":
            return answer(asked)
        slurm = self._slurms[space]
        ctld, name = slurm.ctld, asked.path.rpartition("/")[2]
        before = ctld.nodes.get(name)
        unseen = slurm.drained_at.get(name, 0.0) >= knew.listed_at
        blameless = unseen and knew.sent_at - knew.listed_at < AT_ONCE_S + self.hesitation()
        drained = (
            before is not None
            and "DRAIN" in before.flags
            and not is_own_reason(self._marks, before.reason)
        )
        foreign = drained and not blameless
        if before is not None and (
            _has_passed(slurm, name, before.reason) or self.has_moved(space, name, before.reason)
        ):
            foreign = False
        reason = before.reason if before else ""
        in_use = name in slurm.slurmds and bool(slurm.jobs_on(name))
        usable = self.budget.usable(space, name)
        by_checks = unavailable(ctld)
        found = answer(asked)
        most = max(self.check_shares.get(space, len(ctld.nodes)), len(by_checks))
        if len(now := unavailable(ctld)) > most:
            self.broken.append(f"checks have drained {sorted(now)}, and {most} may be")
        if usable and b"DRAIN" in asked.body and b"for update" in asked.body:
            shown = shown_at.get() - AT_ONCE_S
            self.budget.took(space, name, shown)
            if (taken := self.budget.worker(space, name)) is not None:
                self._reserved.took(space, *taken, shown)
        after = ctld.nodes.get(name)
        stands = after is not None and "DRAIN" in after.flags and after.reason == reason
        if after is None or (drained and blameless and not stands):
            slurm.drains.pop(name, None)
        if before is not None and after is None and in_use:
            self.broken.append(f"record {name} was deleted under a job")
        if foreign and after is not None:
            if "DRAIN" not in after.flags:
                self.broken.append(f"the drain of {name} ({reason!r}) was undone by {asked.body!r}")
            elif after.reason != reason:
                self.broken.append(f"the drain of {name} ({reason!r}) became {after.reason!r}")
        return found

    def _is_restart(self, pod: Json) -> bool:
        """Whether a pod of slurmctld has files that take effect by a restart.

        The mark of the candidate that comes after them may be on the pod already.
        """
        return _notes(pod).get(CONFIG_HASH) in self._restarts[pod["metadata"]["uid"]]

    def _abandoned(self, pod: Json) -> bool:
        """Whether its NodeSet goes and its Controller is gone: nothing to ask, nothing to keep."""
        space = pod["metadata"]["namespace"]
        if _is_of_cluster(pod):
            # A SlurmCluster stays until its own workers are drained.
            return False
        if self._slurms[space].external:
            # It goes on, and its jobs with it.
            return False
        owners = {one["name"] for one in pod["metadata"].get("ownerReferences", ())}
        for name in owners:
            nodeset = worker_sets.find(self._server, space, name)
            if nodeset is None or "deletionTimestamp" not in nodeset["metadata"]:
                return False
            controller = worker_sets.cluster(nodeset)
            found = self._server.find(self._names.clusters, space, controller)
            if found is None or "deletionTimestamp" in found["metadata"]:
                return True
            # One that was created again is unknown to the operator until its watch shows it.
            created = self._clusters_at.get(found["metadata"]["uid"], float("-inf"))
            return created >= files.shown_at.get()
        return False


def unavailable(ctld: SimulatedSlurmctld) -> set[str]:
    """Nodes that checks have drained, or have in a reservation of theirs."""
    every = ctld.nodes.items()
    drained = {name for name, one in every if "DRAIN" in one.flags and check_of(one.reason)}
    reserved = {one for one in ctld.reservations if one.startswith("activecheck.")}
    return drained | {one.rpartition(".")[2] for one in reserved}


def _has_passed(slurm: SimulatedSlurm, node: str, reason: str) -> bool:
    """Whether a job of the check that drained a node has completed on it since.

    An operator that was away drains a node late, by a job that failed before the other completed.
    """
    check, ctld = check_of(reason), slurm.ctld
    jobs = {**ctld.jobs, **ctld.forgotten}
    failed = jobs.get(int((_JOB.search(reason) or [0, 0])[1]))
    since = min(ctld.nodes[node].reason_since, failed.end if failed is not None else inf)
    return bool(check) and any(
        one.name == check and node in one.nodes and one.state == {"COMPLETED"} and one.end >= since
        for one in jobs.values()
    )


def _never_moved(_space: str, _node: str, _reason: str) -> bool:
    return False


def _never_replaced(broken: list[str], node: Json) -> None:
    broken.append(f"Kubernetes node {node['metadata']['name']} was deleted")


def _is_of_cluster(pod: Json) -> bool:
    owners: list[Json] = pod["metadata"].get("ownerReferences") or []
    return any(one["kind"] == "SlurmCluster" for one in owners)


def _notes(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or {}


def _now() -> float:
    return asyncio.get_running_loop().time()
