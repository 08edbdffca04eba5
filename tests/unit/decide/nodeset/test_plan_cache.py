"""A pod about which nothing was to be done is not looked at again until something of it changed.

That memory never changes what is decided: the model of the NodeSet plans each view with and
without it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod, PodCondition
from penstock.api.slinky import labels as slinky_labels
from penstock.decide.nodeset import worker_plan, worker_steps
from penstock.decide.nodeset.plan import plan
from penstock.decide.nodeset.worker_plan import WorkerPlan
from penstock.decide.nodeset.worker_steps import KeepWorker
from penstock.decide.observed.node_comment import NodeComment
from penstock.decide.observed.revisions import Revisions
from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.decide.pod import deadline
from penstock.slurm.known import Known
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS
from support import nodesets

PODS = tuple(nodesets.pod(number) for number in range(3))


@pytest.fixture
def tended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods that were looked at."""
    names: list[str] = []
    inner = worker_plan.plan_worker

    def tend(view: WorkerSetView, step: KeepWorker) -> WorkerPlan:
        names.append(step.worker.name)
        return inner(view, step)

    monkeypatch.setattr(worker_plan, "plan_worker", tend)
    return names


def settled(quiet: PlanCache) -> WorkerSetView:
    """A view that asks for nothing, as all its conditions and comments are written."""
    records: dict[str, Node] = {}
    pods: list[Pod] = []
    for number, pod in enumerate(PODS):
        name = pod.metadata.name
        comment = NodeComment("slurm", name, f"machine-{number}", "compute", "nodeset-uid")
        records[name] = nodesets.node(number, comment=comment.text(MARKS.comment))
        conditions = pod.status.conditions or ()
        idle = PodCondition(type="SlurmNodeStateIdle", status="True", message="")
        status = msgspec.structs.replace(pod.status, conditions=(*conditions, idle))
        pods.append(msgspec.structs.replace(pod, status=status))
    machines = {f"machine-{number}": nodesets.machine(number) for number in range(3)}
    view = nodesets.view(
        nodesets.nodeset(3), *pods, nodes=Known(records, 1.0), kubernetes_nodes=machines
    )
    assert plan(view, quiet).actions == ()
    return view


def test_a_settled_pod_is_not_looked_at_again(tended: list[str]):
    quiet = PlanCache()
    view = settled(quiet)
    tended.clear()
    plan(view, quiet)
    assert tended == []


def changed(view: WorkerSetView, **values: Any) -> WorkerSetView:
    return WorkerSetView(**{**{f: getattr(view, f) for f in view.__dataclass_fields__}, **values})


def test_workers_that_were_replaced_are_dropped():
    """Each has its own pod and Slurm node."""
    quiet = PlanCache()
    view = settled(quiet)
    other = tuple(msgspec.structs.replace(pod) for pod in view.pods)
    plan(changed(view, pods=other), quiet)
    assert quiet.observed is not None
    assert quiet.settled == set(quiet.observed.all)
    fewer = (msgspec.structs.replace(other[0]), other[1])
    plan(changed(view, pods=fewer), quiet)
    assert quiet.settled <= set(quiet.observed.all)


def test_whatever_changes_of_a_pod_makes_it_be_looked_at(tended: list[str]):
    quiet = PlanCache()
    view = settled(quiet)
    assert isinstance(view.nodes, Known)
    again = msgspec.structs.replace(view.pods[1])
    record = nodesets.node(1, "ALLOCATED")
    for other in (
        changed(view, pods=(view.pods[0], again, view.pods[2])),
        changed(view, nodes=Known({**view.nodes.value, "compute-1": record}, 2.0)),
        changed(view, jobs=Known((nodesets.job(7, 1),), 2.0)),
        changed(
            view,
            kubernetes_nodes={
                **view.kubernetes_nodes,
                "machine-1": nodesets.machine(1, cordoned=True),
            },
        ),
    ):
        plan(view, quiet)
        tended.clear()
        plan(other, quiet)
        assert tended == ["compute-1"]


def test_another_revision_makes_all_be_looked_at(tended: list[str]):
    quiet = PlanCache()
    view = settled(quiet)
    tended.clear()
    plan(changed(view, revisions=Revisions("newer")), quiet)
    assert len(tended) == 3


def test_a_pod_whose_job_goes_on_is_not_looked_at_again(tended: list[str]):
    quiet = PlanCache()
    view = settled(quiet)
    jobs = (nodesets.job(7, 1, time_limit=None),)
    busy = changed(view, jobs=Known(jobs, 2.0))
    slurm = SlurmSnapshot.of(busy.nodes, busy.jobs)
    annotations = deadline.changes(MARKS, nodesets.worker(view.pods[1], slurm=slurm))
    meta = view.pods[1].metadata
    labels = {**meta.labels, slinky_labels.POD_PROTECT: app_labels.TRUE}
    meta = msgspec.structs.replace(meta, annotations=annotations, labels=labels)
    pod = msgspec.structs.replace(view.pods[1], metadata=meta)
    busy = changed(busy, pods=(view.pods[0], pod, view.pods[2]))
    assert plan(busy, quiet).actions == ()
    tended.clear()
    plan(busy, quiet)
    assert tended == []


def test_a_pod_that_asks_for_something_is_looked_at_until_it_is_done(tended: list[str]):
    quiet = PlanCache()
    view = settled(quiet)
    assert isinstance(view.nodes, Known)
    busy = {**view.nodes.value, "compute-1": nodesets.node(1, "ALLOCATED")}
    other = changed(view, nodes=Known(busy, 2.0))
    first = plan(other, quiet)
    tended.clear()
    again = plan(other, quiet)
    assert tended == ["compute-1"]
    assert again.actions == first.actions != ()


def test_what_a_decision_that_broke_off_did_not_look_at_is_looked_at(
    tended: list[str], monkeypatch: pytest.MonkeyPatch
):
    quiet = PlanCache()
    view = settled(quiet)
    others = tuple(msgspec.structs.replace(pod) for pod in view.pods)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(worker_steps, "outdated", broken)
        with pytest.raises(ZeroDivisionError):
            plan(changed(view, pods=others), quiet)
    tended.clear()
    plan(changed(view, pods=others), quiet)
    assert len(tended) == 3
