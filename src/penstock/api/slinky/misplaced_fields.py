"""Fields of a container that stand in a pod spec, and the other way round.

The schema leaves containers and pod specs open, so the API server keeps such a field, and nothing
reads it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.pod_fields import OF_CONTAINERS, OF_PODS
from penstock.api.kubernetes.spec_parts import PodTemplate

_POD: Final = "spec.template.spec"
_HOLLOW: Final[tuple[Any, ...]] = (None, "", {}, [])


def misplaced(containers: Mapping[str, Json], template: PodTemplate) -> Iterator[str]:
    """`path: where it belongs` for each field of this kind that asks for something.

    `containers` are those of the spec by field; the first one is the daemon's.
    """
    for name, container in containers.items():
        yield from _in_container(f"spec.{name}", container)
    main = next(iter(containers))
    for field in _given(template.spec, OF_CONTAINERS):
        yield (
            f"{_POD}.{field}: not used, a pod has no such field; move it into its container, "
            f"spec.{main}.{field}"
        )
    for kind in ("initContainers", "containers"):
        listed: Any = template.spec.get(kind)
        for index, one in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else ()):
            yield from _in_container(f"{_POD}.{kind}[{index}]", one)


def _in_container(path: str, container: Any) -> Iterator[str]:
    for field in _given(container, OF_PODS):
        yield (
            f"{path}.{field}: not used, a container has no such field; move it to {_POD}.{field}"
        )


def _given(value: Any, fields: frozenset[str]) -> list[str]:
    """The fields that are there and ask for something, in the order written."""
    if not isinstance(value, dict):
        return []
    there = cast("Json", value)
    return [name for name, given in there.items() if name in fields and given not in _HOLLOW]
