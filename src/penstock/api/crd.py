"""CustomResourceDefinitions, generated from the typed kinds.

`python -m penstock.api.crd DIR` writes one file per kind; `--check DIR` compares instead.
Source of the schema's form: structural schemas, Kubernetes documentation of
CustomResourceDefinitions (apiextensions.k8s.io/v1).
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.schema import DEFAULT, Column, KindInfo
from penstock.api.registry import registry
from penstock.catalog.marks import kubernetes

HEADER = "# Generated from src/penstock/api by `make crds`. Change it there.\n"
_API_VERSION = "Group and version of this object's schema."
_KIND = "Kind of this object."


def schema(info: KindInfo) -> Json:
    """The structural OpenAPI v3 schema of a kind."""
    (root,), components = msgspec.json.schema_components([info.type], ref_template="{name}")
    components["ObjectMeta"] = {"type": "object"}
    whole = _structural(root, components)
    properties = whole["properties"]
    properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
    properties["kind"] = {"type": "string", "description": _KIND}
    properties["metadata"] = {"type": "object"}
    properties["status"] = _without_defaults(properties["status"])
    if info.rules:
        whole["x-kubernetes-validations"] = [
            one for part in info.rules for one in part["x-kubernetes-validations"]
        ]
    return whole


def definition(info: KindInfo) -> Json:
    """The CustomResourceDefinition of a kind."""
    resource = info.resource
    subresources: Json = {"status": {}}
    if info.scale_selector:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": info.scale_selector,
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            # With a definition go all objects of its kind. Helm leaves it when a release goes.
            "annotations": {kubernetes.HELM_POLICY.key: "keep"},
        },
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(info.short_names),
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(one) for one in info.columns],
                    "schema": {"openAPIV3Schema": schema(info)},
                    "subresources": subresources,
                }
            ],
        },
    }


def file_name(info: KindInfo) -> str:
    """Name of the file that holds the kind's definition."""
    return f"{info.resource.group}_{info.resource.plural}.yaml"


def render(info: KindInfo) -> str:
    """The definition as YAML; the same types give the same bytes."""
    return HEADER + yaml.dump(
        definition(info), Dumper=Dumper, sort_keys=True, width=100, allow_unicode=True
    )


def write(directory: Path, kinds: Sequence[KindInfo] = registry().kinds) -> None:
    """Write all definitions."""
    directory.mkdir(parents=True, exist_ok=True)
    for info in kinds:
        (directory / file_name(info)).write_text(render(info), encoding="utf-8")


def differences(directory: Path, kinds: Sequence[KindInfo] = registry().kinds) -> list[str]:
    """Lines of a unified diff between the files and what they should be; empty when equal."""
    lines: list[str] = []
    for info in kinds:
        path = directory / file_name(info)
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            found.splitlines(), render(info).splitlines(), str(path), "generated", lineterm="", n=1
        )
    expected = {file_name(info) for info in kinds}
    stray = sorted(path for path in directory.glob("*.yaml") if path.name not in expected)
    return lines + [f"{path}: no kind has this file" for path in stray]


def _column(column: Column) -> Json:
    out: Json = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        out["priority"] = column.priority
    if column.description:
        out["description"] = column.description
    return out


def _structural(node: Json, components: Mapping[str, Json]) -> Json:
    """One node of msgspec's JSON schema as Kubernetes wants it, references put in place."""
    reference = node.get("$ref")
    if reference is not None:
        own = {key: value for key, value in node.items() if key != "$ref"}
        return _structural(_merged(components[reference], own), components)
    out = _without_null(node)
    if "$ref" in out:
        return _structural(out, components)
    for key in ("title", "$ref"):
        out.pop(key, None)
    if out.get("default") in (None, "", [], (), {}) or isinstance(out.get("default"), dict):
        out.pop("default", None)
    if out.pop("x-penstock-unstored-default", False):
        out.pop("default", None)
    if DEFAULT in out:
        out["default"] = out.pop(DEFAULT)
    if isinstance(out.get("default"), tuple):
        out["default"] = list(out["default"])
    if not out.get("required"):
        out.pop("required", None)
    if "enum" in out:
        out["type"] = "string"
    if "anyOf" in out:
        out["x-kubernetes-int-or-string"] = True
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _structural(out[key], components)
    if "properties" in out:
        out["properties"] = {
            name: _structural(child, components) for name, child in out["properties"].items()
        }
    return out


def _without_null(node: Json) -> Json:
    """Drop null from an optional value, which may be left out; `nullable` allows null as well."""
    choices: list[Json] | None = node.get("anyOf")
    if choices is None:
        return dict(node)
    own = {key: value for key, value in node.items() if key != "anyOf"}
    kept = [choice for choice in choices if choice.get("type") != "null"]
    return _merged(kept[0], own) if len(kept) == 1 else {**own, "anyOf": kept}


def _without_defaults(node: Json) -> Json:
    """A status holds what was written to it and nothing else."""
    out: Json = {}
    for key, value in node.items():
        if key == "default":
            continue
        if key == "properties":
            out[key] = {name: _without_defaults(child) for name, child in value.items()}
        else:
            out[key] = _without_defaults(value) if key == "items" else value
    return out


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    """`over` laid on `base`, mapping by mapping."""
    out = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = _merged(out[key], cast("Json", value))
        else:
            out[key] = value
    return out


class Dumper(yaml.SafeDumper):
    """No anchors: a reader should not have to follow them."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what stands twice twice."""
        return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m penstock.api.crd", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.directory)
        return 0
    lines = differences(options.directory)
    for line in lines:
        sys.stderr.write(f"{line}\n")
    if lines:
        sys.stderr.write("The definitions differ from the types: run `make crds`.\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
