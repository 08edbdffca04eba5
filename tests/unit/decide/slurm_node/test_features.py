"""Features of Kubernetes Nodes on their Slurm nodes. Feature row 50."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.kubernetes.kinds import Node
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.labels import FEATURES
from penstock.decide.action import SetNodeFeatures
from penstock.decide.nodeset.plan import plan
from penstock.decide.slurm_node.features import merged
from support.nodesets import known_nodes, node, nodeset, pod, view


def machine(words: str | None) -> dict[str, Node]:
    notes = {FEATURES: words} if words is not None else {}
    return {"machine-0": Node(metadata=ObjectMeta(name="machine-0", annotations=notes))}


def given(words: str | None, *have: str, active: tuple[str, ...] | None = None) -> list[set[str]]:
    one = replace(node(0), features=have, active_features=have if active is None else active)
    found = plan(view(nodeset(1), pod(0), nodes=known_nodes(one), kubernetes_nodes=machine(words)))
    return [set(a.features) for a in found.actions if isinstance(a, SetNodeFeatures)]


def test_the_words_of_a_machine_are_given_with_their_prefix():
    assert given("a100, nvlink", "compute") == [{"k8s/a100", "k8s/nvlink"}]


def test_words_that_are_taken_back_go():
    assert given("nvlink", "compute", "k8s/a100", "k8s/nvlink") == [{"k8s/nvlink"}]
    assert given(None, "compute", "k8s/a100") == [set()]


@pytest.mark.parametrize("words", [None, "", " , "])
def test_a_machine_without_words_asks_for_nothing(words: str | None):
    assert given(words, "compute", "rack-7") == []


def test_a_node_that_has_them_is_left_alone():
    assert given("a100", "k8s/a100", "compute") == []


def test_one_that_is_not_active_is_made_so():
    assert given("a100", "compute", "k8s/a100", active=("compute",)) == [{"k8s/a100"}]


def test_features_of_others_stay_as_they_are():
    assert merged(("rack-7", "k8s/old", "compute"), {"k8s/a100"}) == (
        "compute",
        "k8s/a100",
        "rack-7",
    )


def test_of_a_machine_that_is_not_known_nothing_is_said():
    one = replace(node(0), features=("k8s/a100",))
    found = plan(view(nodeset(1), pod(0), nodes=known_nodes(one)))
    assert not [a for a in found.actions if isinstance(a, SetNodeFeatures)]
