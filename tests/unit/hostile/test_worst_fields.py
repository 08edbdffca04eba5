"""Each text, list and mapping of the kinds of `slurm.nebius.ai`, at the worst size that is stored.

The fields are those of the schemas. The API server stores texts of any length, up to the largest
object that etcd takes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from declarations.properties import ITEM, KEY, SAMPLE_KEY, Path, Property, properties
from penstock.api import crd
from penstock.api.admission import RelatedObjects
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.nebius.group import GROUPS
from penstock.api.nebius.size_rules import (
    LONGEST_LINES,
    LONGEST_TEXT,
    MOST_BYTES,
    MOST_ITEMS,
    MOST_LEVELS,
)
from penstock.api.registry import registry, rules_of, unsupported_fields
from support import nebius

FIXTURES = {
    "SlurmCluster": "slurmcluster-1.23-0",
    "NodeSet": "nodesets-5.0-0",
    "JailedConfig": "jailedconfigs-0",
    "NodeConfigurator": "nodeconfigurator-5.0-0",
    "ActiveCheck": "activechecks-5.0-0",
    "NodeSetPowerState": "nodesetpowerstates-5.0-0",
}
SPECS: dict[str, Json] = {
    info.resource.kind: crd.schema(info)["properties"]["spec"]
    for group in GROUPS
    for info in group.kinds
}
ETCD = 1_500_000
"""Characters of the largest object that the API server stores."""
TEXTS = ("a", "a\n", "[", "a,", "9", "a=1 ", "$X", "../", '"', "\\", "[1-9],", " ")
"""Of one of these in turn each field is made, so that each reader has met some."""
MOST_S = 0.25
"""Seconds of the slowest field, beside other processes."""


def shown(path: Path) -> str:
    """A path as problems have it."""
    words = "".join(
        "[0]" if one == ITEM else f".{SAMPLE_KEY if one == KEY else one}" for one in path
    )
    return words[1:]


def least(schema: Json) -> Any:
    """The smallest value of a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return 1
    match schema.get("type"):
        case "string":
            return "x"
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case _:
            fields = cast("dict[str, Json]", schema.get("properties", {}))
            return {name: least(fields[name]) for name in schema.get("required", ())}


