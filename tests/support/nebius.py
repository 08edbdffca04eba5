"""Objects of `slurm.nebius.ai` for tests: those of `tests/fixtures/nebius`, with changes."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius.group import GROUPS
from penstock.base import yaml_text

FOLDER = Path(__file__).parents[1] / "fixtures" / "nebius"
TYPES = {info.resource.kind: info.type for group in GROUPS for info in group.kinds}
ABSENT: Any = object()
"""A change to this value takes the field away."""


@cache
def _manifests() -> dict[str, dict[str, Any]]:
    return {
        f"{path.stem}-{index}": manifest
        for path in sorted(FOLDER.glob("*.yaml"))
        for index, manifest in enumerate(yaml_text.documents(path.read_text()))
    }


def names() -> list[str]:
    """Names of all objects: the file and the place in it."""
    return list(_manifests())


def manifest(name: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """One object with changes, by dotted paths such as `spec.volumeSources.0.name`."""
    whole = copy.deepcopy(_manifests()[name])
    for path, value in (changes or {}).items():
        *above, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
        node: Any = whole
        for key in above:
            node = node[key] if isinstance(key, int) else node.setdefault(key, {})
        if value is ABSENT:
            del node[last]
        else:
            node[last] = value
    return whole


def decode(given: dict[str, Any]) -> KubeObject:
    """The typed object of a manifest."""
    return msgspec.convert(given, TYPES[given["kind"]])


def made(name: str, changes: dict[str, Any] | None = None) -> KubeObject:
    """The typed object of a fixture with changes."""
    return decode(manifest(name, changes))
