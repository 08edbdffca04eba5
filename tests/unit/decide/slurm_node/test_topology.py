"""A machine's annotation says where its workers' Slurm nodes are; only those are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import labels as slinky_labels
from penstock.decide.action import (
    Action,
    PatchPod,
    SetNodeComment,
    SetNodeTopology,
    SetPodConditions,
    TopologyRejection,
)
from penstock.decide.nodeset.plan import Plan, plan
from penstock.decide.observed import node_comment
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.plan_cache import PlanCache
from penstock.decide.slurm_node import topology
from penstock.slurm import state as model
from penstock.translate.slinky.worker_set import MARKS
from support.nodesets import NOW, UNKNOWN, known_nodes, machine, node, nodeset, pod, view

HERE, THERE = "topo-switch:s1", "topo-switch:s2"


def at(place: str | None, ordinal: int = 0) -> KubernetesNode:
    """A machine with this annotation; without any when it is None."""
    found = machine(ordinal)
    notes = {} if place is None else {slinky_labels.TOPOLOGY: place}
    meta = msgspec.structs.replace(found.metadata, annotations=notes)
    return msgspec.structs.replace(found, metadata=meta)


def worker(copied: str | None = None, ordinal: int = 0, **more: Any) -> Pod:
    notes = {} if copied is None else {slinky_labels.TOPOLOGY: copied}
    return pod(ordinal, annotations=notes, **more)


def slurm(place: str, told: str | None = None, ordinal: int = 0) -> model.Node:
    """A node that is there in Slurm; `told` is what its comment remembers."""
    name = f"compute-{ordinal}"
    said = node_comment.NodeComment(
        "slurm", name, f"machine-{ordinal}", "compute", "nodeset-uid", topology=told
    )
    return node(ordinal, topology=place, comment=said.text(MARKS.comment))


def look(
    place: str | None, found: Pod, record: model.Node | None, **more: Any
) -> tuple[WorkerSetView, Plan]:
    nodes = known_nodes() if record is None else known_nodes(record)
    machines = {"machine-0": at(place)}
    seen = view(nodeset(1), found, nodes=nodes, kubernetes_nodes=machines, **more)
    return seen, plan(seen)


def ours(decided: Plan) -> list[Action]:
    """All but the pods' conditions."""
    return [one for one in decided.actions if not isinstance(one, SetPodConditions)]