def declared(schema: Json, value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at a path, and with all that a schema requires on the way there."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if step == ITEM:
        items = [*cast("list[Any]", value)] if isinstance(value, list) else []
        first = items[0] if items else None
        return [declared(schema["items"], first, rest, new), *items[1:]]
    fields: Json = {**least(schema), **(value if isinstance(value, dict) else {})}
    if step == KEY:
        child = schema["additionalProperties"]
        return {**fields, SAMPLE_KEY: declared(child, fields.get(SAMPLE_KEY), rest, new)}
    child = schema["properties"][step]
    return {**fields, step: declared(child, fields.get(step), rest, new)}


def made(kind: str, path: Path, new: Any) -> KubeObject:
    """An object of a fixture with a value at a path below spec."""
    whole = nebius.manifest(FIXTURES[kind], {"metadata.uid": "uid"})
    spec = declared(SPECS[kind], whole["spec"], path[1:], new)
    return nebius.decode({**whole, "spec": spec})


def rejected(obj: KubeObject) -> tuple[dict[str, str], float]:
    """Problems by path, as a write and as a reconcile find them, and the seconds of all rules."""
    # A collection would count what earlier tests of this process left behind: a second and more.
    gc.disable()
    try:
        return _rejected(obj)
    finally:
        gc.enable()


def _rejected(obj: KubeObject) -> tuple[dict[str, str], float]:
    started = time.process_time()
    written = registry().validate_change(obj, None, RelatedObjects()).problems
    stored = registry().problems(obj)
    rules = rules_of(obj)
    for rule in (rules.references, rules.uses, rules.partitions, rules.advice):
        list(rule(obj))
    unsupported_fields(obj)
    spent = time.process_time() - started
    assert sum(len(one.path) + len(one.message) for one in written) < 32_768, "a condition's length"
    assert {one.path for one in stored} <= {one.path for one in written}
    return {one.path: one.message for one in stored}, spent


def texts(kind: str) -> Iterator[Property]:
    """Texts of a kind that are no choice of words."""
    for one in properties(kind, SPECS[kind]):
        if one.type == "string" and "enum" not in one.schema and "maxLength" not in one.schema:
            yield one


def collections(kind: str) -> Iterator[tuple[Property, Any]]:
    """Lists and mappings of a kind, each with one item more than may be."""
    for one in properties(kind, SPECS[kind]):
        if one.type == "array":
            yield one, [least(one.schema["items"])] * (MOST_ITEMS + 1)
        elif isinstance(one.schema.get("additionalProperties"), dict):
            item = least(one.schema["additionalProperties"])
            yield one, {f"k{number}": item for number in range(MOST_ITEMS + 1)}


SERVED = tuple(kind for kind in FIXTURES if kind != "NodeSetPowerState")


@pytest.mark.parametrize("kind", FIXTURES)
def test_each_text_at_its_worst_size_is_rejected_at_its_field(
    kind: str, figure: Callable[[str], None]
) -> None:
    slowest, where, count = 0.0, "", 0
    for count, one in enumerate(texts(kind), 1):
        text = TEXTS[count % len(TEXTS)]
        found, spent = rejected(made(kind, one.path, text * (ETCD // len(text))))
        assert shown(one.path) in found, (one.name, found)
        slowest, where = max((slowest, where), (spent, one.name))
    figure(f"{kind}: {count} texts, the slowest one {slowest * 1000:.0f} ms: {where}")
    assert count
    assert slowest < MOST_S


@pytest.mark.parametrize("kind", SERVED)
def test_each_list_and_mapping_at_its_worst_size_is_rejected_at_its_field(
    kind: str, figure: Callable[[str], None]
) -> None:
    slowest, where, every = 0.0, "", list(collections(kind))
    for one, value in every:
        found, spent = rejected(made(kind, one.path, value))
        assert found.get(shown(one.path), "").startswith(f"has {MOST_ITEMS + 1} items"), one.name
        slowest, where = max((slowest, where), (spent, one.name))
    figure(f"{kind}: {len(every)} lists, the slowest one {slowest * 1000:.0f} ms: {where}")
    assert every
    assert slowest < MOST_S


def test_a_key_and_a_nested_value_at_their_worst_size_are_rejected_at_their_field() -> None:
    """Of mappings, and of fields that the schema leaves open."""
    path = ("spec", "workerAnnotations")
    found, _ = rejected(made("NodeSet", path, {"k" * (LONGEST_TEXT + 1): "v"}))
    assert list(found) == [f"spec.workerAnnotations.{'k' * 60}"]
    nested: Json = {}
    for _ in range(3000):
        nested = {"a": nested}
    found, spent = rejected(made("NodeSet", ("spec", "affinity"), nested))
    assert list(found) == [f"spec.affinity{'.a' * MOST_LEVELS}"]
    assert spent < MOST_S


def test_many_large_texts_are_rejected_by_their_sum() -> None:
    """Each of them is of a size that is allowed."""
    lines = ["#" * LONGEST_TEXT] * 4
    path = ("spec", "partitionConfiguration", "rawConfig")
    found, spent = rejected(made("SlurmCluster", path, lines))
    assert found["spec"].endswith(f"bytes in all: write at most {MOST_BYTES}")
    assert spent < MOST_S


def test_texts_and_lists_of_the_largest_size_are_no_problem_of_size() -> None:
    """The bounds themselves are allowed."""
    text = made("NodeSet", ("spec", "priorityClass"), "a" * LONGEST_TEXT)
    text_lines = "#" * LONGEST_LINES
    lines = made("SlurmCluster", ("spec", "customSlurmConfig"), text_lines)
    items = made("NodeSet", ("spec", "nodeConfig", "features"), ["a"] * MOST_ITEMS)
    assert [registry().problems(one) for one in (text, lines, items)] == [[], [], []]
