"""An operator that acts on plans, in a tiny cluster, and the promises that it keeps.

They are checked against what happened and not against what was decided.
"""

from dataclasses import replace
from typing import Any

import msgspec
from msgspec.structs import replace as changed

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import Pod, PodSpec, PodStatus
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.base import times
from penstock.decide import action as act
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.drain.recheck import is_still_valid
from penstock.decide.drain.request import reason_to_send
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.deletion import deletion_of
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm.known import Known
from support.nodeset_cluster import Cluster, PromiseBrokenError, slurmd_runs

HELD = act.AddFinalizer | act.RemoveFinalizer | act.SetReservation


class World(Cluster):
    """With the operator."""

    def one_pass(
        self,
        seen: WorkerSetView | None = None,
        stop_after: int | None = None,
        *,
        late: bool = False,
    ) -> Plan:
        """Decide on `seen` (now, unless an old view is given) and act, or crash in between.

        A process waits until its caches show its own writes. One that is `late` does not: it must
        still lose no job, but the budget of updates counts on that rule.
        """
        view = seen or self.view()
        decided = plan(view, self.quiet)
        assert decided == plan(view), "what is remembered changed what is decided"
        self.acts_on_old_view, self.is_late = seen is not None, late
        # Finalizers are written with a precondition, and reservations after them.
        moved = view.workers != self.workers
        for step in decided.actions[:stop_after]:
            if not (late and for_update(step)) and not (moved and isinstance(step, HELD)):
                self.do(step)
        self.acts_on_old_view = self.is_late = False
        if stop_after is None and not self.gone:
            status = self.api.status(self.nodeset.status, decided.status)
            self.nodeset = changed(self.nodeset, status=status)
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
                if not self.slurm().unknown_reason and self._own(step.node) in self.nodes:
                    self._node(self._own(step.node), topology=step.topology)
            case act.SetNodeComment():
                if not self.slurm().unknown_reason and self._own(step.node) in self.nodes:
                    self._node(self._own(step.node), comment=step.comment)
            case act.SetNodeFeatures():
                raise PromiseBrokenError("no machine of this world has features")
            case act.SetReservation() | act.DeleteReservation():
                # A Slurm without any node is no silent one to whoever asks for reservations.
                if isinstance(self.view().reservations.known, Known):
                    if isinstance(step, act.SetReservation):
                        step = replace(step, nodes=tuple(map(self._own, step.nodes)))
                    self.upkeep.do(step, set(self.nodes))
            case act.RegisterNode() | act.RemoveStandIns():
                raise PromiseBrokenError("no pod of this world has an address")
            case act.CreatePvcs() | act.SetPvcOwners():
                raise PromiseBrokenError("this world has no claims")
            case act.PowerDownNode():
                raise PromiseBrokenError("no node of this world is powered down")
            case _:
                if is_still_valid(self.api.marks, step, self.slurm()):
                    self._change_slurm(replace(step, node=self._own(step.node)))

    def _own(self, node: str) -> str:
        """By what name a Slurm node is kept here."""
        return self.api.pod_of(node)

    def _finalizer(self, step: act.AddFinalizer | act.RemoveFinalizer) -> None:
        names = set(self.nodeset.metadata.finalizers) - {step.finalizer}
        there = self.controller is ControllerState.PRESENT and not self.fault
        held = step.finalizer == self.api.marks.reservation_finalizer and self.upkeep.records
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
                labels={self.api.marks.revision[0]: self.revision},
                creation_timestamp=times.write(self.now),
            ),
            spec=PodSpec(hostname=self.api.host(name)),
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
        abandoned = deletion_of(self.view()).is_orphaned
        if not can_delete(found, self.slurm(), abandoned=abandoned).allowed:
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

    def _change_slurm(
        self, step: act.DrainNode | act.UndrainNode | act.ResumeNode | act.DeleteNodeRecord
    ) -> None:
        name = step.node
        found = self.nodes[name]
        theirs = self.drained_by_others.get(name)
        match step:
            case act.DrainNode():
                reason = reason_to_send(self.api.marks, found, step)
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
                # The worker of a late process's own new pod registers again: it loses no job.
                if (name in self.pods and not self.is_late) or self.jobs_on(name):
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

    def _check_time(self, name: str) -> None:
        """A node in use was drained for an update."""
        scheduled = self.workers.update.type == "ScheduledUpdate"
        if scheduled and name not in self.upkeep.nodes(self.now):
            raise PromiseBrokenError(f"{name} was drained for update outside of its reservation")

    def _check_budget(self, name: str) -> None:
        """A node in use was drained for an update: the budget must still be met."""
        if self.acts_on_old_view:
            # It cannot know what has failed meanwhile, but it knows what itself has taken.
            out = [one for one in self.pods if taken_for_update(self.pods[one])]
        else:
            wanted = self.nodeset.spec.replicas
            out = [""] * (wanted - sum(1 for one in self.pods if self.in_use(one)))
        if len(out) > self.budget:
            raise PromiseBrokenError(f"{len(out)} pods are out, as {name} was drained for update")


def for_update(step: act.Action) -> bool:
    """Whether an action takes a pod for an update."""
    if isinstance(step, act.PatchPod):
        return (step.annotations.get(CORDONED_FOR) or "").startswith("update ")
    return isinstance(step, act.DrainNode) and step.reason.endswith("for update")


def taken_for_update(pod: Pod) -> bool:
    """Whether the operator has marked it as one that an update takes."""
    return pod.metadata.annotations.get(CORDONED_FOR, "").startswith("update ")


def encoded(value: Any) -> bytes:
    """For comparing statuses as the API server would get them."""
    return msgspec.json.encode(value)
