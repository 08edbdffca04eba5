"""Fields of each kind as a table, from the same schema as the definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from penstock.api.crd import schema
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.schema import KindInfo
from penstock.api.registry import groups
from reference.page import Page, code, table


def pages() -> list[Page]:
    """One page for each API group, whose kinds may be of several versions and registered apart."""
    by_name: dict[str, list[KindInfo]] = {}
    for group in groups():
        by_name.setdefault(group.name, []).extend(group.kinds)
    return [_page(name, kinds) for name, kinds in by_name.items()]


def _page(name: str, kinds: Sequence[KindInfo]) -> Page:
    versions = dict.fromkeys(info.resource.version for info in kinds)
    written = " and ".join(code(f"{name}/{version}") for version in versions)
    body = "\n".join(
        [
            f"For everyone who writes objects of `apiVersion` {written}. All kinds live in "
            "a namespace. `kubectl explain KIND.spec` shows the same.\n",
            *(_kind(info) for info in kinds),
        ]
    )
    return Page(f"kinds-{name}", f"Kinds of {name}", f"fields of the kinds of {name}", body)


def _kind(info: KindInfo) -> str:
    whole, resource = schema(info), info.resource
    names = ", ".join(map(code, (resource.plural, *info.short_names)))
    version = f"Version {code(resource.version)}; for kubectl: {names}."
    lines = [f"## {resource.kind}\n", f"{whole['description']} {version}\n"]
    for part in ("spec", "status"):
        rows = _rows(whole["properties"][part], "")
        lines += [table((f"Field of {part}", "Type", "Default", "Meaning"), rows), ""]
    rules = [
        one["message"] for node in _nodes(whole) for one in node.get("x-kubernetes-validations", ())
    ]
    if rules:
        lines += ["The API server rejects an object with:\n", *(f"- {rule}" for rule in rules), ""]
    return "\n".join(lines)


def _rows(node: Json, path: str) -> Iterator[tuple[str, str, str, str]]:
    required = node.get("required", ())
    for name, child in sorted(node.get("properties", {}).items()):
        here = f"{path}.{name}" if path else name
        has_default = child.get("default") not in (None, "")
        default = code(json.dumps(child["default"])) if has_default else ""
        default = "required" if name in required else default
        yield code(here), _type(child), default, child.get("description", "")
        if child.get("x-kubernetes-preserve-unknown-fields"):
            continue
        inner = child.get("items", child)
        yield from _rows(inner, f"{here}[]" if "items" in child else here)


def _type(node: Json) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in node:
        return ", ".join(code(str(value)) for value in node["enum"])
    if "items" in node:
        return f"list of {_type(node['items'])}"
    if "additionalProperties" in node:
        return f"map of {_type(node['additionalProperties'])}"
    return node.get("type", "anything")


def _nodes(node: Json) -> Iterator[Json]:
    yield node
    for child in node.get("properties", {}).values():
        yield from _nodes(child)
    if "items" in node:
        yield from _nodes(node["items"])
