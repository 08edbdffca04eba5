"""Features and weight that somebody changed in Slurm, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

from penstock.api.cluster import marks
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.observed import node_comment
from penstock.decide.slurm_node.drift import (
    NodeDrift,
    adopted,
    describe_drift,
    desired_parameters,
    drift,
)
from penstock.decide.slurm_node.parameters import NodeParameters, read
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import node, nodeset, pod


def declared(extra_conf: str = "Feature=fast Weight=2") -> NodeSet:
    return nodeset(2, extra_conf=extra_conf)


def seen(ordinal: int, *features: str, weight: int = 2, live: str | None = None) -> Node:
    name = f"compute-{ordinal}"
    said = node_comment.NodeComment(
        "slurm", name, f"machine-{ordinal}", "compute", "nodeset-uid", live=live
    )
    return node(
        ordinal, features=("compute", *features), weight=weight, comment=said.text(MARKS.comment)
    )


def look(*nodes: Node, of: NodeSet | None = None, confs: dict[str, str] | None = None) -> NodeDrift:
    wanted = of or declared()
    pods = [pod(number) for number in range(len(nodes))]
    given = {"new": wanted.spec.extra_conf} if confs is None else confs
    return drift(worker_set(wanted), pods, {one.name: one for one in nodes}, given)


def test_a_change_by_hand_is_told_by_field_with_both_values_and_few_words() -> None:
    found = look(seen(0, "fast", weight=5), seen(1, "fast", weight=5)).found
    assert describe_drift(found) == "changed in Slurm: nodes compute-[0-1]: Weight is 5, declared 2"
    found = look(seen(0, "fast", "mine"), seen(1, "fast", weight=5)).found
    assert describe_drift(found) == (
        "changed in Slurm: node compute-0: Features is compute,fast,mine, declared compute,fast; "
        "node compute-1: Weight is 5, declared 2"
    )


def test_nodes_as_they_were_given_do_not_drift() -> None:
    found = look(seen(0, "fast"), seen(1, "fast", "penstock/part", "k8s/zone"))
    assert found.found == {}
    assert found.compared == {"compute-0", "compute-1"}


def test_a_node_that_is_on_its_way_is_left_out() -> None:
    wrong = seen(0, "slow", weight=9)
    new = node(0, features=("compute",), weight=1)
    somebodys = node(0, features=("x",), comment="mine")
    assert look(new).found == {}
    assert look(somebodys).found == {}
    # Another template, or what is declared has just changed.
    assert look(wrong, confs={}).found == {}
    assert look(wrong, confs={"new": "Feature=slow"}).found == {}
    assert look(seen(0, "slow", live="Features=compute,slow Weight=1")).found == {}
    assert look(wrong).found.keys() == {"compute-0"}
    assert look(seen(0, "slow", live="Features=compute,fast Weight=2")).found.keys() == {
        "compute-0"
    }


def test_a_node_of_an_adopted_pod_without_the_sets_feature_is_another_operators() -> None:
    """D82: soperator 5.0 declares nodes in slurm.conf, and its NodeSets are lines there."""
    foreign = replace(seen(0, "slow"), features=("slow",))
    named = {foreign.name: foreign}
    confs = {"new": declared().spec.extra_conf}
    adopted_pod = pod(0, annotations={marks.ADOPTED_REVISION: "worker-cpu-1"})
    assert drift(worker_set(declared()), [adopted_pod], named, confs) == NodeDrift()
    assert drift(worker_set(declared()), [pod(0)], named, confs).found.keys() == named.keys()
    ours = {foreign.name: seen(0, "slow")}
    assert drift(worker_set(declared()), [adopted_pod], ours, confs).found.keys() == ours.keys()


def test_a_weight_that_slurmctld_forgot_is_no_drift() -> None:
    told = "Features=compute,fast Weight=2"
    confs = {"new": "Feature=fast"}
    assert look(seen(0, "fast", weight=1, live=told), confs=confs).found == {}
    assert look(seen(0, "fast", weight=5, live=told), confs=confs).found.keys() == {"compute-0"}


def test_put_back_leaves_features_of_others() -> None:
    found = desired_parameters(worker_set(declared()), seen(0, "mine", "penstock/part", weight=9))
    assert found == NodeParameters(frozenset({"compute", "fast", "penstock/part"}), 2)


def test_features_that_a_set_gives_some_of_its_nodes_are_no_drift_and_stay() -> None:
    workers = replace(worker_set(declared()), own_features=frozenset({"big"}))
    nodes = {"compute-0": seen(0, "fast", "big"), "compute-1": seen(1, "fast")}
    confs = {"new": declared().spec.extra_conf}
    found = drift(workers, [pod(0), pod(1)], nodes, confs)
    assert found == NodeDrift({}, frozenset(nodes))
    reverted = desired_parameters(workers, seen(0, "mine", "big"))
    assert reverted.features == {"compute", "fast", "big"}


def test_what_all_nodes_show_is_declared_and_the_rest_of_the_text_stays() -> None:
    for text, nodes, wanted in (
        ("Feature=fast Weight=2", {"weight": 5}, "Feature=fast Weight=5"),
        ("Feature=fast  RealMemory=9 Weight=2", {"weight": 1}, "Feature=fast  RealMemory=9"),
        ("features=fast weight=2", {"features": ("a", "b")}, "features=a,b weight=2"),
        ("Feature=a Weight=2 Features=b", {"features": ("c",)}, "Feature=c Weight=2"),
        ("Gres=gpu:2", {"features": ("c",), "weight": 3}, "Gres=gpu:2 Features=c Weight=3"),
        ("Weight=2", {"weight": 1}, ""),
        ("'Feature=fast' Weight=2", {"features": ()}, "Weight=2"),
    ):
        before = declared(text)
        now = read(text)
        features = nodes.get("features", tuple(now.features))
        weight = nodes.get("weight", now.weight)
        assert isinstance(features, tuple)
        assert isinstance(weight, int)
        shown = [seen(number, *features, weight=weight) for number in range(2)]
        found, why = adopted(worker_set(before), look(*shown, of=before))
        assert why == ""
        assert found.strip() == wanted
        after = read(found)
        assert (after.features, after.weight) == (frozenset(features), weight)


def test_nodes_that_differ_from_each_other_are_not_adopted_and_it_is_said_why() -> None:
    for other in (seen(1, "fast"), seen(1, "fast", weight=6)):
        found, why = adopted(worker_set(declared()), look(seen(0, "fast", weight=5), other))
        assert found == ""
        assert "differ from each other" in why


def test_the_feature_of_the_nodeset_itself_is_not_given_up() -> None:
    bare = node(0, features=("fast",), weight=2, comment=seen(0).comment)
    _, why = adopted(worker_set(declared()), look(bare))
    assert "feature compute is that of the NodeSet" in why
