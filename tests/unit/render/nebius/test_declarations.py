"""Whatever the rules accept is rendered, to pods that Kubernetes can create.

Declarations come from the schemas: each property of a SlurmCluster and of a NodeSet at several
values, one at a time and several at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Final, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from declarations.properties import Path, Property, dotted, properties, put
from penstock.api import crd
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.group import NODE_SET, SLURM_CLUSTER
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.registry import problems
from penstock.render.parts.digest import canonical_json
from support import nebius
from support.nebius_clusters import CURRENT, OLDER, Rendered, rendered

FIXTURES: Final = {
    OLDER: "slurmcluster-1.23-0",
    CURRENT: "slurmcluster-5.0-0",
    "NodeSet": "nodesets-5.0-0",
}
KINDS: Final = {"SlurmCluster": SLURM_CLUSTER, "NodeSet": NODE_SET}
POD_KINDS: Final = ("StatefulSet", "Deployment", "Job", "Pod")
TEXTS: Final = ("", "sample", "jail", "controller-spool", "cpu", "a b", "ä/..", "1Gi", "20%")
OPAQUE: Final[tuple[Json, ...]] = (
    {},
    {"name": "sample", "image": "i"},
    {"name": "X", "value": None},
    {"key": "a", "operator": "Exists"},
    {"tcpSocket": {"port": 1}},
)
MANY: Final = 2**31 - 1


@dataclass(frozen=True)
class Change:
    """A value at a property of the fixture of a shape, or of its NodeSet."""

    fixture: str
    path: Path
    value: Any

    def __str__(self) -> str:
        return f"{self.fixture} {dotted(self.path)} {self.value!r:.40}"


def values(prop: Property) -> Iterator[Any]:
    schema = prop.schema
    if "enum" in schema:
        yield from schema["enum"]
    elif prop.opaque:
        yield from OPAQUE
    elif prop.type == "string":
        yield from TEXTS
    elif prop.type == "int-or-string":
        yield from (0, 7, MANY, "50%", "1Gi", "1500m")
    elif prop.type == "integer":
        yield from (-1, 0, schema.get("minimum", 1), 7, MANY)
    elif prop.type == "boolean":
        yield from (True, False)
    elif prop.type == "array":
        yield []
    else:
        yield {}


@cache
def changes() -> tuple[Change, ...]:
    found: list[Change] = []
    for kind, rules in KINDS.items():
        root = cast("Json", crd.schema(rules.info)["properties"]["spec"])
        for prop in properties(kind, root):
            fixtures = (OLDER, CURRENT) if kind == "SlurmCluster" else ("NodeSet",)
            found += [
                Change(fixture, prop.path, value) for fixture in fixtures for value in values(prop)
            ]
    return tuple(found)


@cache
def manifest(fixture: str) -> Json:
    return nebius.manifest(FIXTURES[fixture], {"metadata.uid": f"{fixture}-uid"})


def declared(of: tuple[Change, ...]) -> Rendered | None:
    """What is rendered with changes; None when the schema or the rules reject one."""
    found: dict[str, Any] = {fixture: manifest(fixture) for fixture in FIXTURES}
    for one in of:
        found[one.fixture] = put(found[one.fixture], one.path, one.value)
    shape = next((one.fixture for one in of if one.fixture != "NodeSet"), CURRENT)
    try:
        cluster = msgspec.convert(found[shape], SlurmCluster)
        node_set = msgspec.convert(found["NodeSet"], NodeSet)
    except msgspec.ValidationError:
        return None
    if problems(cluster) or problems(node_set):
        return None
    sets = () if shape == OLDER else (node_set,)
    prefix = names.workload_prefix(cluster, keeps_plain_names=False, is_second=False)
    return rendered(cluster, sets, prefix)


def pods(found: Rendered) -> Iterator[Json]:
    for one in found.objects():
        if one["kind"] in POD_KINDS:
            spec = one["spec"]
            yield spec if one["kind"] == "Pod" else spec["template"]["spec"]


def templates(found: Rendered) -> set[str]:
    """Names of volumes that a StatefulSet's controller adds to its pods."""
    sets = (one["spec"] for one in found.objects() if one["kind"] == "StatefulSet")
    return {
        one["metadata"]["name"] for each in sets for one in each.get("volumeClaimTemplates", ())
    }


