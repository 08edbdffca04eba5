"""What a URL path of the API means.

Source: Kubernetes API concepts, "Resource URIs".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Address:
    """A collection (`name` is empty), an object, or a subresource of one.

    `resource` is `group/plural`, with an empty group for the core's.
    """

    resource: str
    api_version: str
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


@lru_cache(maxsize=4096)
def parse(path: str) -> Address:
    """The address of a path such as `/api/v1/namespaces/a/pods/b/status`."""
    parts = path.strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1]
    version, *rest = parts[1:] if parts[0] == "api" else parts[2:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, sub = (*rest, "", "")[:3]
    api_version = f"{group}/{version}" if group else version
    return Address(f"{group}/{plural}", api_version, namespace, name, sub)
