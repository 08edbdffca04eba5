"""What is rejected when an object is written, and the warnings to its user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.admission import AdmissionResult, RelatedObjects
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.penstock import group as penstock
from penstock.api.penstock.partition import Partition
from penstock.api.registry import registry, rules_of
from penstock.api.slinky import group as slinky
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.names import slurm_node_name
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.slurm_node import topology

TYPES = {i.resource.kind: i.type for g in (slinky, penstock) for i in g.GROUP.kinds}
REF = {"controllerRef": {"name": "slinky"}}
KEY = {"name": "s", "key": "k"}
ALONE = RelatedObjects()
RULES = registry()
validate_change = RULES.validate_change


def make(kind: str, spec: dict[str, Any], name: str = "a", **meta: Any) -> KubeObject:
    manifest = {"metadata": {"name": name, "namespace": "slurm", **meta}, "spec": spec}
    return msgspec.convert(manifest, TYPES[kind])


def nodeset(name: str, hostname: str = "", **spec: Any) -> NodeSet:
    template = {"template": {"spec": {"hostname": hostname}}} if hostname else {}
    made = make("NodeSet", {**REF, **template, **spec}, name)
    assert isinstance(made, NodeSet)
    return made


def controller(**spec: Any) -> Controller:
    made = make("Controller", spec)
    assert isinstance(made, Controller)
    return made


def refusals(found: AdmissionResult) -> dict[str, str]:
    return {one.path: one.message for one in found.problems}


BAD_LINES = [
    ("MinJobAge", "'MinJobAge'"),
    ("Weight=1 Gres", "'Gres'"),
    ("MinJobAge=", "'MinJobAge='"),
    ("# fine\nPartitionName=a Nodes=ALL\nJust some words\n", "line 3, Slurm cannot read 'Just"),
    ('Comment="open end', "'end'"),
    ("=5", "'=5'"),
]


@pytest.mark.parametrize(("text", "words"), BAD_LINES)
@pytest.mark.parametrize("kind", ["Controller", "Accounting"])
def test_a_line_that_slurm_cannot_read_is_refused_with_its_place(kind: str, text: str, words: str):
    """Feature rows 2 and 62: upstream looks at no line of extraConf; slurmctld crash-loops."""
    spec: dict[str, Any] = {"slurmKeyRef": KEY, "jwtKeyRef": KEY, "extraConf": text}
    if kind == "Accounting":
        spec["storageConfig"] = {"host": "h", "passwordKeyRef": KEY}
    found = refusals(validate_change(make(kind, spec), None, ALONE))
    assert words in found["spec.extraConf"]
    assert "write Key=Value" in found["spec.extraConf"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "MinJobAge=2 # why\n\nInclude other.conf\n",
        'PartitionName=a Nodes=x[1-3] \\\n  MaxTime=60 AllowQos="a b"\n',
        "SlurmctldParameters=a,b=c\n",
        "SuspendExcNodes+=x\n",
    ],
)
def test_what_slurm_reads_is_taken_whatever_its_keys_are(text: str):
    """An unknown key is for slurmctld to judge: the operator may be older than it."""
    assert (
        validate_change(controller(extraConf=text + "\nNoSuchKey=1\n"), None, ALONE)
        == AdmissionResult()
    )


def test_a_key_that_pods_are_made_to_fit_is_warned_of_and_taken():
    found = validate_change(controller(extraConf="authtype=auth/none\nMinJobAge=2\n"), None, ALONE)
    assert found.problems == ()
    assert [one for one in found.warnings if "spec.extraConf: authtype is set" in one]


def test_an_empty_value_is_refused_where_slurm_would_take_the_next_word():
    """D3: `Topology= CoreSpecCount=2` is read as the topology CoreSpecCount=2."""
    found = refusals(
        validate_change(nodeset("a", extraConf="Topology= CoreSpecCount=2"), None, ALONE)
    )
    assert "Topology= has no value" in found["spec.extraConf"]
    assert (
        validate_change(nodeset("a", extraConf="Topology=a Feature=b"), None, ALONE)
        == AdmissionResult()
    )


def test_a_partition_that_slurm_cannot_read_is_refused():
    partition = {"enabled": True, "config": "MaxTime=60 Default"}
    found = refusals(validate_change(nodeset("a", partition=partition), None, ALONE))
    assert "'Default'" in found["spec.partition.config"]


@pytest.mark.parametrize(
    ("own", "other", "path"),
    [
        (nodeset("a", "gpu-"), nodeset("b", "gpu-"), "spec.template.spec.hostname"),
        (nodeset("gpu"), nodeset("b", "gpu-"), "metadata.name"),
        (nodeset("b", "gpu-"), nodeset("gpu"), "spec.template.spec.hostname"),
        (nodeset("b", "gpu", replicas=11), nodeset("c", "gpu1"), "spec.template.spec.hostname"),
        (nodeset("b", "gpu"), nodeset("gpu"), "spec.template.spec.hostname"),
    ],
    ids=["same", "default", "other way", "digits", "feature only"],
)
def test_two_nodesets_whose_nodes_slurm_could_not_tell_apart(
    own: NodeSet, other: NodeSet, path: str
):
    found = refusals(validate_change(own, None, RULES.related_objects(own, (other,))))
    assert f"NodeSet {other.metadata.name}" in found[path]
    assert "choose a spec.template.spec.hostname" in found[path]


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (nodeset("a"), nodeset("b")),
        (nodeset("b", "gpu", replicas=10), nodeset("c", "gpu1")),
        (nodeset("gpu"), nodeset("gpu-a")),
        (nodeset("b", "gpu", replicas=11, ordinalPadding=3), nodeset("c", "gpu1")),
    ],
)
def test_nodesets_that_are_apart_are_taken(own: NodeSet, other: NodeSet):
    assert validate_change(own, None, RULES.related_objects(own, (other,))) == AdmissionResult()


@given(
    st.sampled_from(["gpu", "gpu1", "gpu-", "gpu10", "g"]),
    st.sampled_from(["gpu", "gpu1", "gpu-", "gpu10", "g"]),
    st.integers(1, 120),
    st.integers(1, 120),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_every_node_name_that_two_have_in_common_is_found(
    one: str, two: str, many: int, more: int, padding: int, other_padding: int
):
    own = nodeset("a", one, replicas=many, ordinalPadding=padding)
    other = nodeset("b", two, replicas=more, ordinalPadding=other_padding)
    names = {slurm_node_name(own, number) for number in range(many)}
    common = names & {slurm_node_name(other, number) for number in range(more)}
    found = validate_change(own, None, RULES.related_objects(own, (other,))).problems
    if common:
        assert any("would be one of this NodeSet" in one.message for one in found)
    elif one != two:
        assert not any("would be one of this NodeSet" in one.message for one in found)


def test_files_that_the_operator_writes_are_refused_and_unknown_ones_told():
    """Upstream's rule for configFileRefs; D36: an absent ConfigMap is waited for, not refused."""
    obj = controller(configFileRefs=[{"name": "mine"}, {"name": "later"}])
    around = RelatedObjects(files={"mine": ("gres.conf", "my.conf", "slurm.conf")})
    found = validate_change(obj, None, around)
    assert "ConfigMap mine has slurm.conf" in refusals(found)["spec.configFileRefs[0].name"]
    assert any("my.conf of ConfigMap mine" in one for one in found.warnings)
    assert not any("gres.conf" in one for one in found.warnings)
    (absent,) = [one for one in rules_of(obj).references(obj) if one.name == "later"]
    found = validate_change(obj, None, RelatedObjects(absent=(absent,)))
    assert found.problems == ()
    assert found.warnings == (
        "spec.configFileRefs[1].name: there is no ConfigMap later in this namespace yet; it is "
        "waited for",
    )


