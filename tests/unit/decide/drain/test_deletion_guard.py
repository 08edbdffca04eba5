"""When a pod may be deleted."""

from __future__ import annotations

import pytest

from penstock.decide.action import DeletionGround
from penstock.decide.drain.deletion_guard import can_delete
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Job, Node
from support.nodesets import UNKNOWN, job, known_nodes, node, pod, running, waiting

DRAINED = node(0, "IDLE", "DRAIN")
ELSE = node(9)


def slurm(
    nodes: Known[dict[str, Node]] | Unknown, jobs: tuple[Job, ...] | Unknown = ()
) -> SlurmSnapshot:
    return SlurmSnapshot.of(nodes, jobs if isinstance(jobs, Unknown) else Known(jobs, 1.0))


def test_a_drained_and_empty_node_lets_its_pod_go() -> None:
    assert can_delete(pod(), slurm(known_nodes(DRAINED))).ground is DeletionGround.DRAINED


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (slurm(UNKNOWN), "SlurmUnknown"),
        (slurm(UNKNOWN, UNKNOWN), "SlurmUnknown"),
        (slurm(known_nodes(DRAINED), UNKNOWN), "SlurmUnknown"),
        (slurm(known_nodes()), "NodeNotRegistered"),
        (slurm(known_nodes(ELSE)), "NodeNotRegistered"),
        (slurm(known_nodes(node(0, "IDLE"))), "NotDrained"),
        (slurm(known_nodes(node(0, "DOWN"))), "NotDrained"),
        (slurm(known_nodes(node(0, "IDLE", "DRAIN", "UNDRAIN"))), "NotDrained"),
        (slurm(known_nodes(node(0, "UNKNOWN", "DRAIN"))), "NodeUnknown"),
        (slurm(known_nodes(node(0, "ALLOCATED", "DRAIN"))), "NodeBusy"),
        (slurm(known_nodes(node(0, "MIXED", "DRAIN"))), "NodeBusy"),
        (slurm(known_nodes(node(0, "IDLE", "COMPLETING", "DRAIN"))), "NodeBusy"),
        (slurm(known_nodes(DRAINED), (job(1, 0),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="SUSPENDED"),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="RUNNING+CONFIGURING"),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="COMPLETED+COMPLETING"),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="PENDING+COMPLETING"),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="RUNNING+STOPPED"),)), "JobsRunning"),
        (slurm(known_nodes(DRAINED), (job(1, 0, state="NEWER_THAN_WE"),)), "JobsRunning"),
    ],
)
def test_a_pod_whose_slurmd_may_have_a_job_stays(answer: SlurmSnapshot, reason: str) -> None:
    """D4, S013, feature row 29."""
    verdict = can_delete(pod(), answer)
    assert not verdict.allowed
    assert verdict.why.reason == reason


@pytest.mark.parametrize("state", [("IDLE", "POWERING_DOWN"), ("DOWN", "POWERED_DOWN", "CLOUD")])
def test_a_node_that_slurmctld_powers_down_lets_its_pod_go(state: tuple[str, ...]) -> None:
    verdict = can_delete(pod(), slurm(known_nodes(node(0, *state))))
    assert verdict.ground is DeletionGround.POWERED_DOWN


@pytest.mark.parametrize(
    ("state", "jobs"),
    [
        (("IDLE", "POWER_DOWN"), ()),
        (("IDLE", "POWERING_UP"), ()),
        (("IDLE", "POWERED_DOWN", "POWERING_UP"), ()),
        (("MIXED", "POWERING_DOWN"), ()),
        (("IDLE", "COMPLETING", "POWERING_DOWN"), ()),
        (("IDLE", "POWERING_DOWN"), (job(1, 0),)),
        (("IDLE", "POWERED_DOWN"), (job(1, 0, state="RUNNING+CONFIGURING"),)),
    ],
)
def test_a_node_that_is_not_yet_or_no_more_powered_down_keeps_its_pod(
    state: tuple[str, ...], jobs: tuple[Job, ...]
) -> None:
    assert not can_delete(pod(), slurm(known_nodes(node(0, *state)), jobs)).allowed


@pytest.mark.parametrize(
    ("state", "jobs", "allowed"),
    [
        (("ALLOCATED", "POWERING_UP"), (job(1, 0, state="RUNNING+CONFIGURING"),), True),
        (("IDLE", "POWERING_UP"), (), True),
        (("ALLOCATED", "POWERING_UP"), (job(1, 0),), False),
        (("MIXED", "POWERING_UP", "COMPLETING"), (), False),
        (("ALLOCATED",), (job(1, 0, state="RUNNING+CONFIGURING"),), False),
    ],
)
def test_a_slurmd_older_than_the_power_up_goes_while_all_jobs_wait_for_the_boot(
    state: tuple[str, ...], jobs: tuple[Job, ...], allowed: bool
) -> None:
    answer = slurm(known_nodes(node(0, *state)), jobs)
    assert can_delete(pod(), answer, not_rebooted=True).allowed is allowed
    assert not can_delete(pod(), answer).allowed


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "PENDING", "NODE_FAIL"])
def test_a_job_that_is_over_or_not_begun_holds_no_node(state: str) -> None:
    assert can_delete(pod(), slurm(known_nodes(DRAINED), (job(1, 0, state=state),))).allowed


