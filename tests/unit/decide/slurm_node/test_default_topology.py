"""Nodes that no switch or block of the default topology has are told, since no job can use them."""

from __future__ import annotations

import pytest
import yaml

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.decide.slurm_node.default_topology import finding, topologies
from penstock.decide.slurm_node.topology_file import MOST_CHARACTERS
from penstock.slurm import state as model
from penstock.slurm.known import Fact, Known, Unknown
from penstock.translate.slinky.worker_set import MARKS
from support.nodesets import known_nodes, node, pod
from unit.decide.slurm_node.test_topology import at

TREE = {"switches": [{"switch": "root", "children": "s[1-2]"}, {"switch": "s1"}, {"switch": "s2"}]}
BLOCK = {"block_sizes": [4], "blocks": [{"block": "b1"}, {"block": "b2"}]}
FLAT = {"topology": "plain", "flat": True}


def look(
    document: object,
    place: str = "",
    *,
    annotation: str | None = None,
    declared: tuple[str, ...] = (),
    nodes: Fact[dict[str, model.Node]] | None = None,
) -> Finding | None:
    """What is told of compute-0 with this place in Slurm."""
    text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
    machines: dict[str, KubernetesNode] = {"machine-0": at(annotation)}
    known = nodes or known_nodes(node(0, topology=place))
    return finding(MARKS, {"topology.yaml": text}, declared, [pod(0)], known, machines)


@pytest.mark.parametrize(
    ("kind", "shape", "unit", "example"),
    [("tree", TREE, "switch", "s1"), ("block", BLOCK, "block", "b1")],
)
def test_a_node_without_a_unit_of_the_default_is_told_with_the_command(
    kind: str, shape: object, unit: str, example: str
) -> None:
    """Feature row 49: the node is idle, and slurmctld gives it no job."""
    document = [{"topology": "net", "cluster_default": True, kind: shape}, FLAT]
    found = look(document)
    assert found is not None
    assert (found.ok, found.reason) == (False, "TopologyMissing")
    assert f"1 Slurm nodes are in no {unit} of net" in found.message
    assert "compute-0" in found.message
    place = f"machine-0 topology.slinky.slurm.net/spec=net:{example}"
    assert found.message.endswith(f"such as: kubectl annotate node {place}")
    assert look(document, f"net:{example}") is None
    assert look(document, f"other:x,net:root:{example}") is None
    assert look(document, "other:x", annotation="other:x") is not None


def test_a_single_topology_is_the_default_and_of_several_none_is_guessed() -> None:
    tree = {"topology": "net", "tree": TREE}
    assert look([tree]) is not None
    assert look([tree, {"topology": "other", "tree": TREE}]) is None


@pytest.mark.parametrize(
    "document",
    [
        [{**FLAT, "cluster_default": True}, {"topology": "net", "tree": TREE}],
        [{"topology": "net", "cluster_default": True, "ring": {"rings": [{"ring": "r"}]}}],
        [],
        "",
        "{",
        "net",
        "- &a [*a]",
        "- topology: net\n  tree: {switches: [1, {children: x}]}\n" + "#" * MOST_CHARACTERS,
    ],
)
def test_where_every_node_may_be_used_or_nobody_can_tell_nothing_is_said(document: object) -> None:
    assert look(document) is None


def test_a_partition_with_a_topology_of_its_own_makes_the_node_usable() -> None:
    document = [
        {"topology": "net", "cluster_default": True, "tree": TREE},
        {"topology": "racks", "block": BLOCK},
        FLAT,
    ]
    assert look(document, declared=("PartitionName=a Nodes=ALL Topology=plain",)) is None
    assert look(document, declared=("PartitionName=a topology=racks",)) is not None
    assert look(document, "racks:b1", declared=("PartitionName=a topology=racks",)) is None
    assert look(document, "racks:b1") is not None


def test_a_node_that_the_file_itself_lists_has_a_place() -> None:
    switches = [{"switch": "s1", "nodes": "compute-[0-3]"}]
    document = [{"topology": "net", "cluster_default": True, "tree": {"switches": switches}}]
    assert look(document) is None


def test_a_node_on_its_way_to_its_place_and_one_of_an_unknown_machine_are_waited_for() -> None:
    document = [{"topology": "net", "cluster_default": True, "tree": TREE}]
    assert look(document, annotation="net:s1") is None
    assert look(document, nodes=known_nodes()) is None
    assert look(document, nodes=Unknown("no answer")) is None
    files = {"topology.yaml": yaml.safe_dump(document)}
    assert finding(MARKS, files, (), [pod(0)], Known({"compute-0": node(0)}, 0.0), {}) is None


@pytest.mark.parametrize(
    "text",
    [
        "- topology: net\n  a0: &a0 [1]\n"
        + "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)),
        "- topology: " + "[" * 15000 + "]" * 15000,
        "- topology: " + "{a: " * 9000,
    ],
    ids=["aliases", "levels", "open"],
)
def test_a_file_that_is_made_to_cost_is_not_read(text: str) -> None:
    assert topologies(text) == ()