def test_one_file_of_two_config_maps_is_told():
    """Feature row 12: of equal names one is not used."""
    obj = controller(prologScriptRefs=[{"name": "a"}], epilogScriptRefs=[{"name": "b"}])
    found = validate_change(obj, None, RelatedObjects(files={"a": ("10.sh",), "b": ("10.sh",)}))
    assert found.problems == ()
    assert found.warnings == (
        "spec.epilogScriptRefs[0].name: 10.sh is in ConfigMap a too; only one of them is used",
    )


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        ("NodeSet", REF, {("spec.controllerRef.name", "Controller", "slinky")}),
        ("RestApi", REF, {("spec.controllerRef.name", "Controller", "slinky")}),
        (
            "LoginSet",
            {**REF, "sssdConfRef": {"name": "x", "key": "k"}},
            {("spec.controllerRef.name", "Controller", "slinky")}
            | {("spec.sssdConfRef.name", "Secret", "x")},
        ),
        (
            "Controller",
            {"jwtHs256KeyRef": KEY, "accountingRef": {"name": "db"}},
            {("spec.jwtHs256KeyRef.name", "Secret", "s")}
            | {("spec.accountingRef.name", "Accounting", "db")},
        ),
        (
            "Accounting",
            {"jwtKeyRef": KEY, "storageConfig": {"host": "h", "passwordKeyRef": KEY}},
            {("spec.jwtKeyRef.name", "Secret", "s")}
            | {("spec.storageConfig.passwordKeyRef.name", "Secret", "s")},
        ),
        ("Token", {"username": "u", "jwtKeyRef": KEY}, {("spec.jwtKeyRef.name", "Secret", "s")}),
    ],
)
def test_what_an_object_names(kind: str, spec: dict[str, Any], wanted: set[tuple[str, str, str]]):
    made = make(kind, spec)
    found = {(one.path, one.kind, one.name) for one in rules_of(made).references(made)}
    assert found == wanted


