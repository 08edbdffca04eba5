"""Parts of a spec or status that kinds of several API groups have in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import field

from penstock.api.kubernetes.meta import Condition, Json, KubeStruct, LocalObjectReference
from penstock.api.kubernetes.schema import (
    ATOMIC_LIST,
    ATOMIC_MAP,
    DEFAULT,
    INT32,
    INT64,
    NULLABLE,
    OPAQUE,
    about,
)

_NAME: Json = {DEFAULT: "", "maxLength": 253}
_IMAGE: Json = {
    "properties": {
        "image": {"type": "string", "nullable": True, "description": "The image, as one string."}
    }
}
LOCAL_REF: Json = {
    **ATOMIC_MAP,
    "properties": {"name": {**_NAME, "description": "Name of the object."}},
}
"""Schema of a LocalObjectReference."""
HOSTNAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-?$"
CONDITION: Json = {
    "required": ["lastTransitionTime", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"format": "date-time", "description": "When the status changed."},
        "message": {"maxLength": 32768, "description": "What a person should know."},
        "observedGeneration": {
            "format": "int64",
            "minimum": 0,
            "description": "Generation of the spec that the condition is about.",
        },
        "reason": {
            "description": "Why, in one word.",
            "maxLength": 1024,
            "minLength": 1,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"description": "True, False or Unknown."},
        "type": {"maxLength": 316, "description": "Which aspect it is about."},
    },
}
"""Schema of a Condition."""


class SecretKeySelector(KubeStruct, frozen=True, kw_only=True):
    """One key of a Secret of the same namespace."""

    name: Annotated[str, about("Name of the Secret.", _NAME)] = ""
    key: Annotated[str, about("Key within the Secret's data.", {"maxLength": 253})]
    optional: Annotated[bool | None, about("Not used: what is named must be there.")] = None


class ConfigMapKeySelector(KubeStruct, frozen=True, kw_only=True):
    """One key of a ConfigMap of the same namespace."""

    name: Annotated[str, about("Name of the ConfigMap.", _NAME)] = ""
    key: Annotated[str, about("Key within the ConfigMap's data.", {"maxLength": 253})]
    optional: Annotated[bool | None, about("Not used: what is named must be there.")] = None


class Metadata(KubeStruct, frozen=True):
    """Labels and annotations that are put on a generated object."""

    labels: Annotated[dict[str, str] | None, about("Labels to add.", NULLABLE)] = None
    annotations: Annotated[dict[str, str] | None, about("Annotations to add.", NULLABLE)] = None


class PodTemplate(KubeStruct, frozen=True):
    """What the user lays over a generated pod."""

    metadata: Annotated[Metadata, about("Labels and annotations of the pod.")] = Metadata()
    spec: Annotated[
        Json,
        about(
            "A Kubernetes PodSpec, merged over the generated one.",
            OPAQUE,
            {
                "properties": {
                    "hostname": {
                        "type": "string",
                        "maxLength": 253,
                        "pattern": HOSTNAME_PATTERN,
                        "description": "Name of the pod within its network. A trailing dash is "
                        "followed by the ordinal.",
                    },
                    "hostNetwork": {
                        "type": "boolean",
                        "description": "Whether the pod uses the network of its Kubernetes node.",
                    },
                }
            },
        ),
    ] = field(default_factory=dict[str, Any])


class ServiceSpec(KubeStruct, frozen=True):
    """What the user lays over a generated Service."""

    metadata: Annotated[Metadata, about("Labels and annotations of the Service.")] = Metadata()
    spec: Annotated[
        Json,
        about(
            "A Kubernetes ServiceSpec on which the generated one is based. externalIPs are "
            "dropped (CVE-2020-8554).",
            OPAQUE,
        ),
    ] = field(default_factory=dict[str, Any])
    port: Annotated[
        int | None,
        about(
            "Port of the Service. The daemon's own when absent or 0.",
            INT32,
            {"minimum": 0, "maximum": 65535},
        ),
    ] = None
    node_port: Annotated[
        int | None,
        about(
            "Port on each Kubernetes node, for type NodePort. Chosen by Kubernetes when absent or "
            "0.",
            INT32,
            {"minimum": 0, "maximum": 65535},
        ),
    ] = None


Container = Annotated[
    Json,
    about("A Kubernetes Container, merged over the generated one.", OPAQUE, _IMAGE),
]
"""A container, opaque but for its image; the empty object when absent."""
Refs = Annotated[
    tuple[Annotated[LocalObjectReference, about("A ConfigMap by name.", LOCAL_REF)], ...] | None,
    about("ConfigMaps, by name.", NULLABLE, ATOMIC_LIST, {"maxItems": 256}),
]


def has_condition(test: str) -> str:
    """A CEL expression: whether the stored object has a condition `c` for which `test` is true."""
    found = "oldSelf.status.conditions"
    return f"has(oldSelf.status) && has({found}) && {found}.exists(c, {test})"


Conditions = Annotated[
    tuple[Annotated[Condition, about("One aspect of the state.", CONDITION)], ...],
    about(
        "State of the object: Ready, and Reconciling or Stalled while they apply.",
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
ObservedGeneration = Annotated[
    int, about("Generation of the spec that this status is about.", INT64)
]


class Status(KubeStruct, frozen=True):
    """What each kind's status has."""

    identity: ClassVar[frozenset[str]] = frozenset({"observedGeneration"})
    """Fields that define what the rest is about: with one of them the whole status is sent."""
    observed_generation: ObservedGeneration = 0
    conditions: Conditions = ()