def test_a_job_of_another_node_does_not_matter() -> None:
    assert can_delete(pod(), slurm(known_nodes(DRAINED), (job(1, 1, 2),))).allowed


@pytest.mark.parametrize(
    "answer",
    [
        slurm(known_nodes()),
        slurm(known_nodes(node(0, "DOWN"))),
        slurm(known_nodes(DRAINED)),
        slurm(known_nodes(node(0, "UNKNOWN", "DRAIN"))),
        slurm(known_nodes(node(0, "IDLE", "DRAIN", "UNKNOWN"))),
        slurm(known_nodes(node(0, "FUTURE"))),
        slurm(known_nodes(node(0, "ERROR"))),
    ],
)
def test_what_never_started_may_go_when_slurm_says_that_no_job_is_there(
    answer: SlurmSnapshot,
) -> None:
    unstarted = pod(phase="Pending", ready=False, slurmd=waiting("ImagePullBackOff"))
    assert can_delete(unstarted, answer).ground is DeletionGround.NEVER_STARTED


def test_what_no_machine_was_given_to_needs_no_answer_of_slurm() -> None:
    unbound = pod(phase="Pending", ready=False, bound=False)
    assert can_delete(unbound, slurm(UNKNOWN, UNKNOWN)).ground is DeletionGround.NEVER_BOUND


@pytest.mark.parametrize(
    "answer",
    [
        slurm(known_nodes(node(0, "ALLOCATED"))),
        slurm(known_nodes(node(0)), (job(1, 0, state="SUSPENDED"),)),
        slurm(known_nodes(node(0, "IDLE"))),
        slurm(known_nodes(node(0, "IDLE", "NOT_RESPONDING"))),
        slurm(known_nodes(node(0, "DOWN")), (job(1, 0),)),
        slurm(known_nodes(node(0, "DOWN", "COMPLETING"))),
        slurm(known_nodes(node(0, "ERROR", "COMPLETING", "DRAIN"))),
        slurm(known_nodes(node(0, "UNKNOWN"))),
        slurm(known_nodes(node(0, "UNKNOWN", "DRAIN")), (job(1, 0),)),
        slurm(known_nodes(), UNKNOWN),
        slurm(UNKNOWN, UNKNOWN),
        slurm(UNKNOWN),
    ],
)
def test_slurm_may_know_better_than_a_late_kubelet(answer: SlurmSnapshot) -> None:
    assert not can_delete(pod(phase="Pending", ready=False, slurmd=waiting()), answer).allowed


def test_a_bound_pod_of_which_the_kubelet_said_nothing_may_run() -> None:
    assert not can_delete(pod(phase="Pending", ready=False), slurm(UNKNOWN, UNKNOWN)).allowed


def test_a_restarted_slurmd_has_started_once() -> None:
    crashed = pod(ready=False, slurmd=waiting("CrashLoopBackOff", restarts=1))
    assert not can_delete(crashed, slurm(UNKNOWN, UNKNOWN)).allowed


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_goes_without_slurm(phase: str) -> None:
    ended = pod(phase=phase, ready=False)
    assert can_delete(ended, slurm(UNKNOWN, UNKNOWN)).ground is DeletionGround.FINISHED


def test_a_crash_loop_goes_when_slurm_does_not_know_it() -> None:
    crashed = pod(ready=False, slurmd=waiting("CrashLoopBackOff", restarts=3))
    assert can_delete(crashed, slurm(known_nodes(ELSE))).ground is DeletionGround.STOPPED
    assert can_delete(crashed, slurm(known_nodes())).ground is DeletionGround.STOPPED
    assert not can_delete(crashed, slurm(known_nodes(), UNKNOWN)).allowed


def test_a_crash_loop_that_slurm_knows_must_be_drained() -> None:
    crashed = pod(ready=False, slurmd=waiting("CrashLoopBackOff", restarts=3))
    assert not can_delete(crashed, slurm(known_nodes(node(0, "DOWN")))).allowed
    assert can_delete(crashed, slurm(known_nodes(node(0, "DOWN", "DRAIN")))).allowed


def test_a_terminating_pod_is_not_deleted_again() -> None:
    assert not can_delete(pod(deleted=True), slurm(known_nodes(DRAINED))).allowed


def test_with_nodeset_and_controller_gone_nothing_is_asked() -> None:
    verdict = can_delete(pod(), slurm(UNKNOWN, UNKNOWN), abandoned=True)
    assert verdict.ground is DeletionGround.CONTROLLER_GONE


def test_a_pod_on_the_host_network_is_judged_by_its_hosts_short_name() -> None:
    hosted = pod(host_network=True, slurmd=running())
    machine = Node("machine-0", frozenset({"IDLE", "DRAIN"}))
    assert can_delete(hosted, slurm(known_nodes(machine))).allowed
    assert not can_delete(hosted, slurm(known_nodes(DRAINED))).allowed


def test_the_refusal_names_the_jobs_and_their_times() -> None:
    held = job(17, 0, start_time=1_799_999_400, time_limit=60)
    verdict = can_delete(pod(), slurm(known_nodes(node(0, "ALLOCATED")), (held,)))
    assert verdict.why.message == (
        "job 17 (since 2027-01-15T07:50:00Z, until 2027-01-15T08:50:00Z)"
    )
