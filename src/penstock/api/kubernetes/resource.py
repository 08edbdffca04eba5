"""What the API server calls a kind, and the type we read it as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from penstock.api.kubernetes.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


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
        """URL path of the collection, of one object, or of its subresource `sub`."""
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if sub:
            parts.append(sub)
        return "/" + "/".join(parts)
