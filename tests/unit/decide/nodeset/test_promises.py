"""The promises, on views that no story led to: whatever is seen, this is never decided."""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import ContainerStatus, Pod
from penstock.api.slinky.labels import (
    POD_CORDON,
    POD_CORDON_SHORT,
    POD_DELETION_COST,
    REASON_PREFIX,
)
from penstock.decide.action import (
    CreatePod,
    DeleteNodeRecord,
    DeletePod,
    DeletionGround,
    DrainNode,
    PowerDownNode,
    RegisterNode,
    RemoveFinalizer,
    ResumeNode,
    SetNodeComment,
    UndrainNode,
)
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed.deletion import deletion_of
from penstock.decide.observed.node_comment import NodeComment
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm.known import Known, Unknown
from penstock.slurm.state import Job, Node
from penstock.translate.slinky.worker_set import MARKS
from support import nodesets

MANY = settings(
    # More on demand: PENSTOCK_EXAMPLES=100000.
    max_examples=int(os.environ.get("PENSTOCK_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
STATES = st.sampled_from(
    [
        "IDLE",
        "ALLOCATED",
        "MIXED",
        "DOWN",
        "UNKNOWN",
        "DRAIN",
        "UNDRAIN",
        "COMPLETING",
        "NOT_RESPONDING",
        "FAIL",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "POWERING_UP",
    ]
)
REASONS = st.sampled_from(
    [
        "",
        "Manual maintenance",
        "Not responding",
        f"{REASON_PREFIX}Pod is terminating",
        f"{REASON_PREFIX}Pod (slurm/compute-0) is pending termination for scale-in",
        f"{REASON_PREFIX}Pod (slurm/compute-1) was cordoned",
    ]
)
JOB_STATES = st.sampled_from(
    ["RUNNING", "SUSPENDED", "COMPLETED+COMPLETING", "COMPLETED", "PENDING", "RUNNING+CONFIGURING"]
)
CONTAINERS = st.sampled_from(
    [None, nodesets.running(), nodesets.waiting(), nodesets.waiting("CrashLoopBackOff", 2)]
)
ORDINALS = st.integers(0, 3)


@st.composite
def pods(draw: st.DrawFn, ordinal: int) -> Pod:
    keys = st.sampled_from([POD_CORDON, POD_CORDON_SHORT, CORDONED_FOR, POD_DELETION_COST])
    slurmd: ContainerStatus | None = draw(CONTAINERS)
    return nodesets.pod(
        ordinal,
        phase=draw(st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown"])),
        ready=draw(st.booleans()),
        bound=draw(st.booleans()),
        slurmd=slurmd,
        annotations=draw(st.dictionaries(keys, st.sampled_from(["true", "5", "scale-in"]))),
        deleted=draw(st.integers(0, 4)) == 0,
    )


@st.composite
def nodes(draw: st.DrawFn, ordinal: int) -> Node:
    uid = draw(st.sampled_from(["nodeset-uid", "another"]))
    record = NodeComment("slurm", f"compute-{ordinal}", "machine-0", "compute", uid, draw(REASONS))
    return nodesets.node(
        ordinal,
        *draw(st.sets(STATES, min_size=1, max_size=4)),
        reason=draw(REASONS),
        comment=draw(st.sampled_from(["", "rack 7", record.text(MARKS.comment)])),
    )


@st.composite
def views(draw: st.DrawFn) -> WorkerSetView:
    found = [draw(pods(ordinal)) for ordinal in draw(st.sets(ORDINALS))]
    known = {node.name: node for n in draw(st.sets(ORDINALS)) for node in [draw(nodes(n))]}
    jobs = tuple(
        nodesets.job(n + 1, *draw(st.sets(ORDINALS, min_size=1)), state=draw(JOB_STATES))
        for n in range(draw(st.integers(0, 2)))
    )
    silent = st.integers(0, 4).map(lambda dice: dice == 0)
    deleted = draw(st.sampled_from([None, None, nodesets.NOW - 10, nodesets.NOW - 1000]))
    seen = nodesets.view(
        nodesets.nodeset(draw(st.integers(0, 4)), deleted=deleted),
        *found,
        nodes=nodesets.UNKNOWN if draw(silent) else Known(known, 1.0),
        jobs=nodesets.UNKNOWN if draw(silent) else jobs,
        controller=draw(st.sampled_from(ControllerState)),
        kubernetes_nodes={
            f"machine-{n}": nodesets.machine(n, cordoned=draw(st.booleans())) for n in range(2)
        },
    )
    powered = draw(st.none() | st.frozensets(ORDINALS))
    if powered is None:
        return seen
    workers = replace(seen.workers, powered=powered, replicas=len(powered), power_saved=4)
    return replace(seen, workers=workers)


def holds(job: Job, node: str) -> bool:
    over = "COMPLETED" in job.state or "PENDING" in job.state
    return node in job.nodes and (not over or "COMPLETING" in job.state)


@MANY
@given(seen=views())
def test_no_pod_is_deleted_whose_slurmd_may_have_a_job(seen: WorkerSetView) -> None:
    found = {pod.metadata.name: pod for pod in seen.pods}
    for action in plan(seen).actions:
        if not isinstance(action, DeletePod) or deletion_of(seen).is_orphaned:
            continue
        pod = found[action.name]
        assert not pod.metadata.deleting
        slurmd = pod.status.container_statuses
        if pod.status.phase in {"Failed", "Succeeded"} or (
            slurmd is None and not pod.spec.node_name
        ):
            continue
        if slurmd is not None and slurmd[0].state.running is None:
            if isinstance(seen.jobs, Known):
                assert not any(holds(job, action.node) for job in seen.jobs.value)
            continue
        assert isinstance(seen.nodes, Known)
        assert isinstance(seen.jobs, Known)
        node = seen.nodes.value[action.node]
        if action.guard is DeletionGround.NOT_REBOOTED:
            assert "POWERING_UP" in node.state
            assert "COMPLETING" not in node.state
            assert all(
                "CONFIGURING" in job.state for job in seen.jobs.value if holds(job, action.node)
            )
            continue
        if action.guard is DeletionGround.POWERED_DOWN:
            assert node.state & {"POWERED_DOWN", "POWERING_DOWN"}
            assert not node.state & {"POWERING_UP", "ALLOCATED", "MIXED", "COMPLETING"}
            assert not any(holds(job, action.node) for job in seen.jobs.value)
            continue
        assert "DRAIN" in node.state
        assert not node.state & {"UNDRAIN", "ALLOCATED", "MIXED", "COMPLETING", "UNKNOWN"}
        assert not any(holds(job, action.node) for job in seen.jobs.value)


@MANY
@given(seen=views())
def test_no_drain_of_somebody_else_is_undone_or_reworded(seen: WorkerSetView) -> None:
    for action in plan(seen).actions:
        if not isinstance(action, DrainNode | UndrainNode | ResumeNode):
            continue
        assert isinstance(seen.nodes, Known)
        node = seen.nodes.value[action.node]
        if "DRAIN" in node.state and "UNDRAIN" not in node.state:
            assert node.reason.startswith(REASON_PREFIX)


@MANY
@given(seen=views())
def test_a_silent_slurm_is_told_nothing(seen: WorkerSetView) -> None:
    if isinstance(seen.nodes, Known) and isinstance(seen.jobs, Known) and seen.nodes.value:
        return
    kinds = DrainNode | UndrainNode | ResumeNode | PowerDownNode | SetNodeComment | DeleteNodeRecord
    assert not any(isinstance(action, kinds) for action in plan(seen).actions)


@MANY
@given(seen=views())
def test_a_record_goes_only_without_pod_and_job(seen: WorkerSetView) -> None:
    for action in plan(seen).actions:
        if isinstance(action, DeleteNodeRecord):
            assert action.node not in {pod.metadata.name for pod in seen.pods}
            assert isinstance(seen.jobs, Known)
            assert not any(holds(job, action.node) for job in seen.jobs.value)
            assert not isinstance(seen.nodes, Unknown)
            assert '"another"' not in seen.nodes.value[action.node].comment


@MANY
@given(seen=views())
def test_a_powered_set_creates_only_active_nodes_and_keeps_all_records(seen: WorkerSetView) -> None:
    workers = seen.workers
    if workers.powered is None:
        return
    names = {workers.names.pod(number) for number in workers.powered}
    actions = plan(seen).actions
    assert {one.slot.pod for one in actions if isinstance(one, CreatePod)} <= names
    assert not any(isinstance(one, DeleteNodeRecord | RegisterNode) for one in actions)
    for one in actions:
        if isinstance(one, PowerDownNode):
            assert one.node not in {workers.names.host(number) for number in workers.powered}


@MANY
@given(seen=views())
def test_a_nodeset_goes_only_after_its_pods(seen: WorkerSetView) -> None:
    if any(isinstance(action, RemoveFinalizer) for action in plan(seen).actions):
        assert seen.deleting
        assert seen.pods == ()


@MANY
@given(seen=views())
def test_the_decision_is_the_same_each_time_and_says_why(seen: WorkerSetView) -> None:
    found = plan(seen)
    assert plan(seen) == found
    assert found.findings
    assert all(finding.reason and finding.message for finding in found.findings)
