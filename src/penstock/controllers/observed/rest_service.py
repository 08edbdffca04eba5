"""The Service of a slurmrestd: tokens of SlurmUser go to one of ours only.

Who may create a Service in a namespace could otherwise have them sent anywhere, by a Service of the
expected name or of type ExternalName.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from penstock.api.kubernetes.kinds import Service
from penstock.api.kubernetes.resource import Resource
from penstock.kube import Cache

_WITH_ADDRESS: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
"""Types whose name resolves to an address of the cluster. Source: Kubernetes documentation,
"Service"."""


class RestServices:
    """Services of the slurmrestds of one kind of owner."""

    def __init__(self, services: Cache[Service], owners: Resource[Any]) -> None:
        self._services = services
        self._owners = owners

    def distrust(self, url: str, uid: str = "") -> str:
        """Why no token goes to this URL, with the next step; empty when it may.

        The owner of the Service is of the kind, and the one with `uid` if that is given.
        """
        name, _, namespace = (urlsplit(url).hostname or "").partition(".")
        service, kind = self._services.get(f"{namespace}/{name}"), self._owners.kind
        if service is None:
            return f"Service {name} of slurmrestd does not exist yet"
        owners = [
            one.uid
            for one in service.metadata.owner_references
            if one.is_kind(self._owners.group, kind)
        ]
        if not owners or (uid and uid not in owners):
            return (
                f"Service {name} does not belong to the {kind}, so no token is sent to it: delete "
                "it, and the operator creates it"
            )
        type_ = service.spec.get("type") or "ClusterIP"
        if type_ not in _WITH_ADDRESS or service.spec.get("externalName"):
            return (
                f"Service {name} is of type {type_}, so no token is sent to it: remove type and "
                f"externalName from it and from the {kind}"
            )
        return ""
