"""Schema of a kind beyond its Python types: descriptions, limits and CEL rules.

Facts of one field stand in its annotation (`Annotated[int, about("...", {"minimum": 1})]`); facts
of a whole kind stand in its `KindInfo`. `penstock.api.crd` reads both.

Rules are for the API server only: decoding stays lenient, so that an object which was stored under
a looser schema can still be read, checked by `KindRules.problems` and fixed.
Source: Kubernetes API reference, CustomResourceDefinition v1 (apiextensions.k8s.io).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Meta

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.resource import Resource

NULLABLE: Json = {"nullable": True}
INT32: Json = {"format": "int32", "maximum": 2**31 - 1}
INT64: Json = {"format": "int64"}
DATE_TIME: Json = {"format": "date-time"}
ATOMIC_MAP: Json = {"x-kubernetes-map-type": "atomic"}
ATOMIC_LIST: Json = {"x-kubernetes-list-type": "atomic"}
DEFAULT: Final = "x-penstock-default"
"""Key of a default that is empty. Python's own empty defaults stay out of the schema, so that the
API server does not add empty fields to what a user wrote; this one goes in all the same."""
UNSTORED: Json = {"x-penstock-unstored-default": True}
"""The default applies when the operator reads the field; the API server does not store it."""
DURATION: Json = {"pattern": r"^-?(0|([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+)$", "maxLength": 64}
"""A duration as Go writes it."""
PROMETHEUS_DURATION: Json = {
    "pattern": (
        r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?"
        r"(([0-9]+)ms)?)$"
    )
}
"""A duration as Prometheus writes it."""
OPAQUE: Json = {"x-kubernetes-preserve-unknown-fields": True}
"""Fields that the schema does not name are kept as they are instead of being pruned."""


def rule(expression: str, message: str) -> Json:
    """A CEL rule on the annotated value; the API server rejects with `message` when it is false."""
    return {"x-kubernetes-validations": [{"rule": expression, "message": message}]}


def about(description: str, *parts: Mapping[str, Any]) -> Meta:
    """The annotation of one field: its description and its schema keys; CEL rules add up."""
    merged: Json = {}
    for part in parts:
        for key, value in part.items():
            earlier = merged.get(key)
            if isinstance(earlier, list):
                merged[key] = [*earlier, *value]
            else:
                merged[key] = value
    return Meta(description=description, extra_json_schema=merged or None)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; priority 1 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """What `kubectl` and the API server need to know of a kind beside its fields."""

    resource: Resource[Any]
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    rules: tuple[Json, ...] = ()
    scale_selector: str = ""
    """Path of the label selector in the scale subresource; empty for a kind without one."""

    @property
    def type(self) -> type[KubeObject]:
        """The Python type of the kind."""
        return self.resource.type


AGE = Column("AGE", ".metadata.creationTimestamp", "date")
READY = Column(
    "READY",
    '.status.conditions[?(@.type=="Ready")].status',
    description="Whether the object is as declared.",
)
REASON = Column(
    "REASON",
    '.status.conditions[?(@.type=="Ready")].reason',
    description="Why it is ready or not, in one word.",
)