def test_a_partition_whose_name_is_taken_is_told():
    own, other = (make("Partition", {**REF, "name": "p"}, name) for name in ("a", "b"))
    assert isinstance(other, Partition)
    pool = nodeset("p", partition={"enabled": True})
    found = validate_change(own, None, RULES.related_objects(own, (pool, other)))
    assert found.problems == ()
    (warning,) = found.warnings
    assert "Partition b, NodeSet p" in warning


def test_what_was_wrong_before_is_told_and_refuses_nothing():
    """An object of an older schema, or of upstream, can be changed in all other fields."""
    bad = {"slurmctld": {"env": "A=b"}, "extraConf": "one two\n"}
    before = controller(**bad)
    found = validate_change(controller(**bad, inplaceReconfigure=True), before, ALONE)
    assert found.problems == ()
    assert [one for one in found.warnings if "spec.slurmctld.env" in one and "so before" in one]
    worse = validate_change(controller(slurmctld={"env": "A=b", "args": "x"}), before, ALONE)
    assert set(refusals(worse)) == {"spec.slurmctld.args"}


def test_nobody_is_kept_from_deleting_or_from_writing_metadata():
    bad = {"slurmctld": {"env": "A=b"}}
    going = make("Controller", bad, deletionTimestamp="2027-01-01T00:00:00Z")
    assert validate_change(going, controller(), ALONE) == AdmissionResult()
    labelled = make("Controller", bad, labels={"a": "b"})
    assert validate_change(labelled, controller(**bad), ALONE) == AdmissionResult()


def test_the_cluster_name_cannot_change_to_one_that_only_looks_like_the_default():
    """CEL sees no namespace: it takes every name that ends in the Controller's."""
    own = controller()
    assert validate_change(controller(clusterName="slurm_a"), own, ALONE).problems == ()
    found = refusals(validate_change(controller(clusterName="other_a"), own, ALONE))
    assert "write slurm_a" in found["spec.clusterName"]


def test_a_field_that_is_not_served_is_told():
    found = validate_change(
        controller(service={"spec": {"externalIPs": ["192.0.2.1"]}}), None, ALONE
    )
    assert found.problems == ()
    assert any(one.startswith("spec.service.spec.externalIPs") for one in found.warnings)


def test_deleting_a_controller_in_use_is_told_and_allowed():
    users = RelatedObjects(users=("NodeSet a", "RestApi b"))
    (warning,) = RULES.on_delete(controller(), users).warnings
    assert "NodeSet a, RestApi b belong to this Controller" in warning
    assert RULES.on_delete(controller(), ALONE) == AdmissionResult()
    (warning,) = RULES.on_delete(
        make("Accounting", {}), RelatedObjects(users=("Controller c",))
    ).warnings
    assert "Controller c" in warning


FAULTS = sorted((Path(__file__).parents[2] / "fixtures" / "bad").glob("*.yaml"))
AROUND = RelatedObjects(
    objects=(nodeset("other", "taken-"),), files={"with-slurm-conf": ("slurm.conf",)}
)


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_bad_value_is_refused_here_when_no_schema_refuses_it(path: Path):
    """F22: what each layer says of it is asked of a real API server in tests/api."""
    text = path.read_text()
    wanted = dict(re.findall(r"# (layer|path|says): (.*)", text))
    assert wanted.keys() == {"layer", "path", "says"}
    if wanted["layer"] != "webhook":
        return
    manifest = yaml.safe_load(text)
    obj = make(manifest["kind"], manifest["spec"], manifest["metadata"]["name"])
    assert wanted["says"] in refusals(validate_change(obj, None, AROUND))[wanted["path"]]


TOPOLOGY = {
    "topology.yaml": """
- topology: topo-switch
  tree: {switches: [{switch: s0, children: "s[1-2]"}, {switch: s1}, {switch: s2}]}
- topology: topo-block
  block: {block_sizes: [4], blocks: [{block: b1, nodes: x}]}
- topology: flat
  flat: true
"""
}


@pytest.mark.parametrize(
    ("place", "there"),
    [
        ("topo-switch:s2", True),
        ("topo-switch:s0:s2, topo-block:b1", True),
        ("topo-switch:s9", False),
        ("topo-block:s2", False),
        ("other:s2", False),
        ("topo-switch", False),
        ("s2", False),
    ],
)
def test_a_place_is_known_when_the_file_has_all_of_its_units(place: str, there: bool):
    assert topology.exists(place, TOPOLOGY) is there


@pytest.mark.parametrize("text", ["", "[", "text", "- 5", "topology: x"])
def test_without_a_file_that_can_be_read_no_place_is_known(text: str):
    assert not topology.exists("topo-switch:s2", {"topology.yaml": text})
    assert not topology.exists("topo-switch:s2", {})
