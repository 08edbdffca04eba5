"""The one place that decides whether a worker pod may be deleted.

`plan` calls it with the snapshot of its decision. The actor calls it again, just before the delete,
with the live pod and an answer of Slurm to a request sent after the decision. A delete carries
the pod's uid and resourceVersion, so a pod that changed in between stays.

A slurmd that runs may have a job. So:

1. Slurm unknown (no answer for nodes or for jobs): every pod that was bound to a Kubernetes node
   stays, whatever the kubelet reports. A Slurm node that a known list does not have: a pod whose
   slurmd may run stays.
2. `Drained`: Slurm reports that the node is drained (DRAIN, not UNDRAIN, none of ALLOCATED, MIXED,
   COMPLETING, nor UNKNOWN since slurmctld started) and no unfinished job holds it. Both are
   needed: the node of a SUSPENDED job may look IDLE.
3. `NeverBound`: a pod that no Kubernetes node was given to has run nothing, whatever Slurm reports
   of its name. `NeverStarted`: the kubelet reports that slurmd waits for its first start, and Slurm
   that no job is on that node. The kubelet's report alone is not enough: it may be old. So where
   Slurm has a record that may take a job, or that has processes left (COMPLETING), rule 2 decides.
   A record takes no job when it is DOWN, ERROR or FUTURE, or drained, also when slurmctld has
   started since and its base state is UNKNOWN.
4. `Finished`: in phase Failed or Succeeded all containers have ended. `SlurmdStopped`: the kubelet
   reports that slurmd does not run (a crash loop), and Slurm answers and has neither the node nor a
   job on it. If Slurm has the node, it must be drained as in rule 2.
5. `ControllerGone`: the NodeSet is being deleted and its Controller is gone or going too: there is
   no Slurm left to ask or to keep a job, and the namespace must be able to go. An external
   slurmctld keeps its jobs, so rules 1 to 4 hold until it cannot be asked for so long that the view
   calls the NodeSet abandoned.

6. `Forgotten`: Slurm's nodes and jobs are known and have neither the node nor a job on it, and this
   Slurm cannot have a running slurmd register again. Such pods go within the NodeSet's budget.

7. `PoweredDown`: Slurm reports that it has powered the node down, or does so, and no unfinished job
   holds it. A job that gets the node meanwhile waits for a boot, which the pod cannot offer.
8. `NotRebooted`: slurmctld powers the node up and waits for a boot, and each job there waits for it
   as well (CONFIGURING). The slurmd of the pod is older, so nothing of these jobs is in the pod.

Else, that a Ready pod has no record in Slurm is no reason to delete it: a slurmctld that lost its
state would cost every pod. Its slurmd registers again instead:
   `penstock.decide.slurm_node.registration`.

Rules 3 and 4 also hold where Slurm lists no nodes: the first cluster of all may have only broken
workers. When such a list is a fact is the business of `penstock.slurm.mirror.snapshot`.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.kinds import Pod
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.catalog.reasons.workers import WorkerReason
from penstock.decide.action import DeletionGround, EventReason
from penstock.decide.observed.job_text import describe_jobs
from penstock.decide.observed.pod import (
    has_never_started,
    has_slurmd_stopped,
    is_finished,
    is_never_bound,
    slurm_node_name,
)
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.slurm.known import Unknown
from penstock.slurm.state import Job, Node


@dataclass(frozen=True, slots=True)
class DeletionVerdict:
    """Whether a pod may be deleted: on which ground, or why not (`ground` is None)."""

    ground: DeletionGround | None
    why: EventReason

    @property
    def allowed(self) -> bool:
        """Whether it may be deleted now."""
        return self.ground is not None


def can_delete(
    pod: Pod,
    slurm: SlurmSnapshot,
    *,
    abandoned: bool = False,
    forgotten: bool = False,
    not_rebooted: bool = False,
) -> DeletionVerdict:
    """Judge one pod. `abandoned`: its NodeSet goes, and so does (or did) its Controller.

    `forgotten`: its slurmd cannot be led to register again, should Slurm not have its node.
    `not_rebooted`: its slurmd started before slurmctld powered the node up, should it do so.
    """
    if pod.metadata.deleting:
        return _deny(WorkerReason.TERMINATING, "is being terminated already")
    if abandoned:
        return _allow(DeletionGround.CONTROLLER_GONE, "there is no Slurm left to ask")
    if is_finished(pod):
        return _allow(DeletionGround.FINISHED, f"its containers have ended ({pod.status.phase})")
    if is_never_bound(pod):
        return _allow(DeletionGround.NEVER_BOUND, "it never ran on a Kubernetes node")
    name = slurm_node_name(pod)
    node, jobs = slurm.node(name), slurm.jobs(name)
    if isinstance(slurm.nodes, Unknown):
        return _deny(SlurmNodeReason.UNKNOWN, f"Slurm's nodes are not known: {slurm.nodes.why}")
    if isinstance(slurm.jobs_by_node, Unknown) or jobs is None:
        return _deny(SlurmNodeReason.UNKNOWN, f"Slurm's jobs are not known: {slurm.unknown_reason}")
    if not_rebooted and node is not None and _waits_for_boot(node, jobs):
        return _allow(
            DeletionGround.NOT_REBOOTED, "its slurmd is older than the power-up of its node"
        )
    if jobs:
        return _deny(WorkerReason.JOBS_RUNNING, describe_jobs(jobs))
    if has_never_started(pod) and (node is None or _takes_no_job(node)):
        return _allow(DeletionGround.NEVER_STARTED, "its slurmd never started")
    if node is not None and node.is_powered_down and not node.busy:
        return _allow(DeletionGround.POWERED_DOWN, "Slurm has powered its node down")
    if node is None:
        if has_slurmd_stopped(pod):
            return _allow(
                DeletionGround.STOPPED, "its slurmd does not run and Slurm does not know it"
            )
        if forgotten:
            return _allow(
                DeletionGround.FORGOTTEN, "Slurm has no record of its node and no job on it"
            )
        return _deny(
            WorkerReason.NODE_NOT_REGISTERED, f"Slurm has no node {name}, but its slurmd may run"
        )
    if node.busy:
        return _deny(
            WorkerReason.NODE_BUSY, f"Slurm reports node {name} as {'+'.join(sorted(node.state))}"
        )
    if not node.drain:
        return _deny(WorkerReason.NOT_DRAINED, f"Slurm has not drained node {name} yet")
    if not node.drained:
        return _deny(
            WorkerReason.NODE_UNKNOWN, f"node {name} has not registered since slurmctld started"
        )
    return _allow(DeletionGround.DRAINED, "Slurm reports its node as drained and empty")


_TAKES_NO_JOB = frozenset({"DOWN", "ERROR", "FUTURE"})
"""Base states in which slurmctld starts no job on a node. Source: slurm.conf(5), State."""


def _waits_for_boot(node: Node, jobs: tuple[Job, ...]) -> bool:
    """Whether neither the node nor any job on it has begun to work."""
    if not node.is_powering_up or "COMPLETING" in node.state:
        return False
    return all("CONFIGURING" in job.state and "COMPLETING" not in job.state for job in jobs)


def _takes_no_job(node: Node) -> bool:
    """Whether slurmctld starts no job on this node, and none is ending there."""
    return not node.busy and (node.drain or bool(node.state & _TAKES_NO_JOB))


def _allow(ground: DeletionGround, message: str) -> DeletionVerdict:
    return DeletionVerdict(ground, EventReason(ground.value, message))


def _deny(reason: ConditionReason, message: str) -> DeletionVerdict:
    return DeletionVerdict(None, EventReason(reason.value, message))
