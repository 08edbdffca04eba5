"""The definitions of `slurm.nebius.ai` have every field of the API that users have.

`tests/fixtures/nebius/schema.tsv` has one row for each field of the original's schemas: of 5.0, of
1.23.3, or of an earlier version. A default that only some of the versions have is not stored by the
API server, so that objects of both shapes are read back as they were written.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import fields

from penstock.api import crd
from penstock.api.cluster.embedded_database import DatabaseVolume
from penstock.api.cluster.slurmctld_status import SlurmctldStatus
from penstock.api.kubernetes import quantity
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.schema import PROMETHEUS_DURATION
from penstock.api.kubernetes.spec_parts import Status
from penstock.api.nebius.accounting import EmbeddedDb
from penstock.api.nebius.group import GROUPS
from penstock.api.nebius.worker_counts import WorkerCounts

FACTS = Path(__file__).parents[2] / "fixtures" / "nebius" / "schema.tsv"
KINDS = {info.resource.kind: info for group in GROUPS for info in group.kinds}
SCHEMAS = {kind: crd.schema(info) for kind, info in KINDS.items()}


class Row(NamedTuple):
    kind: str
    path: str
    type: str
    required: str
    default: str
    constraint: str
    versions: str
    older_default: str
    older_type: str

    @property
    def parent(self) -> str:
        return self.path.removesuffix("[]").removesuffix("{}").rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def rows() -> list[Row]:
    with FACTS.open(encoding="utf-8") as text:
        reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(reader)
        return [Row(*one) for one in reader]


ROWS = rows()
BY_PATH = {(row.kind, row.path): row for row in ROWS}
EVERY_ROW = pytest.mark.parametrize("kind", KINDS)

TYPES = {
    "string": {"string"},
    "boolean": {"boolean"},
    "integer": {"integer"},
    "int|string": {"int-or-string"},
    "Quantity": {"int-or-string"},
    "map[string]string": {"map of string"},
    "map[string]Quantity": {"map of int-or-string"},
    "map[string]object": {"map of object"},
}
BOTH_TYPES = {
    ".spec.slurmNodes.accounting.mariadbOperator.replication.syncBinlog": "anything",
    ".status.slurmJobsStatus.lastJobId": "int-or-string",
}
"""Fields of which two versions have different types: ours takes either."""
WORKERS = (
    ".status.workers",
    *(f".status.workers.{one.encode_name}" for one in fields(WorkerCounts)),
)
"""Counts of pods and Slurm nodes."""
SLURMCTLD = tuple(
    f".status.{one.encode_name}"
    for one in fields(SlurmctldStatus)
    if one.name not in Status.__struct_fields__
)
_EMBEDDED = ".spec.slurmNodes.accounting.embeddedDB"
EMBEDDED = (
    _EMBEDDED,
    *(f"{_EMBEDDED}.{one.encode_name}" for one in fields(EmbeddedDb)),
    *(f"{_EMBEDDED}.storage.{one.encode_name}" for one in fields(DatabaseVolume)),
)
"""A database that the operator runs itself."""
OURS = {
    "SlurmCluster": (
        # All daemons have one type of container; some versions leave fields out of one daemon.
        *(
            f".spec.slurmNodes.worker.{container}.{field}"
            for container in ("munge", "slurmd")
            for field in ("livenessProbe", "readinessProbe", "imagePullSecrets")
        ),
        *EMBEDDED,
        ".spec.authType",
        ".spec.jailMode",
        ".spec.jobIsolation",
        ".spec.jobNetworkInterfaces",
        ".status.observedGeneration",
        *SLURMCTLD,
        *WORKERS,
    ),
    "NodeSet": WORKERS,
    "JailedConfig": (".status.observedGeneration",),
    "NodeConfigurator": (".spec.nodeConfigurator.command", ".spec.nodeConfigurator.name"),
}
"""Fields that the original lacks."""
NOT_REQUIRED = frozenset(
    {
        # Conditions of ours do without the time of their last write.
        ".status.conditions[].lastUpdateTime",
        # A cluster with jailMode None has no jail.
        ".spec.populateJail",
        *(f".spec.slurmNodes.{one}.volumes.jail" for one in ("controller", "login", "worker")),
        ".spec.slurmd.volumes.jail",
    }
)
CORE = ("core/v1", "meta/v1", "mariadb", "monitoring", "object = {name}")


def find(schema: Json, path: str) -> Json | None:
    """The node at a path; None when there is none."""
    node: Json | None = schema
    for part in path.strip(".").split("."):
        name, lists = part.replace("[]", "").replace("{}", ""), part.count("[]")
        node = (node or {}).get("properties", {}).get(name)
        for _ in range(lists):
            node = (node or {}).get("items")
        if part.endswith("{}"):
            node = (node or {}).get("additionalProperties")
    return node


def of(row: Row) -> Json:
    node = find(SCHEMAS[row.kind], row.path)
    assert node is not None, row.path
    return node


def type_of(node: Json) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if isinstance(node.get("additionalProperties"), dict):
        return f"map of {type_of(node['additionalProperties'])}"
    return node.get("type", "anything")


def of_kind(kind: str) -> Iterator[Row]:
    return (row for row in ROWS if row.kind == kind and "<any" not in row.path)


def expected_type(row: Row) -> str:
    if row.path in BOTH_TYPES:
        return BOTH_TYPES[row.path]
    if row.type.startswith("[]"):
        return "array"
    return next(iter(TYPES.get(row.type, {"object"})))


@EVERY_ROW
def test_every_field_of_the_api_has_its_type(kind: str):
    wrong = [
        f"{row.path}: {type_of(of(row))}, expected {expected_type(row)}"
        for row in of_kind(kind)
        if type_of(of(row)) != expected_type(row)
    ]
    assert wrong == []
    assert len(list(of_kind(kind))) > 7


@EVERY_ROW
def test_a_type_of_kubernetes_is_stored_as_it_is(kind: str):
    opaque = ("Affinity", "Toleration", "EnvVar", "Probe", "Container", "RelabelConfig")
    for row in of_kind(kind):
        if row.type.removeprefix("[]").split("/")[-1].split(" ")[-1] in opaque:
            node = of(row)
            inner = node["items"] if row.type.startswith("[]") else node
            assert inner["x-kubernetes-preserve-unknown-fields"], row.path


def in_all_versions(row: Row) -> bool:
    """Whether each version with the object that has the field has the field as well."""
    above = BY_PATH.get((row.kind, row.parent))
    return above is None or above.versions == row.versions


@EVERY_ROW
def test_a_field_is_required_where_every_version_requires_it(kind: str):
    schema = SCHEMAS[kind]
    for row in of_kind(kind):
        above = find(schema, row.parent) if row.parent else schema
        assert above is not None
        required = row.name in above.get("required", ())
        stored = "default" in of(row)
        wanted = row.required == "yes" and in_all_versions(row) and not stored
        wanted = wanted and row.path not in NOT_REQUIRED
        assert required == wanted, row.path


def is_stored(row: Row) -> bool:
    """Whether the API server stores the default of a field."""
    if not row.default or row.path.startswith(".status"):
        return False
    if row.kind == "SlurmCluster":
        return in_all_versions(row) and not row.older_default
    return in_all_versions(row) or row.versions in ("both", "5.0")


@EVERY_ROW
def test_a_default_of_every_version_is_stored(kind: str):
    for row in of_kind(kind):
        node = of(row)
        if not is_stored(row) and not (row.default.startswith("{") and row.versions == "both"):
            assert "default" not in node, row.path
            continue
        wanted: Any = json.loads(row.default)
        whole = filled(node, node["default"])
        if not isinstance(wanted, dict):
            assert whole == wanted, row.path
            continue
        for name, value in cast("Json", wanted).items():
            child = BY_PATH.get((row.kind, f"{row.path}.{name}"))
            if isinstance(value, dict):
                continue
            if child is not None and child.default and not is_stored(child):
                assert name not in whole, child.path
            else:
                assert whole[name] == value, f"{row.path}.{name}"


def filled(node: Json, value: Any) -> Any:
    """A value with the defaults that the API server adds to it."""
    if not isinstance(value, dict):
        return value
    whole: Json = dict(value)  # pyright: ignore[reportUnknownArgumentType]
    for name, child in node.get("properties", {}).items():
        if name not in whole and "default" in child:
            whole[name] = child["default"]
        if name in whole:
            whole[name] = filled(child, whole[name])
    return whole


@EVERY_ROW
def test_a_field_has_the_constraints_of_the_api(kind: str):
    for row in of_kind(kind):
        node = of(row)
        for part in filter(None, row.constraint.split("; ")):
            check(row, node, part)


def check(row: Row, node: Json, part: str) -> None:
    word, _, value = part.partition(" ")
    match word:
        case "enum":
            assert set(node["enum"]) == set(value.split(" / ")), row.path
        case "items:":
            check(row, node["items"], value)
        case "format":
            assert node["format"] == value, row.path
        case "min" | "max":
            assert node[f"{word}imum"] == int(value), row.path
        case "minLength" | "maxLength" | "minItems":
            assert node[word] == int(value), row.path
        case "pattern":
            patterns = {"Q": quantity.PATTERN, "PD": PROMETHEUS_DURATION["pattern"]}
            found = node["anyOf"][1] if "anyOf" in node and "pattern" not in node else node
            assert found["pattern"] == patterns.get(value, value), row.path
        case "listType":
            assert node["x-kubernetes-list-type"] == value, row.path
        case "keys":
            assert node["x-kubernetes-list-map-keys"] == [value], row.path
        case "rule":
            messages = [one["message"] for one in node["x-kubernetes-validations"]]
            assert json.loads(value) in messages, row.path
        case _:
            pytest.fail(f"{row.path}: no check for {part!r}")


def paths(node: Json, path: str = "") -> Iterator[str]:
    for name, child in node.get("properties", {}).items():
        here = f"{path}.{name}"
        yield here
        if child.get("x-kubernetes-preserve-unknown-fields"):
            continue
        yield from paths(child, here)
        for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(child.get(key), dict):
                yield from paths(child[key], f"{here}{mark}")


@EVERY_ROW
def test_there_is_no_other_field(kind: str):
    core = [row.path for row in of_kind(kind) if row.type.removeprefix("[]").startswith(CORE)]
    known = {row.path for row in of_kind(kind)}
    below = tuple(f"{path}{mark}" for path in core for mark in ".[")
    surplus = [
        path
        for part in ("spec", "status")
        for path in paths(SCHEMAS[kind]["properties"][part], f".{part}")
        if path not in known and not path.startswith(below)
    ]
    ours = OURS.get(kind, ())
    beyond = tuple(f"{path}[" for path in ours)
    assert {path for path in surplus if not path.startswith(beyond)} == set(ours)


def test_a_claim_template_under_spool_is_stored():
    """D61. The original's chart writes one, and the original's schema drops it."""
    spool = find(SCHEMAS["NodeSet"], ".spec.slurmd.volumes.spool.volumeClaimTemplateSpec")
    assert spool is not None
    assert "accessModes" in spool["properties"]
