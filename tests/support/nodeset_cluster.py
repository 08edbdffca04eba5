"""A tiny cluster with one worker set: kubelet, slurmctld and users, and the truth about them.

Nodes and jobs are kept by the names of pods; Slurm has them by those of `WorkerApi.host`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as changed

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Node,
    Pod,
    PodCondition,
)
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.base import times
from penstock.decide.observed import node_comment
from penstock.decide.observed.reservations import ObservedReservations
from penstock.decide.observed.revisions import Revisions
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.model.worker_set import WorkerSet
from penstock.slurm import state as model
from penstock.slurm.known import Known, Unknown
from penstock.slurm.reservation import Reservation
from penstock.slurm.state import Job
from support import nodesets
from support.upkeep import Upkeep
from support.worker_apis import SLINKY, WorkerApi


class PromiseBrokenError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class Cluster:
    nodeset: Any
    """The object that declares the workers."""
    pods: dict[str, Pod] = field(default_factory=dict[str, Pod])
    machines: dict[str, Node] = field(default_factory=dict[str, Node])
    nodes: dict[str, model.Node] = field(default_factory=dict[str, model.Node])
    jobs: dict[int, Job] = field(default_factory=dict[int, Job])
    drained_by_others: dict[str, str] = field(default_factory=dict[str, str])
    """Slurm node -> reason of a drain that is not the operator's."""
    fault: str = ""
    controller: ControllerState = ControllerState.PRESENT
    gone: bool = False
    now: float = nodesets.NOW
    version: int = 0
    acts_on_old_view: bool = False
    is_late: bool = False
    user_cordons: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(pod uid, key) of cordons that users set."""
    revision: str = "new"
    bad_revisions: set[str] = field(default_factory=set[str])
    """Templates with an image that does not exist."""
    own_writes: int = 0
    """Writes of the operator to pods."""
    budget: int = 1
    quiet: PlanCache = field(default_factory=PlanCache)
    upkeep: Upkeep = field(default_factory=Upkeep)
    api: WorkerApi = SLINKY
    unclaimed: set[str] = field(default_factory=set[str])
    """Node records whose pod was killed before anybody could note whose they are."""

    # What the operator sees

    def view(self) -> WorkerSetView:
        nodes: Known[dict[str, model.Node]] | Unknown
        jobs: Known[tuple[Job, ...]] | Unknown = Known(self._jobs(), self.now)
        self.upkeep.pass_time(self.now)
        nodes = Known(self._nodes(), self.now)
        reservations: Known[dict[str, Reservation]] | Unknown
        reservations = Known(self._reservations(), self.now)
        if self.fault or self.controller is ControllerState.ABSENT:
            reservations = Unknown("slurmrestd does not answer")
        if self.fault in {"silent", "nodes"} or self.controller is ControllerState.ABSENT:
            nodes = Unknown("slurmrestd does not answer")
        if self.fault in {"silent", "jobs"} or self.controller is ControllerState.ABSENT:
            jobs = Unknown("slurmrestd does not answer")
        if self.fault == "empty":
            nodes, jobs = Known({}, self.now), Known((), self.now)
        return WorkerSetView(
            workers=self.workers,
            controller=self.controller,
            pods=tuple(self.pods.values()),
            kubernetes_nodes=dict(self.machines),
            nodes=nodes,
            jobs=jobs,
            now=self.now,
            revisions=Revisions(self.revision),
            reservations=ObservedReservations(reservations),
        )

    @property
    def workers(self) -> WorkerSet:
        """The workers in the words of the model."""
        return self.api.workers(self.nodeset)

    def _nodes(self) -> dict[str, model.Node]:
        shown = self.upkeep.shown(self.nodes, self.now)
        return {self.api.host(n): replace(one, name=self.api.host(n)) for n, one in shown.items()}

    def _jobs(self) -> tuple[Job, ...]:
        every = self.jobs.values()
        return tuple(replace(job, nodes=tuple(map(self.api.host, job.nodes))) for job in every)

    def _reservations(self) -> dict[str, Reservation]:
        every = self.upkeep.records.items()
        return {n: replace(one, nodes=frozenset(map(self.api.host, one.nodes))) for n, one in every}

    def slurm(self) -> SlurmSnapshot:
        found = self.view()
        return SlurmSnapshot.of(found.nodes, found.jobs)

    # The operator
    def revision_of(self, pod: Pod) -> str | None:
        """The template that a pod was made from."""
        return self.api.marks.revision_of(pod.metadata.labels)

    def in_use(self, name: str) -> bool:
        """Whether a pod takes jobs or has some, in truth."""
        found, record = self.pods.get(name), self.nodes.get(name)
        if found is None or record is None or found.metadata.deleting or not found.ready:
            return False
        heard = record.slurmd_start_time >= int(running_since(found))
        return heard and not record.state & {"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"}

    # The kubelet

    def advance(self, name: str) -> None:
        """One step in the life of a pod."""
        found = self.pods.get(name)
        if found is None:
            return
        if found.metadata.deleting:
            del self.pods[name]
            return
        if found.status.phase in {"Failed", "Succeeded"}:
            return
        if not found.spec.node_name:
            host = f"machine-{self.workers.names.ordinal_of(name)}"
            self.machines.setdefault(host, Node(metadata=ObjectMeta(name=host)))
            self.version += 1
            meta = changed(found.metadata, resource_version=str(self.version))
            spec = changed(found.spec, node_name=host)
            status = changed(found.status, container_statuses=(nodesets.waiting(),))
            self.pods[name] = changed(found, metadata=meta, spec=spec, status=status)
            return
        if not slurmd_runs(found):
            if self.revision_of(found) in self.bad_revisions:
                broken = (nodesets.waiting("ErrImagePull"),)
                self._status(found, container_statuses=broken)
                return
            self._start(found)
            return
        record = self.nodes.get(name, model.Node(name=name, state=frozenset({"IDLE"})))
        started = running_since(found)
        self.nodes[name] = replace(
            record, state=record.state - {"NOT_RESPONDING"}, slurmd_start_time=int(started)
        )
        self.refresh(name)

    def _start(self, found: Pod) -> None:
        running = ContainerState(running=ContainerRunning(started_at=times.write(self.now)))
        ready = PodCondition(
            type="Ready", status="True", last_transition_time=times.write(self.now)
        )
        others = [c for c in found.status.conditions or () if c.type != "Ready"]
        self._status(
            found,
            phase="Running",
            conditions=(*others, ready),
            container_statuses=(ContainerStatus(name="slurmd", ready=True, state=running),),
        )

    def kill(self, name: str, *, by_operator: bool = False) -> None:
        """A delete arrives: preStop speaks, then slurmd and its jobs end."""
        found = self.pods[name]
        self._meta(found, deletion_timestamp=times.write(self.now))
        record = self.nodes.get(name)
        remembered = node_comment.read(self.api.marks.comment, record.comment) if record else None
        known = by_operator and not self.fault and not self.acts_on_old_view
        if remembered is None and not known:
            self.unclaimed.add(name)
        # Our hook leaves a drain as it is; that of pods which slurm-operator made does not.
        inherited = int(found.metadata.uid.rpartition("-")[2]) % 2 == 0
        if slurmd_runs(found) and record and (inherited or not record.drain):
            drained = self.drained_by_others.pop(name, None) is not None
            if drained and remembered and remembered.drain is not None:
                # What nobody had the time to remember is lost under the hook's words.
                self.drained_by_others[name] = remembered.drain
            state = record.state - {"IDLE", "ALLOCATED"} | {"DOWN"}
            self._node(name, state=state, reason=f"{self.api.marks.drain_prefix}Pod is terminating")
        self._end_jobs_on(name)

    def crash(self, name: str) -> None:
        """The slurmd container ends and is not started again for a while."""
        found = self.pods[name]
        if not slurmd_runs(found):
            return
        status = ContainerStatus(
            name="slurmd",
            restart_count=1,
            state=ContainerState(waiting=ContainerWaiting(reason="CrashLoopBackOff")),
            last_state=ContainerState(terminated=ContainerTerminated(exit_code=1)),
        )
        not_ready = PodCondition(
            type="Ready", status="False", last_transition_time=times.write(self.now)
        )
        others = [c for c in found.status.conditions or () if c.type != "Ready"]
        self._status(found, conditions=(*others, not_ready), container_statuses=(status,))
        self._end_jobs_on(name)
        self.silence_node(name)

    def fail(self, name: str) -> None:
        """The pod is evicted."""
        found = self.pods[name]
        if found.metadata.deleting:
            return
        conditions = tuple(c for c in found.status.conditions or () if c.type != "Ready")
        self._status(found, phase="Failed", conditions=conditions, container_statuses=None)
        self._end_jobs_on(name)
        self.silence_node(name)

    def silence_node(self, name: str) -> None:
        """slurmctld gives a node up."""
        record = self.nodes.get(name)
        if record is None or record.drain or "DOWN" in record.state:
            return
        state = record.state - {"IDLE", "ALLOCATED"} | {"DOWN", "NOT_RESPONDING"}
        self._node(name, state=state, reason="Not responding")
        self._end_jobs_on(name)

    # Slurm

    def jobs_on(self, name: str) -> list[int]:
        return [job.id for job in self.jobs.values() if name in job.nodes]

    def takes_jobs(self, name: str) -> bool:
        record, found = self.nodes.get(name), self.pods.get(name)
        if record is None or found is None or not slurmd_runs(found) or found.metadata.deleting:
            return False
        if name in self.upkeep.nodes(self.now):
            return False
        return record.state == frozenset({"IDLE"}) and not self.jobs_on(name)

    def set_job(self, job: Job) -> None:
        self.jobs[job.id] = job
        for name in job.nodes:
            self.refresh(name)

    def end_job(self, id_: int) -> None:
        for name in self.jobs.pop(id_).nodes:
            self.refresh(name)

    def refresh(self, name: str) -> None:
        """Base state and COMPLETING follow from the jobs; a suspended job leaves a node IDLE."""
        record = self.nodes.get(name)
        if record is None:
            return
        states: set[str] = set()
        for id_ in self.jobs_on(name):
            states |= self.jobs[id_].state
        if "DOWN" in record.state:
            if "COMPLETING" not in states:
                self._node(name, state=record.state - {"COMPLETING"})
            return
        flags = record.state & {"DRAIN", "NOT_RESPONDING", "FAIL"}
        base = {"ALLOCATED"} if "RUNNING" in states else {"IDLE"}
        if "COMPLETING" in states:
            base.add("COMPLETING")
        self._node(name, state=frozenset(base) | flags)

    def _end_jobs_on(self, name: str) -> None:
        for id_ in self.jobs_on(name):
            self.end_job(id_)

    def _node(self, name: str, **new: Any) -> None:
        self.nodes[name] = replace(self.nodes[name], **new)

    def _meta(self, found: Pod, **new: Any) -> None:
        self.version += 1
        meta = changed(found.metadata, resource_version=str(self.version), **new)
        self.pods[found.metadata.name] = changed(found, metadata=meta)

    def _status(self, found: Pod, **new: Any) -> None:
        self.version += 1
        meta = changed(found.metadata, resource_version=str(self.version))
        status = changed(found.status, **new)
        self.pods[found.metadata.name] = changed(found, metadata=meta, status=status)

    # Users

    def annotate(self, name: str, key: str, value: str | None) -> None:
        found = self.pods[name]
        notes = {k: v for k, v in found.metadata.annotations.items() if k != key}
        ours = notes.get(CORDONED_FOR, "nobody") != "nobody"
        if value is None:
            self.user_cordons.discard((found.metadata.uid, key))
        elif key in self.api.marks.cordon[1:] or (
            not ours and key not in found.metadata.annotations
        ):
            self.user_cordons.add((found.metadata.uid, key))
        self._meta(found, annotations=notes if value is None else {**notes, key: value})

    def scale(self, replicas: int) -> None:
        spec = changed(self.nodeset.spec, replicas=replicas)
        self.nodeset = changed(self.nodeset, spec=spec)

    def change_template(self, revision: str, *, bad: bool) -> None:
        """Pods of a bad revision never start."""
        self.revision = revision
        if bad:
            self.bad_revisions.add(revision)
        else:
            self.bad_revisions.discard(revision)

    def allow_unavailable(self, most: int) -> None:
        self.budget = most
        self.schedule(None)

    def schedule(self, start: float | None, minutes: int = 30, *, again: bool = False) -> None:
        """Updates take place from then on, or at any time."""
        self.nodeset = self.api.updates(self.nodeset, self.budget, start, minutes, again)

    def delete_nodeset(self) -> None:
        if self.nodeset.metadata.deleting:
            return
        meta = changed(self.nodeset.metadata, deletion_timestamp=times.write(self.now))
        self.nodeset = changed(self.nodeset, metadata=meta)
        self.gone = not meta.finalizers


def slurmd_runs(pod: Pod) -> bool:
    """Whether a slurmd that may have jobs runs in the pod."""
    if pod.status.phase in {"Failed", "Succeeded"}:
        return False
    return any(c.state.running for c in pod.status.container_statuses or ())


def running_since(pod: Pod) -> float:
    state = next(c.state for c in pod.status.container_statuses or ()).running
    return times.parse(state.started_at if state else None) or 0.0
