"""A second, tiny API: its workers live by the same decisions, under its own names and marks."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import OwnerReference
from penstock.decide.action import CreatePod, DeletePod, DrainNode, PatchPod, SetNodeComment
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed.view import WorkerSetView
from penstock.model.worker_names import WorkerNames
from penstock.model.worker_set import WorkerSet
from penstock.slurm.known import Known
from penstock.slurm.state import Job, Node
from penstock.translate.slinky.worker_set import worker_set
from support import nodesets
from support.tiny_api import GROUP, MARKS

NAMES = WorkerNames(
    pod_prefix="crew-compute-w",
    host_prefix="n",
    padding=3,
    uid="nodeset-uid",
    reservation="tiny-compute",
    feature="compute",
)


def crew(replicas: int, **changes: Any) -> WorkerSet:
    """The workers of one Crew: no key of theirs is one of slurm-operator."""
    found = worker_set(nodesets.nodeset(replicas, **changes))
    return dataclasses.replace(
        found,
        api_version=f"{GROUP}/v1",
        kind="Crew",
        names=NAMES,
        marks=MARKS,
        selector={f"{GROUP}/crew": "compute"},
        last=dataclasses.replace(found.last, selector=f"{GROUP}/crew=compute"),
    )


def pod(ordinal: int, **annotations: str) -> Pod:
    """A worker of the Crew that is Ready and registered."""
    made = nodesets.pod(name=NAMES.pod(ordinal), host=NAMES.host(ordinal), annotations=annotations)
    labels = {f"{GROUP}/revision": "new", f"{GROUP}/role": "worker"}
    owner = OwnerReference(f"{GROUP}/v1", "Crew", "compute", "nodeset-uid", controller=True)
    meta = msgspec.structs.replace(made.metadata, labels=labels, owner_references=(owner,))
    return msgspec.structs.replace(made, metadata=meta)


def node(ordinal: int, *state: str, reason: str = "", comment: str = "") -> Node:
    return Node(NAMES.host(ordinal), frozenset(state or ("IDLE",)), reason=reason, comment=comment)


def view(workers: WorkerSet, *pods: Pod, nodes: tuple[Node, ...], **more: Any) -> WorkerSetView:
    known = Known({one.name: one for one in nodes}, 1.0)
    made = nodesets.view(nodesets.nodeset(), *pods, nodes=known, **more)
    return dataclasses.replace(made, workers=workers)


def of(kind: type[Any], found: Plan) -> list[Any]:
    return [one for one in found.actions if isinstance(one, kind)]


def test_pods_and_slurm_nodes_have_the_names_of_the_api() -> None:
    made = of(CreatePod, plan(view(crew(2), nodes=())))
    assert [(one.slot.pod, one.slot.slurm_node) for one in made] == [
        ("crew-compute-w000", "n000"),
        ("crew-compute-w001", "n001"),
    ]


def test_scale_in_marks_drains_and_deletes_by_the_marks_of_the_api() -> None:
    """First the mark, then the drain, then the pod: one step for each plan."""
    nodes = (node(0), node(1))
    (mark,) = of(PatchPod, plan(view(crew(1), pod(0), pod(1), nodes=nodes)))
    assert mark.name == "crew-compute-w001"
    assert mark.annotations[f"{GROUP}/drain"] == "true"
    marked = pod(1, **{key: value for key, value in mark.annotations.items() if value})
    (drain,) = of(DrainNode, plan(view(crew(1), pod(0), marked, nodes=nodes)))
    key = "slurm/crew-compute-w001"
    assert drain.reason == f"tiny: Pod ({key}) is pending termination for scale-in"
    drained = (node(0), node(1, "IDLE", "DRAIN", reason=drain.reason))
    (gone,) = of(DeletePod, plan(view(crew(1), pod(0), marked, nodes=drained)))
    assert (gone.name, gone.node) == ("crew-compute-w001", "n001")


def test_no_worker_with_a_job_goes() -> None:
    drained = node(1, "ALLOCATED", "DRAIN", reason="tiny: x")
    job = Job(7, frozenset({"RUNNING"}), nodes=("n001",))
    seen = view(crew(1), pod(0), pod(1), nodes=(node(0), drained), jobs=(job,))
    assert of(DeletePod, plan(seen)) == []


def test_reasons_name_the_kind_of_the_api() -> None:
    cordon = {f"{GROUP}/drain": "true", "nodeset.penstock.dev/cordoned-for": "deletion since x"}
    seen = view(crew(1, deleted=nodesets.NOW), pod(0, **cordon), nodes=(node(0),))
    (drain,) = of(DrainNode, plan(seen))
    assert drain.reason.endswith("is pending termination for Crew deletion")


@pytest.mark.parametrize("reason", ["bad disk", "slurm-operator: Pod (a/b) was cordoned"])
def test_a_drain_without_the_prefix_of_the_api_is_somebody_elses(reason: str) -> None:
    """It stands, and a pod that comes back is drained for it again."""
    seen = view(crew(1), pod(0), nodes=(node(0, "IDLE", "DRAIN", reason=reason),))
    (comment,) = of(SetNodeComment, plan(seen))
    assert f'"drain":"{reason}"' in comment.comment


def test_nothing_of_another_api_is_in_what_is_done() -> None:
    steps = [
        plan(view(crew(2), nodes=())),
        plan(view(crew(1), pod(0), pod(1), nodes=(node(0), node(1)))),
        plan(view(crew(0, deleted=nodesets.NOW), pod(0), nodes=(node(0),))),
    ]
    for found in steps:
        assert found.actions
        told = [one for one in found.actions if not isinstance(one, SetNodeComment)]
        assert "slinky" not in repr(found)
        assert "NodeSet" not in repr(told)
