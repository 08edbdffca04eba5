"""What the API server calls a kind, and the type we read it as."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from penstock.api.kubernetes.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

LONGEST_NAME: Final = 253
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SEGMENT: Final = re.compile(r"[^/%\x00-\x20\x7f]+")
_RIGHTS: Final = "rbac.authorization.k8s.io"


class ObjectNameError(ValueError):
    """A text can be the name of no object."""


def is_object_name(text: str) -> bool:
    """Whether objects can have this name: a DNS subdomain.

    Source: Kubernetes documentation, "Object Names and IDs".
    """
    return len(text) <= LONGEST_NAME and _DNS_NAME.fullmatch(text) is not None


class ObjectKey(NamedTuple):
    """One object of a namespace, whatever version of its group it is read in."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}/{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One REST resource: where it lives and the partial struct its objects are decoded to."""

    group: str
    version: str
    kind: str
    plural: str
    type: type[T]
    namespaced: bool = True
    optional: bool = False
    """Whether a cluster may be without it: its definition is not installed, or comes later."""
    forbidden_is_absent: bool = False
    """Whether the lack of the right to read an optional one counts as its absence.

    Not for kinds that decisions depend on: without a right there may be objects all the same.
    """

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def key(self, namespace: str, name: str) -> ObjectKey:
        """The key of one of its objects."""
        return ObjectKey(self.group, self.kind, namespace, name)

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        """URL path of the collection, of one object, or of its subresource `sub`.

        Raises ObjectNameError for names that none can have: names come from fields of users, and
        one with slashes or dots would lead to another object.
        """
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if self.namespaced and namespace:
            parts += ["namespaces", _checked(namespace, "namespace")]
        parts.append(self.plural)
        if name:
            parts.append(self._checked_name(name))
        if sub:
            parts.append(sub)
        return "/" + "/".join(parts)

    def _checked_name(self, name: str) -> str:
        if self.group != _RIGHTS:
            return _checked(name, self.kind)
        # Names of roles and their bindings are path segments, such as system:node.
        if name in (".", "..") or not _SEGMENT.fullmatch(name):
            raise ObjectNameError(f"{name[:60]!r} can be the name of no {self.kind}")
        return quote(name, safe=":")


def _checked(name: str, kind: str) -> str:
    if not is_object_name(name):
        raise ObjectNameError(f"{name[:60]!r} can be the name of no {kind}")
    return quote(name, safe="")