def places(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    return [(one.node, one.topology) for one in actions if isinstance(one, SetNodeTopology)]


def copies(actions: tuple[Action, ...]) -> list[str | None]:
    patches = [one for one in actions if isinstance(one, PatchPod)]
    return [
        one.annotations[slinky_labels.TOPOLOGY]
        for one in patches
        if slinky_labels.TOPOLOGY in one.annotations
    ]


def comments(actions: tuple[Action, ...]) -> list[str | None]:
    comments = [one.comment for one in actions if isinstance(one, SetNodeComment)]
    found = [node_comment.read(MARKS.comment, one) for one in comments]
    return [one.topology for one in found if one is not None]


def test_the_annotation_is_copied_to_the_pod_when_slurm_has_taken_it() -> None:
    _, decided = look(HERE, worker("", ready=False, phase="Pending"), None)
    assert copies(decided.actions) == []
    _, decided = look(HERE, worker(""), slurm(""))
    assert (copies(decided.actions), places(decided.actions)) == ([], [("compute-0", HERE)])
    _, decided = look(HERE, worker(""), slurm(HERE))
    assert (copies(decided.actions), places(decided.actions)) == ([HERE], [])


@pytest.mark.parametrize("copied", ["", None])
def test_a_pod_of_a_machine_that_says_nothing_is_left_alone(copied: str | None) -> None:
    _, decided = look(None, worker(copied), slurm(""))
    assert ours(decided) == []


def test_a_changed_annotation_is_told_to_slurm_for_that_node_only() -> None:
    """Feature row 49."""
    pods = [worker(HERE, number) for number in range(3)]
    nodes = known_nodes(*(slurm(HERE, HERE, number) for number in range(3)))
    machines = {f"machine-{n}": at(THERE if n == 1 else HERE, n) for n in range(3)}
    decided = plan(view(nodeset(3), *pods, nodes=nodes, kubernetes_nodes=machines))
    assert places(decided.actions) == [("compute-1", THERE)]
    assert len(ours(decided)) == 1


def test_what_slurm_has_is_remembered_once() -> None:
    _, decided = look(HERE, worker(HERE), slurm(HERE))
    assert comments(decided.actions) == [HERE]
    assert places(decided.actions) == []
    _, decided = look(HERE, worker(HERE), slurm(HERE, HERE))
    assert ours(decided) == []


def test_what_was_told_is_taken_back_with_the_annotation() -> None:
    _, decided = look(None, worker(HERE), slurm(HERE, HERE))
    assert places(decided.actions) == [("compute-0", "")]
    assert copies(decided.actions) == [None]
    _, decided = look(None, worker(""), slurm("", HERE))
    assert comments(decided.actions) == [None]


def test_what_a_user_gave_a_node_stays_where_machines_say_nothing() -> None:
    _, decided = look(None, worker(""), slurm(THERE))
    assert ours(decided) == []
    _, decided = look(None, worker(""), slurm(THERE, HERE))
    assert places(decided.actions) == []


def test_nothing_is_told_while_slurm_or_the_machine_is_not_known() -> None:
    seen = view(nodeset(1), worker(HERE), nodes=UNKNOWN, kubernetes_nodes={"machine-0": at(THERE)})
    assert places(plan(seen).actions) == []
    unknown = view(nodeset(1), worker(HERE), nodes=known_nodes(slurm(HERE, HERE)))
    assert ours(plan(unknown)) == []


def refused(topology: str = "nosuch:s1", again_in: float = 20) -> dict[str, TopologyRejection]:
    return {"compute-0": TopologyRejection(topology, "Invalid topology", NOW + again_in)}


def failing(findings: tuple[Finding, ...]) -> list[str]:
    return [one.reason for one in findings if one.ok is not True]


def test_a_refusal_is_told_in_slurm_s_words_and_not_repeated_at_once() -> None:
    """Feature row 49."""
    _, decided = look(
        "nosuch:s1", worker("nosuch:s1"), slurm(HERE, HERE), rejected_topologies=refused()
    )
    assert ours(decided) == []
    assert failing(decided.findings) == ["TopologyRefused"]
    assert "compute-0: nosuch:s1 (Invalid topology)" in decided.findings[0].message
    assert decided.requeue_after == 20


def test_a_refusal_is_tried_again_after_a_while() -> None:
    found, record = worker("nosuch:s1"), slurm(HERE, HERE)
    _, decided = look("nosuch:s1", found, record, rejected_topologies=refused())
    (told,) = decided.actions
    assert isinstance(told, SetPodConditions)
    every = (*(found.status.conditions or ()), *told.conditions)
    status = msgspec.structs.replace(found.status, conditions=every)
    found = msgspec.structs.replace(found, status=status)
    first, _ = look("nosuch:s1", found, record, rejected_topologies=refused())
    quiet = PlanCache()
    assert plan(first, quiet).actions == plan(first, quiet).actions == ()
    later = replace(first, now=NOW + 21)
    assert places(plan(later, quiet).actions) == [("compute-0", "nosuch:s1")]


def test_another_annotation_is_told_although_the_last_was_refused() -> None:
    _, decided = look(THERE, worker("nosuch:s1"), slurm(HERE, HERE), rejected_topologies=refused())
    assert places(decided.actions) == [("compute-0", THERE)]
    assert failing(decided.findings) == []
    _, decided = look(THERE, worker(THERE), slurm(THERE, THERE), rejected_topologies=refused())
    assert (ours(decided), failing(decided.findings)) == ([], [])


def test_the_rest_of_a_node_does_not_wait_for_its_topology() -> None:
    old = node(0, topology="", comment="")
    _, decided = look("nosuch:s1", worker("nosuch:s1"), old, rejected_topologies=refused())
    assert comments(decided.actions) == [None]


def test_a_topology_of_aliases_is_read_as_it_is_written() -> None:
    """A kilobyte of aliases stands for more than any memory holds."""
    bomb = "".join(f"  x{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
    text = f"- topology: a\n  x0: &a0 [x,x]\n{bomb}  tree:\n    switches:\n    - switch: s1\n"
    assert topology.exists("a:s1", {"topology.yaml": text})
    assert not topology.exists("a:x", {"topology.yaml": text})
    assert not topology.exists("a:s1", {"topology.yaml": "[" * 1000 + text})
