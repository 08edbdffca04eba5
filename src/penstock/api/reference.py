"""`docs/reference.md`: each kind's fields as a table, from the same schema as the definitions.

`python -m penstock.api.reference FILE` writes it; `--check FILE` compares instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.api.crd import schema
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.schema import KindInfo
from penstock.api.registry import KINDS

_HEAD = """<!-- Generated from src/penstock/api by `python -m penstock.api.reference`. -->
# Reference of the kinds

All kinds live in a namespace. Two groups have a NodeSet: its workers belong to a Controller
(`slinky.slurm.net`) or to a SlurmCluster (`slurm.nebius.ai`).
"""


def text(kinds: Sequence[KindInfo] = KINDS) -> str:
    """The whole page."""
    names = [info.resource.kind for info in kinds]
    return "\n".join(
        [
            _HEAD,
            *(_kind(info, again=info.resource.kind in names[:at]) for at, info in enumerate(kinds)),
        ]
    )


def _kind(info: KindInfo, *, again: bool) -> str:
    whole, resource = schema(info), info.resource
    title = f"{resource.kind} of {resource.group}" if again else resource.kind
    names = ", ".join(f"`{name}`" for name in (resource.plural, *info.short_names))
    lines = [
        f"## {title}\n",
        f"{whole['description']}\n",
        f"`apiVersion: {resource.api_version}`, for kubectl {names}.\n",
    ]
    for part in ("spec", "status"):
        lines += [f"| Field of {part} | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
        lines += list(_rows(whole["properties"][part], ""))
        lines.append("")
    rules = [
        one["message"] for node in _nodes(whole) for one in node.get("x-kubernetes-validations", ())
    ]
    if rules:
        lines += ["The API server rejects an object with:\n", *(f"- {rule}" for rule in rules), ""]
    return "\n".join(lines)


def _rows(node: Json, path: str) -> Iterator[str]:
    required = node.get("required", ())
    for name, child in sorted(node.get("properties", {}).items()):
        here = f"{path}.{name}" if path else name
        default = (
            f"`{json.dumps(child['default'])}`" if child.get("default") not in (None, "") else ""
        )
        default = "required" if name in required else default
        meaning = child.get("description", "").replace("|", "\\|")
        yield f"| `{here}` | {_type(child)} | {default} | {meaning} |"
        if child.get("x-kubernetes-preserve-unknown-fields"):
            continue
        inner = child.get("items", child)
        yield from _rows(inner, f"{here}[]" if "items" in child else here)


def _type(node: Json) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m penstock.api.reference", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    if not options.check:
        options.file.write_text(text(), encoding="utf-8")
        return 0
    if options.file.exists() and options.file.read_text(encoding="utf-8") == text():
        return 0
    sys.stderr.write(f"{options.file} differs: run `python -m penstock.api.reference FILE`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
