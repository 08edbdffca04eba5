"""The generated CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from penstock.api import crd
from penstock.api.kubernetes.schema import KindInfo
from penstock.api.registry import registry
from penstock.api.slinky import group as slinky

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "deploy" / "crds"
FIXTURES = sorted((ROOT / "tests" / "fixtures" / "slinky").glob("*.yaml"))
BY_KIND = {info.resource.kind: info for info in slinky.GROUP.kinds}

every_kind = pytest.mark.parametrize(
    "info", registry().kinds, ids=lambda info: info.resource.plural
)


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


def at(info: KindInfo, *path: str) -> dict[str, Any]:
    found = crd.schema(info)
    for name in path:
        found = found["properties"][name]
    return found


def test_the_committed_definitions_are_generated_from_the_types():
    assert crd.differences(COMMITTED) == []
    assert crd.main(["--check", str(COMMITTED)]) == 0


def test_a_changed_definition_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert crd.main([str(tmp_path)]) == 0
    changed = tmp_path / "slinky.slurm.net_nodesets.yaml"
    changed.write_text(changed.read_text().replace("nss", "nsx"))
    assert crd.main(["--check", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert "-    - nsx" in shown
    assert "+    - nss" in shown


def test_a_missing_and_a_stray_file_are_reported(tmp_path: Path):
    crd.write(tmp_path)
    (tmp_path / "slinky.slurm.net_tokens.yaml").unlink()
    (tmp_path / "other.yaml").write_text("a: b\n")
    assert crd.main(["--check", str(tmp_path)]) == 1
    assert crd.differences(tmp_path)[-1].endswith("other.yaml: no kind has this file")


@every_kind
def test_the_same_types_give_the_same_bytes(info: KindInfo):
    assert crd.render(info) == crd.render(info)
    assert yaml.safe_load(crd.render(info)) == crd.definition(info)


@every_kind
def test_a_schema_is_structural(info: KindInfo):
    for path, node in nodes(crd.schema(info)):
        assert not {"$ref", "title", "x-penstock-default"} & set(node), path
        if node.get("x-kubernetes-int-or-string"):
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        elif not node.get("x-kubernetes-preserve-unknown-fields"):
            assert isinstance(node.get("type"), str), path
            assert "anyOf" not in node, path


@every_kind
def test_every_field_is_described(info: KindInfo):
    missing = [
        path
        for path, node in nodes(crd.schema(info))
        if path != ".metadata" and not path.endswith("[]") and not node.get("description")
    ]
    assert missing == []


@every_kind
def test_a_status_has_no_defaults(info: KindInfo):
    status = at(info, "status")
    assert not [path for path, node in nodes(status) if "default" in node]


@every_kind
def test_conditions_are_a_map_by_type(info: KindInfo):
    found = at(info, "status", "conditions")
    assert found["x-kubernetes-list-type"] == "map"
    assert found["x-kubernetes-list-map-keys"] == ["type"]
    assert at(info, "status", "observedGeneration")["format"] == "int64"


@pytest.mark.parametrize(
    ("kind", "short", "columns", "wide"),
    [
        ("Controller", ["slurmctld"], ["AGE", "READY", "REASON"], []),
        (
            "NodeSet",
            ["nodesets", "nss", "slurmd"],
            ["DESIRED", "REPLICAS", "UPDATED", "READY", "AGE", "REASON"],
            ["IDLE", "ALLOCATED", "DOWN", "DRAIN"],
        ),
        ("LoginSet", ["loginsets", "lss", "sackd"], ["REPLICAS", "AGE", "READY", "REASON"], []),
        ("RestApi", ["slurmrestd"], ["AGE", "READY", "REASON"], []),
        ("Accounting", ["slurmdbd"], ["AGE", "READY", "REASON"], []),
        ("Token", ["tokens", "jwt"], ["USER", "IAT", "AGE", "READY", "REASON"], []),
    ],
)
def test_short_names_and_columns(kind: str, short: list[str], columns: list[str], wide: list[str]):
    spec = crd.definition(BY_KIND[kind])["spec"]
    shown = spec["versions"][0]["additionalPrinterColumns"]
    assert spec["names"]["shortNames"] == short
    assert [one["name"] for one in shown if not one.get("priority")] == columns
    assert [one["name"] for one in shown if one.get("priority") == 1] == wide


@every_kind
def test_only_nodesets_and_loginsets_scale(info: KindInfo):
    subresources = crd.definition(info)["spec"]["versions"][0]["subresources"]
    assert subresources["status"] == {}
    assert ("scale" in subresources) == (info.resource.kind in ("NodeSet", "LoginSet"))


@pytest.mark.parametrize(
    ("kind", "path", "facts"),
    [
        ("NodeSet", "replicas", {"default": 1, "format": "int32"}),
        ("NodeSet", "revisionHistoryLimit", {"default": 0}),
        ("NodeSet", "workloadDisruptionProtection", {"default": True}),
        ("NodeSet", "pruneSlurmNodeRecords", {"enum": ["Never", "NodeNotFound"], "type": "string"}),
        ("NodeSet", "volumeClaimTemplates", {"nullable": True}),
        ("Controller", "configFileRefs", {"nullable": True}),
        ("Controller", "external", {"default": False}),
        ("Controller", "slurmKeyRef", {"x-kubernetes-map-type": "atomic"}),
        ("Controller", "slurmctld", {"x-kubernetes-preserve-unknown-fields": True}),
        ("Token", "refresh", {"default": True}),
    ],
)
def test_a_field_has_the_facts_of_the_api(kind: str, path: str, facts: dict[str, object]):
    found = at(BY_KIND[kind], "spec", path)
    assert {key: found.get(key) for key in facts} == facts


@pytest.mark.parametrize(
    ("kind", "path"), [("Controller", "inplaceReconfigure"), ("NodeSet", "extraConf")]
)
def test_a_field_is_not_filled_in_by_the_api_server(kind: str, path: str):
    assert "default" not in at(BY_KIND[kind], "spec", path)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_the_schema_knows_every_field_of_a_fixture(path: Path):
    manifest = yaml.safe_load(path.read_text())
    schema = crd.schema(BY_KIND[manifest["kind"]])
    assert pruned(manifest["spec"], schema["properties"]["spec"], "spec") == []


def pruned(value: Any, schema: dict[str, Any], path: str) -> list[str]:
    """Paths that the API server would drop."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema:
        return []
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [lost for one in items for lost in pruned(one, schema["items"], f"{path}[]")]
    if not isinstance(value, dict):
        return []
    known: dict[str, Any] = schema.get("properties", {})
    return [
        lost
        for key, child in cast("dict[str, Any]", value).items()
        for lost in (
            pruned(child, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"]
        )
    ]
