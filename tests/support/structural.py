"""What an API server does with an object by its definition's schema, without an API server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.base import yaml_text

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "object": (dict,),
    "array": (list,),
}


def schemas() -> dict[str, Json]:
    """Schema by kind."""
    found: dict[str, Json] = {}
    for path in CRDS.glob("*.yaml"):
        spec: Json = yaml_text.document(path.read_text())["spec"]
        found[spec["names"]["kind"]] = spec["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def faults(value: Any, node: Json, path: str = "") -> Iterator[str]:
    """Fields that the API server would reject, and those that it would prune in silence."""
    if value is None:
        if not node.get("nullable"):
            yield f"{path}: null"
        return
    if node.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, str)):
            yield f"{path}: neither number nor text"
        return
    wanted = _TYPES.get(node.get("type", ""), (object,))
    flag = isinstance(value, bool) and wanted in ((int,), (str,))
    if flag or not isinstance(value, wanted):
        yield f"{path}: {value!r} is no {node['type']}"
        return
    if "enum" in node and value not in node["enum"]:
        yield f"{path}: {value!r} is none of {node['enum']}"
    if "pattern" in node and not re.search(node["pattern"], str(value)):
        yield f"{path}: {value!r} does not match {node['pattern']}"
    if isinstance(value, dict):
        yield from _mapping(cast("Json", value), node, path)
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from faults(item, node.get("items", {}), f"{path}[{index}]")


def _mapping(value: Json, node: Json, path: str) -> Iterator[str]:
    known: Json = node.get("properties", {})
    rest = node.get("additionalProperties")
    open_ = node.get("x-kubernetes-preserve-unknown-fields") or path == ".metadata"
    for name in node.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, inner in value.items():
        if name in known:
            yield from faults(inner, known[name], f"{path}.{name}")
        elif isinstance(rest, dict):
            yield from faults(inner, cast("Json", rest), f"{path}.{name}")
        elif not open_:
            yield f"{path}.{name}: would be pruned"
