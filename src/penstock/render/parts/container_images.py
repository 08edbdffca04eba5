"""The images of a pod's containers."""

from __future__ import annotations

from typing import Any, cast

from penstock.api.kubernetes.meta import Json


def images(spec: Json) -> dict[str, str]:
    """The images of a pod's containers by their names, as far as it names them."""
    found: dict[str, str] = {}
    for kind in ("initContainers", "containers"):
        for one in cast("list[Any]", spec.get(kind) or []):
            if isinstance(one, dict):
                fields = cast("Json", one)
                found[str(fields.get("name"))] = str(fields.get("image") or "")
    return found
