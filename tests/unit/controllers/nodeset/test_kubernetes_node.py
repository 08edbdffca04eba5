from __future__ import annotations

from msgspec.structs import replace

from penstock.api.kubernetes.kinds import Node, NodeStatus, PodCondition, Taint
from penstock.controllers.nodeset.engine import node_matters
from support import nodesets

READY = PodCondition(type="Ready", status="True", reason="KubeletReady", last_transition_time="1")


def machine(**condition: str) -> Node:
    status = NodeStatus(conditions=(replace(READY, **condition),))
    return replace(nodesets.machine(), status=status)


def test_a_heartbeat_of_a_machine_means_nothing():
    beat = machine(last_transition_time="2", message="still well")
    newer = replace(beat, metadata=replace(beat.metadata, resource_version="9"))
    assert not node_matters(machine(), newer)


def test_a_machine_that_comes_goes_or_changes_its_word_matters():
    old = machine()
    assert node_matters(None, old)
    assert node_matters(old, None)
    assert node_matters(old, machine(status="Unknown"))
    assert node_matters(old, machine(reason="NodeStatusUnknown"))
    cordoned = replace(old, spec=replace(old.spec, unschedulable=True))
    assert node_matters(old, cordoned)
    tainted = replace(old, spec=replace(old.spec, taints=(Taint(key="a", effect="NoExecute"),)))
    assert node_matters(old, tainted)
    worded = replace(old, metadata=replace(old.metadata, annotations={"why": "repair"}))
    assert node_matters(old, worded)
    labelled = replace(old, metadata=replace(old.metadata, labels={"slurm": "worker"}))
    assert node_matters(old, labelled)