def check(found: Rendered) -> None:
    """Names are there once, and each mount has its volume."""
    canonical_json(found.objects())
    added = templates(found)
    for spec in pods(found):
        volumes = [one["name"] for one in spec.get("volumes", ())]
        assert len(set(volumes)) == len(volumes)
        every = [*spec.get("initContainers", ()), *spec["containers"]]
        own = [one for one in every if "volumeMounts" in one]
        assert len({one["name"] for one in own}) == len(own)
        for one in own:
            mounts = [mount["mountPath"] for mount in one["volumeMounts"]]
            assert len(set(mounts)) == len(mounts)
            assert {mount["name"] for mount in one["volumeMounts"]} <= {*volumes, *added}
            variables = [each.get("name") for each in one.get("env", ())]
            assert len(set(variables)) == len(variables)


def some() -> Iterator[Change]:
    """One value of each property, which of them differs between properties."""
    for number, (_, group) in enumerate(groupby(changes(), lambda one: (one.fixture, one.path))):
        of = list(group)
        yield of[number % len(of)]


def test_each_accepted_declaration_is_rendered():
    accepted = 0
    for one in some():
        found = declared((one,))
        if found is not None:
            accepted += 1
            try:
                check(found)
            except Exception as error:
                pytest.fail(f"{one}: {error!r}")
    assert accepted > 500


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(changes()), min_size=2, max_size=8))
def test_several_accepted_declarations_at_once_are_rendered(of: list[Change]):
    found = declared(tuple(of))
    if found is not None:
        check(found)


COMPONENTS: Final = ("controller", "login", "rest", "nodeset", "worker", "sconfigcontroller")
CLUSTER_NAMES: Final = st.sampled_from(
    ("a", "a-a", "b", *COMPONENTS, *(f"a-{one}" for one in COMPONENTS))
)
NODE_SETS: Final = st.sampled_from(("a", "b", "a-b", "gpu", "a-worker", "nodes"))


def named(shape: str, name: str, node_sets: list[str], *, is_second: bool) -> Rendered:
    given = nebius.manifest(FIXTURES[shape], {"metadata.name": name, "metadata.namespace": "one"})
    cluster = msgspec.convert(given, SlurmCluster)
    changes = {"metadata.namespace": "one", "spec.clusterName": name}
    sets = [
        msgspec.convert(
            nebius.manifest(FIXTURES["NodeSet"], {**changes, "metadata.name": one}), NodeSet
        )
        for one in node_sets
    ]
    prefix = names.workload_prefix(cluster, keeps_plain_names=False, is_second=is_second)
    return rendered(cluster, sets if shape == CURRENT else (), prefix)


def identities(found: Rendered) -> list[tuple[str, str]]:
    """Kind and name of all objects, and of the pods of StatefulSets."""
    out: list[tuple[str, str]] = []
    for one in found.objects():
        kind, name = one["kind"], one["metadata"]["name"]
        out += [(kind, name), ("Pod", f"{name}-1")] if kind == "StatefulSet" else [(kind, name)]
    return out


@settings(max_examples=150, deadline=None)
@given(
    st.lists(CLUSTER_NAMES, min_size=2, max_size=2, unique=True),
    st.tuples(st.sampled_from((OLDER, CURRENT)), st.sampled_from((OLDER, CURRENT))),
    st.lists(NODE_SETS, min_size=4, max_size=4, unique=True),
)
def test_two_clusters_of_a_namespace_share_no_name(
    called: list[str], shapes: tuple[str, str], sets: list[str]
):
    one = named(shapes[0], called[0], sets[:2], is_second=False)
    other = named(shapes[1], called[1], sets[2:], is_second=shapes == (OLDER, OLDER))
    assert set(identities(one)) & set(identities(other)) == set()
