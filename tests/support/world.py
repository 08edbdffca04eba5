"""A tiny world for one NodeSet: kubelet, slurmctld, users, and an operator that acts on plans.

It keeps the truth beside what the operator is shown, so that promises are checked against what
happened and not against what was decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec.structs import replace as changed

from penstock.api.core import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Node,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from penstock.api.meta import ObjectMeta
from penstock.api.slinky.names import ordinal_of
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.wellknown import (
    CORDONED_FOR,
    POD_CORDON_SHORT,
    REASON_PREFIX,
    RESERVATION_FINALIZER,
    REVISION_HASH,
)
from penstock.decide import action as act
from penstock.decide import records, times
from penstock.decide.drain import reason_to_send
from penstock.decide.guard import may_delete
from penstock.decide.nodeset import Plan, plan
from penstock.decide.quiet import Quiet
from penstock.decide.recheck import still_right
from penstock.decide.slurm_view import SlurmView
from penstock.decide.view import ControllerState, NodeSetView
from penstock.slurm import model
from penstock.slurm.known import Known, Unknown
from penstock.slurm.model import Job
from penstock.slurm.reservation import Reservation
from support import nodesets
from support.upkeep import Upkeep, strategy

HELD = act.AddFinalizer | act.RemoveFinalizer | act.SetReservation
TERMINATING = f"{REASON_PREFIX}Pod is terminating"


class PromiseBrokenError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class World:
    nodeset: NodeSet
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
    user_cordons: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(pod uid, key) of cordons that users set."""
    revision: str = "new"
    bad_revisions: set[str] = field(default_factory=set[str])
    """Templates with an image that does not exist."""
    own_writes: int = 0
    """Writes of the operator to pods."""
    budget: int = 1
    quiet: Quiet = field(default_factory=Quiet)
    upkeep: Upkeep = field(default_factory=Upkeep)
    unclaimed: set[str] = field(default_factory=set[str])
    """Node records whose pod was killed before anybody could note whose they are."""

    # What the operator sees

    def view(self) -> NodeSetView:
        nodes: Known[dict[str, model.Node]] | Unknown
        jobs: Known[tuple[Job, ...]] | Unknown = Known(tuple(self.jobs.values()), self.now)
        self.upkeep.pass_time(self.now)
        nodes = Known(self.upkeep.shown(self.nodes, self.now), self.now)
        reservations: Known[dict[str, Reservation]] | Unknown
        reservations = Known(dict(self.upkeep.records), self.now)
        if self.fault or self.controller is ControllerState.ABSENT:
            reservations = Unknown("slurmrestd does not answer")
        if self.fault in {"silent", "nodes"} or self.controller is ControllerState.ABSENT:
            nodes = Unknown("slurmrestd does not answer")
        if self.fault in {"silent", "jobs"} or self.controller is ControllerState.ABSENT:
            jobs = Unknown("slurmrestd does not answer")
        if self.fault == "empty":
            nodes, jobs = Known({}, self.now), Known((), self.now)
        return NodeSetView(
            nodeset=self.nodeset,
            controller=self.controller,
            pods=tuple(self.pods.values()),
            kubernetes_nodes=dict(self.machines),
            nodes=nodes,
            jobs=jobs,
            now=self.now,
            revision=self.revision,
            reservations=reservations,
        )

    def slurm(self) -> SlurmView:
        found = self.view()
        return SlurmView.of(found.nodes, found.jobs)

    # The operator

    def one_pass(
        self, seen: NodeSetView | None = None, stop_after: int | None = None, *, late: bool = False
    ) -> Plan:
        """Decide on `seen` (now, unless an old view is given) and act, or crash in between.

        A process waits until its caches show its own writes. One that is `late` does not: it must
        still lose no job, but the budget of updates counts on that rule.
        """
        view = seen or self.view()
        decided = plan(view, self.quiet)
        assert decided == plan(view), "what is remembered changed what is decided"
        self.acts_on_old_view = seen is not None
        # Finalizers are written with a precondition, and reservations after them.
        moved = view.nodeset != self.nodeset
        for step in decided.actions[:stop_after]:
            if not (late and for_update(step)) and not (moved and isinstance(step, HELD)):
                self.do(step)
        self.acts_on_old_view = False
        if stop_after is None and not self.gone:
            self.nodeset = changed(self.nodeset, status=decided.status)
        return decided

    def do(self, step: act.Action) -> None:
        if self.gone:
            return
        self.own_writes += isinstance(step, act.CreatePod | act.PatchPod | act.DeletePod)
        match step:
            case act.AddFinalizer() | act.RemoveFinalizer():
                self._finalizer(step)
            case act.CreatePod():
                self._create(step)
            case act.PatchPod():
                self._patch(step)
            case act.SetPodConditions():
                self._conditions(step)
            case act.DeletePod():
                self._delete(step)
            case act.SetNodeTopology():
                if not self.slurm().silence and step.node in self.nodes:
                    self._node(step.node, topology=step.topology)
            case act.SetNodeComment():
                if not self.slurm().silence and step.node in self.nodes:
                    self._node(step.node, comment=step.comment)
            case act.SetNodeFeatures():
                raise PromiseBrokenError("no machine of this world has features")
            case act.SetReservation() | act.DeleteReservation():
                # A Slurm without any node is no silent one to whoever asks for reservations.
                if isinstance(self.view().reservations, Known):
                    self.upkeep.do(step, set(self.nodes))
            case act.CreateClaims() | act.OwnClaim():
                raise PromiseBrokenError("this world has no claims")
            case _:
                if still_right(step, self.slurm()):
                    self._tell_slurm(step)

    def _finalizer(self, step: act.AddFinalizer | act.RemoveFinalizer) -> None:
        names = set(self.nodeset.metadata.finalizers) - {step.finalizer}
        there = self.controller is ControllerState.PRESENT and not self.fault
        held = step.finalizer == RESERVATION_FINALIZER and self.upkeep.records
        if isinstance(step, act.RemoveFinalizer) and held and there:
            raise PromiseBrokenError("a reservation was left")
        if isinstance(step, act.AddFinalizer):
            if self.nodeset.metadata.deleting:
                return
            names.add(step.finalizer)
        meta = changed(self.nodeset.metadata, finalizers=tuple(sorted(names)))
        self.nodeset = changed(self.nodeset, metadata=meta)
        if meta.deleting and not names:
            if self.pods:
                raise PromiseBrokenError("the NodeSet went before its pods")
            self.gone = True

    def _create(self, step: act.CreatePod) -> None:
        name = step.slot.pod
        if name in self.pods:
            return
        self.version += 1
        made = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace="slurm",
                uid=f"uid-{self.version}",
                resource_version=str(self.version),
                labels={REVISION_HASH: self.revision},
                creation_timestamp=times.write(self.now),
            ),
            spec=PodSpec(hostname=name),
            status=PodStatus(phase="Pending"),
        )
        self.pods[name] = made

    def _patch(self, step: act.PatchPod) -> None:
        found = self.pods.get(step.name)
        if found is None or found.metadata.uid != step.uid:
            return
        if step.resource_version not in {"", found.metadata.resource_version}:
            return
        for key, value in step.annotations.items():
            if value is None and (step.uid, key) in self.user_cordons:
                raise PromiseBrokenError(f"{key} of {step.name} was a user's")
        labels: dict[str, str | None] = {**found.metadata.labels, **step.labels}
        notes: dict[str, str | None] = {**found.metadata.annotations, **step.annotations}
        self._meta(
            found,
            labels={key: value for key, value in labels.items() if value is not None},
            annotations={key: value for key, value in notes.items() if value is not None},
        )

    def _conditions(self, step: act.SetPodConditions) -> None:
        found = self.pods.get(step.name)
        if found is None or found.metadata.uid != step.uid:
            return
        have = {c.type: c for c in found.status.conditions or () if c.type not in step.remove}
        have.update({condition.type: condition for condition in step.conditions})
        self._status(found, conditions=tuple(have.values()))

    def _delete(self, step: act.DeletePod) -> None:
        found = self.pods.get(step.name)
        if found is None or found.metadata.uid != step.uid:
            return
        if found.metadata.resource_version != step.resource_version:
            return
        abandoned = self.view().abandoned
        if not may_delete(found, self.slurm(), abandoned=abandoned).allowed:
            return
        alive = slurmd_runs(found)
        if alive and not abandoned:
            if self.fault:
                raise PromiseBrokenError(f"{step.name} was deleted while Slurm was {self.fault}")
            if self.jobs_on(step.name):
                raise PromiseBrokenError(f"{step.name} was deleted with {self.jobs_on(step.name)}")
            if not self.nodes[step.name].drain:
                raise PromiseBrokenError(f"{step.name} was deleted but takes jobs")
        self.kill(step.name, by_operator=True)

    def _tell_slurm(
        self, step: act.DrainNode | act.UndrainNode | act.ResumeNode | act.DeleteNodeRecord
    ) -> None:
        name = step.node
        found = self.nodes[name]
        theirs = self.drained_by_others.get(name)
        match step:
            case act.DrainNode():
                reason = reason_to_send(found, step)
                used = self.in_use(name)
                if used and reason.endswith("for update") and not self.acts_on_old_view:
                    self._check_time(name)
                self._node(name, state=found.state | {"DRAIN"}, reason=reason)
                if used and reason.endswith("for update"):
                    self._check_budget(name)
            case act.UndrainNode():
                reason = found.reason if "DOWN" in found.state else ""
                self._node(name, state=found.state - {"DRAIN"}, reason=reason)
            case act.ResumeNode():
                state = found.state - {"DRAIN", "DOWN", "FAIL"} | {"IDLE"}
                self._node(name, state=state, reason="")
            case act.DeleteNodeRecord():
                if name in self.pods or self.jobs_on(name):
                    raise PromiseBrokenError(f"record {name} was deleted under its pod or job")
                if step.renews is not None and theirs is not None:
                    raise PromiseBrokenError(f"the drain of {name} went with its record")
                del self.nodes[name]
                self.upkeep.lose(name)
                self.drained_by_others.pop(name, None)
                return
        alone = name not in self.pods or not slurmd_runs(self.pods[name])
        if alone and self.nodes[name].state == frozenset({"IDLE"}) and not self.acts_on_old_view:
            raise PromiseBrokenError(f"{name} gets jobs by {step}, but its slurmd does not run")
        if theirs is not None and not self.nodes[name].drain:
            raise PromiseBrokenError(f"the drain of {name} ({theirs}) was undone by {step}")
        if theirs is not None and found.reason == theirs and self.nodes[name].reason != theirs:
            raise PromiseBrokenError(f"the drain of {name} ({theirs}) was reworded by {step}")
        self.refresh(name)

    def in_use(self, name: str) -> bool:
        """Whether a pod takes jobs or has some, in truth."""
        found, record = self.pods.get(name), self.nodes.get(name)
        if found is None or record is None or found.metadata.deleting or not found.ready:
            return False
        heard = record.slurmd_start_time >= int(running_since(found))
        return heard and not record.state & {"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"}

    def _check_time(self, name: str) -> None:
        """A node in use was drained for an update."""
        scheduled = self.nodeset.spec.update_strategy.type == "ScheduledUpdate"
        if scheduled and name not in self.upkeep.nodes(self.now):
            raise PromiseBrokenError(f"{name} was drained for update outside of its reservation")

    def _check_budget(self, name: str) -> None:
        """A node in use was drained for an update: not more may be out than declared."""
        if self.acts_on_old_view:
            # It cannot know what has failed meanwhile, but it knows what itself has taken.
            out = [one for one in self.pods if taken_for_update(self.pods[one])]
        else:
            wanted = self.nodeset.spec.replicas
            out = [""] * (wanted - sum(1 for one in self.pods if self.in_use(one)))
        if len(out) > self.budget:
            raise PromiseBrokenError(f"{len(out)} pods are out, as {name} was drained for update")

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
            host = f"machine-{ordinal_of(self.nodeset, name)}"
            self.machines.setdefault(host, Node(metadata=ObjectMeta(name=host)))
            self.version += 1
            meta = changed(found.metadata, resource_version=str(self.version))
            spec = changed(found.spec, node_name=host)
            status = changed(found.status, container_statuses=(nodesets.waiting(),))
            self.pods[name] = changed(found, metadata=meta, spec=spec, status=status)
            return
        if not slurmd_runs(found):
            if found.metadata.labels[REVISION_HASH] in self.bad_revisions:
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
        remembered = records.read(record.comment) if record else None
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
            self._node(name, state=state, reason=TERMINATING)
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
        elif key == POD_CORDON_SHORT or (not ours and key not in found.metadata.annotations):
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
        how = strategy(self.budget, start, minutes, again)
        self.nodeset = changed(self.nodeset, spec=changed(self.nodeset.spec, update_strategy=how))

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


def for_update(step: act.Action) -> bool:
    """Whether an action takes a pod for an update."""
    if isinstance(step, act.PatchPod):
        return (step.annotations.get(CORDONED_FOR) or "").startswith("update ")
    return isinstance(step, act.DrainNode) and step.reason.endswith("for update")


def taken_for_update(pod: Pod) -> bool:
    """Whether the operator has marked it as one that an update takes."""
    return pod.metadata.annotations.get(CORDONED_FOR, "").startswith("update ")


def running_since(pod: Pod) -> float:
    state = next(c.state for c in pod.status.container_statuses or ()).running
    return times.parse(state.started_at if state else None) or 0.0


def encoded(value: Any) -> bytes:
    """For comparing statuses as the API server would get them."""
    return msgspec.json.encode(value)
