"""`pinToNode`: a pod with an ordinal returns to the machine that it ran on. Feature row 43."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.api.kubernetes.kinds import Node, NodeSpec, Taint
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.api.slinky.nodeset import NodeSet, NodeSetStatus
from penstock.decide.action import CreatePod
from penstock.decide.nodeset.plan import plan
from support.nodesets import machine, nodeset, pod, view


def pinned(replicas: int = 1, at: dict[str, str] | None = None, **spec: Any) -> NodeSet:
    wanted = nodeset(replicas, **{"pin_to_node": True, **spec})
    return replace(wanted, status=NodeSetStatus(ordinal_to_node=at or {}))


def machines(*found: Node) -> dict[str, Node]:
    return {one.metadata.name: one for one in found}


def places(of: NodeSet, *pods: Any, **at: Node) -> list[str]:
    found = plan(view(of, *pods, kubernetes_nodes=machines(*at.values())))
    return [one.slot.node for one in found.actions if isinstance(one, CreatePod)]


def test_where_a_pod_runs_is_remembered():
    found = plan(view(pinned(), pod(0), kubernetes_nodes=machines(machine(0))))
    assert found.status.ordinal_to_node == {"0": "machine-0"}


def test_a_pod_that_only_waits_there_is_not():
    waits = pod(0, phase="Pending", ready=False)
    found = plan(view(pinned(), waits, kubernetes_nodes=machines(machine(0))))
    assert found.status.ordinal_to_node == {}


def test_the_next_pod_must_go_there():
    assert places(pinned(at={"0": "machine-7"}), one=machine(7)) == ["machine-7"]


def test_it_is_remembered_while_the_ordinal_is_scaled_in():
    found = plan(view(pinned(0, at={"3": "machine-7"}), kubernetes_nodes=machines(machine(7))))
    assert found.status.ordinal_to_node == {"3": "machine-7"}


def test_a_machine_that_is_gone_or_fits_no_more_is_forgotten():
    assert places(pinned(at={"0": "machine-7"})) == [""]
    template = PodTemplate(spec={"nodeSelector": {"slurm": "worker"}})
    assert places(pinned(at={"0": "machine-7"}, template=template), one=machine(7)) == [""]


def test_one_that_is_cordoned_is_waited_for():
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    cordoned = Node(
        metadata=ObjectMeta(name="machine-7"),
        spec=NodeSpec(unschedulable=True, taints=(taint,)),
    )
    assert places(pinned(at={"0": "machine-7"}), one=cordoned) == ["machine-7"]


def test_without_the_option_nothing_is_remembered():
    off = pinned(at={"0": "machine-7"}, pin_to_node=False)
    assert places(off, one=machine(7)) == [""]
    found = plan(view(off, kubernetes_nodes=machines(machine(7))))
    assert found.status.ordinal_to_node == {}
