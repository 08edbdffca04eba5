"""Kubernetes' own metadata, as far as Penstock reads it.

Read models are partial: a decoded object drops what is not named here, so it is never written
back whole. Writes are server-side apply or patches of plain dicts.
Source: Kubernetes API reference, ObjectMeta v1 and Condition v1 (meta/v1).
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Json = dict[str, Any]
"""An opaque JSON object: a container, a pod spec, a rendered manifest."""


class KubeStruct(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of everything that is read from the API server: camelCase on the wire, frozen here."""


class OwnerReference(KubeStruct, frozen=True):
    """Who owns an object; `controller` marks the one owner that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    def is_kind(self, group: str, kind: str) -> bool:
        """Whether the owner is of this API group (empty for the core group) and kind.

        Other operators have kinds of the same names, and a kind has more than one version.
        """
        return (self.api_version.rpartition("/")[0], self.kind) == (group, kind)


class ObjectMeta(KubeStruct, frozen=True):
    """Identity and bookkeeping of one object. Times are RFC 3339 text as the server wrote it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict[str, str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    generate_name: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def deleting(self) -> bool:
        """Whether the API server already took a delete for it."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The managing owner, if there is one."""
        return next((o for o in self.owner_references if o.controller), None)


class KubeObject(KubeStruct, frozen=True):
    """Anything with metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class LocalObjectReference(KubeStruct, frozen=True):
    """An object of the same namespace, by name."""

    name: str = ""


class Condition(KubeStruct, frozen=True):
    """One aspect of an object's state, as `metav1.Condition`."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
