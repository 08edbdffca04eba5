"""Declarations from our own schemas: complete, none ignored in silence, and able to fail."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from declarations import effects
from declarations.check import every, findings
from declarations.properties import ABSENT, at, dotted, properties, put, schemas
from declarations.rules import BREACHES, messages
from declarations.values import Case, Verdict
from penstock.api.slinky import validation as validate
from penstock.render.parts import service
from penstock.render.slinky.config import slurm_conf

ROOT = Path(__file__).parents[3]
PART = 4
"""Every so many of the misshapen values: they are half of all and much alike."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return every()


def test_every_property_of_every_kind_is_declared_and_each_sort_of_value_is_there(
    cases: list[Case],
) -> None:
    declared = {(case.kind, case.path) for case in cases}
    for kind, root in schemas().items():
        for prop in properties(kind, root):
            assert (kind, prop.path) in declared, prop.name
            mine = [case for case in cases if (case.kind, case.path) == (kind, prop.path)]
            sorts = {case.what for case in mine}
            assert {"present", "wrong type"} <= sorts, prop.name
            for bound in ("minimum", "maximum", "maxItems", "maxLength", "enum", "pattern"):
                if bound in prop.schema and prop.type != "int-or-string":
                    refused = [c for c in mine if c.verdict is Verdict.REFUSED]
                    assert len(refused) > 1, f"{prop.name}: {bound}"


def test_every_rule_of_the_definitions_has_a_declaration_that_breaks_it() -> None:
    missing = [
        (kind, message)
        for kind, message in messages()
        if not any(one.kind == kind and message.startswith(one.words) for one in BREACHES)
    ]
    assert missing == []
    for one in BREACHES:
        assert any(k == one.kind and m.startswith(one.words) for k, m in messages()), one


def test_no_field_is_ignored_in_silence_and_nothing_makes_the_operator_fail(
    cases: list[Case],
) -> None:
    some = [case for case in cases if case.what != "misshapen"]
    shapes = [case for case in cases if case.what == "misshapen"]
    assert list(findings([*some, *itertools.islice(shapes, 0, None, PART)])) == []


def test_what_acts_elsewhere_names_a_file_of_tests() -> None:
    paths = {
        f"{kind}.{dotted(prop.path)}"
        for kind, root in schemas().items()
        for prop in properties(kind, root)
    }
    for name, file in effects.ELSEWHERE.items():
        assert name in paths
        assert (ROOT / file).is_file()
    assert set(effects.SAME) <= paths


def test_a_value_is_put_and_found_at_any_path() -> None:
    path = ("a", "[]", "b", "*")
    spec = put({"a": [{"c": 1}, {"c": 2}]}, path, 7)
    assert spec == {"a": [{"c": 1, "b": {"sample": 7}}, {"c": 2}]}
    assert at(spec, path) == 7
    assert put(spec, path, ABSENT) == {"a": [{"c": 1, "b": {}}, {"c": 2}]}


# The tests of the tests: each breaks the product once.


def found(cases: list[Case], path: str) -> list[str]:
    return list(findings(case for case in cases if dotted(case.path).startswith(path)))


def test_a_field_that_is_rendered_no_more_is_found(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lines(_: Any) -> list[tuple[str, list[str]]]:
        return []

    monkeypatch.setattr(slurm_conf, "_extra", no_lines)
    assert "accepted and silently ignored" in " ".join(found(cases, "spec.extraConf"))


def test_a_port_that_the_service_forgets_is_found(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = service.Port.manifest

    def forgetful(self: service.Port) -> dict[str, Any]:
        return {key: value for key, value in real(self).items() if key != "nodePort"}

    monkeypatch.setattr(service.Port, "manifest", forgetful)
    assert "spec.service.nodePort" in " ".join(found(cases, "spec.service.nodePort"))


def test_a_shape_that_is_compared_no_more_is_found(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(*_: object) -> list[tuple[str, str]]:
        return []

    monkeypatch.setattr(validate.shapes, "shape_problems", blind)
    assert "and not told" in " ".join(found(cases, "spec.slurmd.env"))


def test_a_row_that_is_missing_in_what_is_not_served_is_found(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: object) -> list[str]:
        return []

    monkeypatch.setattr("declarations.check.unsupported_fields", silent)
    path = "spec.slurmKeyRef.optional"
    assert path in " ".join(found(cases, path))
