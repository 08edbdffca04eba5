"""Everything that users meet by name is declared once, explained, and used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import get_args

import pytest

from penstock.api.nebius.slurmcluster import Maintenance
from penstock.api.registry import registry
from penstock.catalog import metric
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.event import ActionReason, Event, deletion_of, drained
from penstock.catalog.marks import DOMAINS
from penstock.catalog.metric import METRICS
from penstock.catalog.reasons import ALL, find_reason
from penstock.catalog.reasons.object import cluster_deleting, cluster_gone, cluster_not_found
from penstock.catalog.variable import VARIABLES
from reference.source import ROOT, attributes, calls, names, strings, trees

MARKS = {one.key: one for marks in DOMAINS.values() for one in marks}
OWNERS = ("Controller", "SlurmCluster")
BY_KIND: dict[str, str] = {
    function(kind): function.__name__
    for function in (cluster_gone, cluster_deleting, cluster_not_found)
    for kind in OWNERS
}
"""Reasons that the kind of the cluster selects."""
EVENTS_BY_KIND: dict[str, str] = {
    function(kind): function.__name__
    for function in (deletion_of, drained)
    for kind in ("NodeSet", "SlurmCluster")
}
WORDS = 25
CATALOG = ("kubernetes", "nebius", "penstock", "slinky")
EMITTERS = {"normal", "warning", "event"}


def sentences(text: str) -> Iterator[str]:
    yield from re.split(r"(?<=[.;])\s+", text)


@pytest.mark.parametrize("one", ALL, ids=str)
def test_a_reason_has_a_meaning_and_a_next_step_in_short_sentences(one: ConditionReason) -> None:
    for text in (one.meaning, one.next_step):
        assert text.endswith("."), one
        assert all(len(each.split()) <= WORDS for each in sentences(text)), one


def test_no_two_reasons_have_one_name() -> None:
    assert len({one.value for one in ALL}) == len(ALL)
    assert find_reason("ConfigRefused") is not None
    assert find_reason("NoSuchReason") is None


def test_each_declared_reason_of_a_condition_is_used() -> None:
    by_value = {*get_args(Maintenance)}
    unused = [
        one
        for one in ALL
        if f"{type(one).__name__}.{one.name}" not in attributes()
        and one not in by_value
        and BY_KIND.get(one) not in names()
    ]
    assert not unused


def test_no_reason_of_a_condition_is_written_where_it_is_used() -> None:
    """The constructors take declared reasons only; a literal would have no meaning or next step."""
    found = [
        f"{path}:{call.lineno}"
        for path, call, name in calls()
        if name in ("Finding", "Fault", "Verdict")
        for at, one in enumerate(
            (*call.args, *(k.value for k in call.keywords if k.arg == "reason"))
        )
        if isinstance(one, ast.JoinedStr | ast.Constant)
        and isinstance(getattr(one, "value", ""), str)
        and at == (1 if name == "Finding" else 0)
    ]
    assert not found


def test_conditions_are_made_in_one_place() -> None:
    """There they get the address of their runbook."""
    found = {path for path, _, name in calls() if name == "Condition"}
    assert found == {"api/kubernetes/conditions.py"}


def test_each_declared_type_of_a_condition_is_used() -> None:
    unused = [one for one in ConditionType if f"ConditionType.{one.name}" not in attributes()]
    assert not unused


def test_each_declared_event_is_used() -> None:
    declared = [*Event, *ActionReason]
    unused = [
        one
        for one in declared
        if f"{type(one).__name__}.{one.name}" not in attributes()
        and EVENTS_BY_KIND.get(one) not in names()
    ]
    assert not unused
    assert EVENTS_BY_KIND.keys() <= {one.value for one in Event}


def test_no_reason_of_an_event_is_written_where_it_is_emitted() -> None:
    found = [
        f"{path}:{call.lineno}"
        for path, call, name in calls()
        if name in {*EMITTERS, "EventReason"}
        for one in (*call.args[:2], *(k.value for k in call.keywords if k.arg == "reason"))
        if isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and re.fullmatch(r"([A-Z][a-z]+){2,}", one.value)
    ]
    assert not found


def test_each_metric_is_declared_and_used() -> None:
    made = {path for path, _, name in calls() if name in ("Gauge", "Histogram")}
    assert made == {"kube/client/collectors.py", "controllers/exporter/own_metrics.py"}
    literal = [value for _, _, value in strings() if re.fullmatch(r"penstock_[a-z_]+", value)]
    assert not literal
    named = {name: one for name, one in vars(metric).items() if one in METRICS}
    assert set(named.values()) == set(METRICS)
    assert not [name for name in named if f"metric.{name}" not in attributes()]


def test_each_key_on_objects_is_declared() -> None:
    own = re.compile(
        r"(?:[a-z0-9.-]*\.)?(?:penstock\.dev|slinky\.slurm\.net|slurm\.nebius\.ai|helm\.sh"
        r"|app\.kubernetes\.io|cert-manager\.io)/[a-zA-Z0-9-]+"
    )
    versions = {f"{info.resource.group}/{info.resource.version}" for info in registry().kinds}
    others = {"penstock.dev/operator", "penstock.dev/sconfigcontroller"}
    """Reporters of events."""
    found = {
        f"{path}:{node.lineno} {value}"
        for path, node, value in strings()
        if own.fullmatch(value)
        and value not in versions | others
        and not path.startswith(("preview/", "cli/"))
    }
    assert not found


def test_each_declared_key_is_used() -> None:
    unused: list[str] = []
    for module in CATALOG:
        text = (ROOT / f"src/penstock/catalog/marks/{module}.py").read_text()
        for name in re.findall(r"^(\w+): Final = Mark\(", text, re.MULTILINE):
            alias = "own" if f"own.{name}" in attributes() else module
            if f"{alias}.{name}" not in attributes():
                unused.append(f"{module}.{name}")
    assert not unused
    assert all(one.meaning.endswith(".") for one in MARKS.values())


def test_the_modules_of_the_apis_have_no_key_that_nobody_uses() -> None:
    used = loaded()
    for path in ("api/cluster/marks.py", "api/cluster/labels.py", "api/slinky/labels.py"):
        text = (ROOT / "src/penstock" / path).read_text()
        declared = re.findall(r"^(\w+): Final = \w+\.\w+\.key$", text, re.MULTILINE)
        unused = set(declared) - used
        assert not unused, path


def loaded() -> set[str]:
    """Names that are read, other than the catalog's own by their module."""
    found: set[str] = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                base = node.value
                if not isinstance(base, ast.Name) or base.id not in CATALOG:
                    found.add(node.attr)
    return found


def test_each_variable_that_a_program_reads_is_declared() -> None:
    declared = {one.name for one in VARIABLES}
    read = re.compile(r"environ(?:ment)?(?:\.get\(|\[)\s*[\"']([A-Z][A-Z_0-9]+)[\"']")
    own = re.compile(r"\bPENSTOCK_[A-Z_]*[A-Z]\b")
    files = [
        *(ROOT / "src/penstock").rglob("*.py"),
        *(ROOT / "images/entrypoints").iterdir(),
        ROOT / "scripts/bootstrap",
    ]
    found: set[str] = set()
    every = ""
    for path in files:
        if path.is_file() and "simulation" not in path.parts and "catalog" not in path.parts:
            text = path.read_text()
            every += text
            found |= {*read.findall(text), *own.findall(text)}
    written = {"SLURM_SACK_KEY", "SLURM_SACK_JWKS"}
    assert found <= declared | written, found - declared
    assert not [name for name in declared if name not in every]
