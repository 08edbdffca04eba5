"""How slurmctld, slurmrestd and login are doing, in words that help."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodCondition,
    StatefulSet,
    WorkloadStatus,
)
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.catalog.reasons.pods import PodReason
from penstock.decide.observed.pod_failure import PodFailure, pod_failure
from penstock.decide.pod.workload import crashed, is_outdated, stuck, workload


def pod(
    *, ready: bool = False, deleted: bool = False, conditions: tuple[PodCondition, ...] = ()
) -> Pod:
    found = PodCondition(type="Ready", status="True" if ready else "False")
    meta = ObjectMeta(name="slurm-0", deletion_timestamp="now" if deleted else None)
    one = Pod(metadata=meta)
    return replace(one, status=replace(one.status, conditions=(found, *conditions)))


def waiting(reason: str, *, message: str = "", last: str = "", init: bool = False) -> Pod:
    ended = ContainerTerminated(exit_code=1, message=last) if last else None
    container = ContainerStatus(
        name="slurmctld",
        state=ContainerState(waiting=ContainerWaiting(reason=reason, message=message or None)),
        last_state=ContainerState(terminated=ended),
    )
    field = "init_container_statuses" if init else "container_statuses"
    one = pod()
    return replace(one, status=replace(one.status, **{field: (container,)}))


def test_enough_ready_pods_are_well():
    assert workload("slurmctld", 1, [pod(ready=True)]) == Finding(
        True, PodReason.READY, "1 of 1 slurmctld pods are ready"
    )
    assert workload("login", 0, []).ok is True


def test_a_pod_that_ends_does_not_count():
    assert workload("slurmctld", 1, [pod(ready=True, deleted=True)]).ok is None


def test_a_pod_that_starts_is_waited_for():
    found = workload("slurmctld", 1, [waiting("ContainerCreating")])
    assert (found.ok, found.reason) == (None, "PodsNotReady")


def test_a_pod_that_cannot_start_needs_somebody_and_says_which_and_why():
    found = workload("slurmctld", 1, [waiting("ImagePullBackOff", message="not found")])
    assert (found.ok, found.reason) == (False, "PodsFailing")
    assert "slurm-0: container slurmctld ImagePullBackOff (not found)" in found.message


def test_a_crash_loop_tells_the_last_words_of_the_container():
    """S059."""
    last = "starting\n\nfatal: no\n  fatal: key  \n fatal: file\n"
    told = pod_failure(waiting("CrashLoopBackOff", message="back-off 10s", last=last))
    words = "slurm-0: container slurmctld CrashLoopBackOff (fatal: no / fatal: key / fatal: file)"
    assert told == PodFailure(words, needs_action=True)


def test_the_trouble_of_an_init_container_is_told_too():
    assert pod_failure(waiting("CreateContainerConfigError", init=True)) is not None


def test_a_pod_without_a_machine_says_what_the_scheduler_says():
    unplaced = PodCondition(type="PodScheduled", status="False", message="0/1 nodes are available")
    words = "slurm-0 has no Kubernetes node: 0/1 nodes are available"
    assert pod_failure(pod(conditions=(unplaced,))) == PodFailure(words, needs_action=False)
    found = workload("slurmctld", 1, [pod(conditions=(unplaced,))])
    assert (found.ok, found.reason) == (None, "PodsNotReady")
    assert words in found.message


def test_a_container_that_ended_is_told_from_one_that_starts():
    assert crashed(waiting("CrashLoopBackOff"), "slurmctld")
    assert not crashed(waiting("ContainerCreating"), "slurmctld")
    assert not crashed(waiting("CrashLoopBackOff"), "logfile")
    failed = ContainerState(terminated=ContainerTerminated(exit_code=1))
    runs = ContainerState(running=ContainerRunning())
    assert crashed(with_slurmctld(ContainerStatus(name="slurmctld", state=failed)), "slurmctld")
    again = ContainerStatus(name="slurmctld", state=runs, last_state=failed)
    assert crashed(with_slurmctld(again), "slurmctld")
    assert not crashed(with_slurmctld(replace(again, ready=True)), "slurmctld")
    assert not crashed(with_slurmctld(ContainerStatus(name="slurmctld", state=runs)), "slurmctld")


@pytest.mark.parametrize("state", [None, ContainerState(running=ContainerRunning())])
def test_a_daemon_that_was_killed_did_not_end_on_its_files(state: ContainerState | None):
    killed = ContainerState(terminated=ContainerTerminated(exit_code=137))
    found = ContainerStatus(name="slurmctld", state=state or killed, last_state=killed)
    assert not crashed(with_slurmctld(found), "slurmctld")


def with_slurmctld(container: ContainerStatus) -> Pod:
    one = pod()
    return replace(one, status=replace(one.status, container_statuses=(container,)))


def test_a_daemon_that_works_counts_while_a_container_beside_it_starts_again():
    one = with_slurmctld(ContainerStatus(name="slurmctld", ready=True))
    assert workload("slurmctld", 1, [one]).ok is True
    assert workload("slurmrestd", 1, [one]).ok is None


def test_an_image_that_cannot_be_pulled_is_told_in_the_same_words_at_each_try():
    back_off = waiting("ImagePullBackOff", message='Back-off pulling "x": ErrImagePull: not there')
    assert pod_failure(back_off) == pod_failure(waiting("ErrImagePull", message="not there"))
    words = "slurm-0: container slurmctld ErrImagePull (not there)"
    assert pod_failure(back_off) == PodFailure(words, needs_action=True)


def test_the_same_last_words_are_the_same_at_any_time():
    def said(second: int) -> PodFailure | None:
        line = f"[2026-01-01T00:00:{second:02}.123] fatal: no"
        last = f"{line}\npenstock: slurmctld ended with status 1\n"
        return pod_failure(waiting("CrashLoopBackOff", last=last))

    assert said(1) == said(2)
    assert said(1) == PodFailure("slurm-0: container slurmctld CrashLoopBackOff (fatal: no)", True)


def test_a_pod_that_its_statefulset_would_wait_for_in_vain_is_known():
    def of(revision: str, container: ContainerStatus) -> Pod:
        one = pod()
        labels = {"controller-revision-hash": revision}
        return replace(
            one,
            metadata=replace(one.metadata, labels=labels),
            status=replace(one.status, container_statuses=(container,)),
        )

    broken = ContainerStatus(
        name="slurmctld", state=ContainerState(waiting=ContainerWaiting(reason="PodInitializing"))
    )
    running = ContainerStatus(name="slurmctld", state=ContainerState(running=ContainerRunning()))
    assert stuck(of("old", broken), "slurmctld", "new")
    assert not stuck(of("new", broken), "slurmctld", "new")
    assert not stuck(of("old", running), "slurmctld", "new")
    assert not stuck(of("old", broken), "slurmctld", None)
    assert not stuck(pod(), "slurmctld", "new")


@pytest.mark.parametrize(
    ("generation", "observed", "revision", "outdated"),
    [
        (2, 2, "new", True),
        (2, 1, "old", True),
        (2, 2, "old", False),
        (1, None, None, False),
    ],
    ids=["another-revision", "not-observed", "current", "never-observed"],
)
def test_a_pod_is_outdated_once_its_statefulset_has_a_newer_template(
    generation: int, observed: int | None, revision: str | None, outdated: bool
):
    meta = ObjectMeta(name="slurm", generation=generation)
    status = WorkloadStatus(observed_generation=observed, update_revision=revision)
    labels = {"controller-revision-hash": "old"}
    one = pod()
    one = replace(one, metadata=replace(one.metadata, labels=labels))
    assert is_outdated(one, StatefulSet(metadata=meta, status=status)) is outdated


def test_a_pod_without_statefulset_is_not_outdated():
    assert not is_outdated(pod(), None)


LOG = """[2026-11-27T02:00:00.000] error: spank: plugstack.conf:2: Failed to load plugin \
spank_pyxis.so. Aborting.
[2026-11-27T02:00:00.001] error: a
[2026-11-27T02:00:00.002] error: b
[2026-11-27T02:00:00.003] fatal: c
"""


def test_a_plug_in_that_the_image_lacks_is_named_with_the_next_step():
    found = workload("slurmctld", 1, [waiting("CrashLoopBackOff", last=LOG)])
    assert (found.ok, found.reason) == (False, "PodsFailing")
    assert found.message.endswith(
        ". Use an image that has spank_pyxis.so, or make it optional in plugstack.conf "
        "(SlurmCluster: set spec.plugStackConfig.pyxis.required to false)"
    )
    other = LOG.replace("spank_pyxis", "extra")
    found = workload("slurmctld", 1, [waiting("CrashLoopBackOff", last=other)])
    assert found.message.endswith("has extra.so, or make it optional in plugstack.conf")


def test_another_end_has_no_advice_about_plug_ins():
    found = workload("slurmctld", 1, [waiting("CrashLoopBackOff", last="fatal: no\n")])
    assert found.message.endswith("CrashLoopBackOff (fatal: no)")
