"""Objects of `slurm.nebius.ai` as somebody writes them who wants the operator to fail.

Values are of the types of our schemas, and else without bounds: an object may have been stored
under another schema, or by an API server that checks less.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

import msgspec
from hypothesis import strategies as st

from declarations.properties import Path, Property, dotted, properties, put
from penstock.api import crd
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.nebius.group import GROUPS
from support import nebius

NINES: Final = "9" * 5000
"""More digits than Python reads as a number."""
TEXTS: Final = (
    *("", " ", "\n", "a\nb=c", "x\x00y", "\x1b[31m", "a\rb", "\t", "\\", "a\\", '"', "'", "#", "="),
    *("ü" * 70, "a" * 300, "a" * 20_000, "\U0001f600", "\u202e", NINES, f"{NINES}%", f"{NINES}s"),
    *(
        "..",
        "/",
        "//",
        "/..",
        "../../etc",
        "/etc/../x",
        "a/../b",
        "/a:b",
        "/mnt/jail",
        "/etc/slurm",
    ),
    *(
        "-1",
        "0",
        "0%",
        "20%",
        "101%",
        "1e999999999",
        "1e18",
        "-1Gi",
        "NaN",
        "inf",
        "-5s",
        "1h",
        "null",
    ),
    *("$(PATH)", "${HOME}", "{{ x }}", "a b", "a,b", "Nodes=ALL Default=YES", "PartitionName=x"),
    *("worker-[0-999999999999999999999]", "w[0-9][0-9][0-9][0-9][0-9][0-9]", "[" * 2000, "w-[1-"),
    *("jail", "controller-spool", "worker-spool", "munge-key", "worker", "controller", "cpu"),
    *("munge", "slurmd", "reconfigure", "include slurm.conf", "A B", "Bad_", "localhost/"),
)
NUMBERS: Final = (
    *(-(2**63), -(2**31), -1, 0, 1, 2, 7, 65_535, 65_536, 99_999),
    *(2**31 - 1, 2**31, 2**63 - 1),
)
OPAQUE: Final[tuple[Json, ...]] = (
    {},
    {"name": "x"},
    {"name": "munge", "image": "i"},
    {"name": None},
    {"name": 5},
    {"value": "x"},
    {"name": "x", "value": 5},
    {"name": "x", "env": [{"value": "1"}]},
    {"key": 1},
    {"a": {"b": [{"c": None}]}},
    {"claimName": "of-somebody-else"},
    {"claimName": ""},
    {"tcpSocket": {"port": "x"}},
    {"tcpSocket": [1]},
    {"items": [1]},
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": 1}}},
    {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}
                ]
            }
        }
    },
)
FIXTURES: Final = {
    "SlurmCluster": ("slurmcluster-1.23-0", "slurmcluster-5.0-0"),
    "NodeSet": ("nodesets-5.0-0", "nodesets-5.0-1"),
    "JailedConfig": ("jailedconfigs-0",),
    "NodeConfigurator": ("nodeconfigurator-5.0-0",),
    "ActiveCheck": ("activechecks-5.0-0",),
    "NodeSetPowerState": ("nodesetpowerstates-5.0-0",),
}
NAMES: Final = ("a", "a.b", "1a", "a" * 63, "a" * 253, "controller", "worker", "all", "soperator")
_SPECS: Final[dict[str, Json]] = {
    info.resource.kind: crd.schema(info)["properties"]["spec"]
    for group in GROUPS
    for info in group.kinds
}
KINDS: Final = tuple(_SPECS)


@cache
def _properties(kind: str) -> tuple[Property, ...]:
    return tuple(properties(kind, _SPECS[kind]))


def _value(draw: st.DrawFn, schema: Json) -> Any:
    """A value of the schema's type."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return draw(st.sampled_from(OPAQUE))
    if "anyOf" in schema:
        return draw(st.sampled_from((*NUMBERS, *TEXTS)))
    if "enum" in schema:
        return draw(st.sampled_from((*schema["enum"], "other")))
    match schema.get("type"):
        case "string":
            return draw(st.sampled_from(TEXTS))
        case "integer" | "number":
            return draw(st.sampled_from(NUMBERS))
        case "boolean":
            return draw(st.booleans())
        case "array":
            found = [_value(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
            return [*found, *found[: draw(st.integers(0, 1))]]
        case _:
            return _mapping(draw, schema)


def _mapping(draw: st.DrawFn, schema: Json) -> Json:
    needed = set(schema.get("required", ()))
    fields = cast("dict[str, Json]", schema.get("properties", {}))
    out = {
        name: _value(draw, child)
        for name, child in fields.items()
        if name in needed or draw(st.integers(0, 2)) == 0
    }
    if isinstance(schema.get("additionalProperties"), dict):
        keys = draw(st.lists(st.sampled_from(TEXTS), max_size=2))
        out |= {key: _value(draw, schema["additionalProperties"]) for key in keys}
    return out


@st.composite
def objects(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> tuple[KubeObject, list[str]]:
    """An object of a fixture with some hostile values, and the paths of these.

    A value that its type cannot have is left out: the API server rejects it.
    """
    kind = draw(st.sampled_from(kinds))
    whole = nebius.manifest(draw(st.sampled_from(FIXTURES[kind])), {"metadata.uid": "uid"})
    if draw(st.integers(0, 9)) == 0:
        whole["metadata"]["name"] = draw(st.sampled_from(NAMES))
    changed: list[str] = []
    obj = nebius.decode(whole)
    for prop in draw(st.lists(st.sampled_from(_properties(kind)), min_size=1, max_size=5)):
        path: Path = prop.path
        after = put(whole, path, _value(draw, prop.schema))
        try:
            obj = nebius.decode(after)
        except msgspec.ValidationError:
            continue
        whole = after
        changed.append(dotted(path))
    return obj, changed
