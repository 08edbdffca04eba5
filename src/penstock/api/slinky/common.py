"""Parts that several kinds of `slinky.slurm.net/v1beta1` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import field

from penstock.api.kubernetes.meta import Condition, Json, KubeStruct
from penstock.api.kubernetes.meta import LocalObjectReference as LocalObjectReference
from penstock.api.kubernetes.resource import ObjectKey
from penstock.api.kubernetes.schema import (
    ATOMIC_LIST,
    ATOMIC_MAP,
    DEFAULT,
    INT32,
    INT64,
    NULLABLE,
    OPAQUE,
    about,
    rule,
)

GROUP = "slinky.slurm.net"
VERSION = "v1beta1"
CONTROLLER: Final = ("slinky.slurm.net", "Controller")
"""Group and kind of the object that a ControllerRef names."""

LONGEST_CONF: Final = 131_072
"""Characters of lines that a user adds to a file of Slurm. With two thousand NodeName lines a
slurm.conf has about as many."""
LONGEST_LINE: Final = 32_768
"""Characters of one line of a file of Slurm."""
LONGEST_KEYS: Final = 524_288
"""Characters of public keys, one a line: seven hundred of RSA with 4096 bits. A ConfigMap has twice
as many bytes."""
LONGEST_WORDS: Final = 1024
"""Characters of a name that Slurm or a database takes as it is."""
SHORT: Final[Json] = {"maxLength": LONGEST_WORDS}
"""Schema of such a name."""
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
_CONDITION: Json = {
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


class ControllerRef(KubeStruct, frozen=True):
    """The Controller, that is the Slurm cluster, to which an object belongs."""

    name: Annotated[str, about("Name of the Controller.", _NAME)] = ""
    namespace: Annotated[
        str,
        about(
            "Namespace of the Controller. Empty means the object's own; the own one by name means "
            "the same.",
            {"maxLength": 63},
        ),
    ] = ""


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


class ExternalConfig(KubeStruct, frozen=True):
    """Where a daemon lives that is not run by Kubernetes."""

    host: Annotated[str, about("Host name or address of the daemon.", {"maxLength": 253})]
    port: Annotated[
        int | None,
        about(
            "Port of the daemon. Slurm's usual one when absent.",
            INT32,
            NULLABLE,
            {"minimum": 1, "maximum": 65535},
        ),
    ] = None


Container = Annotated[
    Json,
    about("A Kubernetes Container, merged over the generated one.", OPAQUE, _IMAGE),
]
"""A container, opaque but for its image; the empty object when absent."""

SSSD_NAME = rule(
    "!has(self.sssdConfRef) || self.sssdConfRef.name != ''", "sssdConfRef.name must not be empty"
)
NO_HOST_NETWORK = rule(
    "!has(self.spec) || !has(self.spec.hostNetwork) || !self.spec.hostNetwork",
    "hostNetwork is not offered for this kind: its clients find it by a Service and fixed names. "
    "Remove it; NodeSet, LoginSet and RestApi may have it",
)
EXTERNAL_CONFIG = rule(
    "!has(self.external) || !self.external || has(self.externalConfig)",
    "externalConfig must be set when external is true",
)

SlurmKeyRef = Annotated[
    SecretKeySelector | None,
    about("Secret with the key of auth/slurm (slurm.key).", ATOMIC_MAP),
]
JwtKeyRef = Annotated[
    SecretKeySelector | None,
    about("Secret with the HS256 key of auth/jwt (jwt.key).", ATOMIC_MAP),
]
JwtHs256KeyRef = Annotated[
    SecretKeySelector | None,
    about("Older name of jwtKeyRef, which wins when both are given.", ATOMIC_MAP),
]
JwksKeyRef = Annotated[
    ConfigMapKeySelector | None,
    about("ConfigMap with the JWKS file of outside token issuers.", ATOMIC_MAP),
]
ExtraSshdConfig = Annotated[str, about("Lines added to sshd_config.", {"maxLength": LONGEST_CONF})]
SssdConfRef = Annotated[
    SecretKeySelector | None,
    about("Secret with sssd.conf. Without it users come from the pod's own files.", ATOMIC_MAP),
]
Refs = Annotated[
    tuple[Annotated[LocalObjectReference, about("A ConfigMap by name.", LOCAL_REF)], ...] | None,
    about("ConfigMaps, by name.", NULLABLE, ATOMIC_LIST, {"maxItems": 256}),
]

NON_EMPTY_REF = rule("self.name != ''", "controllerRef.name must not be empty")
FIXED_REF = rule(
    # `namespace` is a reserved word of CEL.
    "self.name == oldSelf.name && (!has(self.__namespace__) || !has(oldSelf.__namespace__) "
    "|| self.__namespace__ == oldSelf.__namespace__)",
    "controllerRef is immutable: delete the object and create it again for another Controller",
)


def controller_key(ref: ControllerRef, namespace: str) -> tuple[ObjectKey, ...]:
    """The Controller that an object of a namespace belongs to, whether that exists or not.

    None for a Controller of another namespace: a name in a reference is no right to its keys, its
    configuration or its nodes.
    """
    if ref.namespace not in ("", namespace):
        return ()
    return (ObjectKey(*CONTROLLER, namespace, ref.name),)


def controller_ref_problems(ref: ControllerRef, namespace: str) -> Iterator[tuple[str, str]]:
    """Path and what to write instead, for each fault of the reference of an object."""
    if not ref.name:
        yield "spec.controllerRef.name", "must not be empty"
    if ref.namespace not in ("", namespace):
        yield (
            "spec.controllerRef.namespace",
            f"nothing grants the use of a Controller of namespace {ref.namespace!r}: name a "
            f"Controller of namespace {namespace!r}, or put this object there",
        )


def jwt_key(spec: str, fallback: str) -> str:
    """A CEL expression: name and key of the JWT Secret that `spec` leads to."""
    names = (f"{spec}.jwtKeyRef", f"{spec}.jwtHs256KeyRef")
    choices = [f"has({name}) ? {name}.name + '/' + {name}.key" for name in names]
    return f"({' : '.join(choices)} : {fallback})"


def fixed_once(used: str, same: str, field: str, when: str) -> Json:
    """A rule of a whole object: `field` may be corrected until something worked with it.

    `used` and `same` are CEL expressions, `used` of the stored object: the API server keeps its
    status when a spec is changed. So the rule needs no webhook.
    """
    return rule(
        f"{same} || !({used})",
        f"{field} is immutable {when}: put a new key into the same Secret instead",
    )


def has_condition(test: str) -> str:
    """A CEL expression: whether the stored object has a condition `c` that passes `test`."""
    found = "oldSelf.status.conditions"
    return f"has(oldSelf.status) && has({found}) && {found}.exists(c, {test})"


def same_jwt_key(fallback: str) -> str:
    """A CEL expression: whether old and new spec lead to the same JWT key."""
    return f"{jwt_key('oldSelf.spec', fallback)} == {jwt_key('self.spec', fallback)}"


KEPT_JWT_KEY = f"{jwt_key('oldSelf.spec', repr(''))} in ['', {jwt_key('self.spec', repr(''))}]"
"""A CEL expression for kinds that may be without a JWT key: whether the one they had stays."""

Conditions = Annotated[
    tuple[Annotated[Condition, about("One aspect of the state.", _CONDITION)], ...],
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

    observed_generation: ObservedGeneration = 0
    conditions: Conditions = ()
