"""Which slurmrestd each Controller's Slurm has: that of its oldest RestApi."""

from __future__ import annotations

from collections.abc import Callable

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RESTAPIS, RestApi
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.rest_service import RestServices
from penstock.controllers.observed.slinky_caches import SlinkyCaches
from penstock.controllers.observed.slurm_endpoints import SlurmEndpoint, SlurmEndpoints, Target
from penstock.slurm import daemons


class ControllerEndpoints(SlurmEndpoints):
    """Those of all Controllers.

    `url_of` is where the slurmrestd of a RestApi listens, without it at its Service, which is
    checked (`rest_service`). The connection to an external slurmctld outlives its Controller while
    NodeSets need it to drain.
    """

    def __init__(
        self,
        caches: SlinkyCaches,
        secrets: SecretReader,
        url_of: Callable[[RestApi], str] | None = None,
    ) -> None:
        self._caches = caches
        self._secrets = secrets
        self._url_of = url_of or service_url
        self._services = RestServices(caches.services, RESTAPIS) if url_of is None else None

    def uid(self, key: str) -> str:
        """The uid of the Controller, empty while there is none."""
        controller = self._caches.controllers.get(key)
        return controller.metadata.uid if controller is not None else ""

    def largest_size(self) -> int:
        """The sum over all NodeSets."""
        return sum(map(_size, self._caches.nodesets))

    def find(self, key: str) -> SlurmEndpoint | None:
        """By RestApis and JWT key, or by what a NodeSet remembers of an external slurmctld."""
        controller, left = self._caches.controllers.get(key), self._orphaned_external(key)
        if controller is None and left is None:
            return None
        gone = "Controller, RestApi or key are gone"
        if left is not None and (why := self._distrust(left.rest_api_url)):
            # Whoever took the place of the Service gets no token, nor do those of before count.
            return SlurmEndpoint(uid=self.uid(key), target=why)
        return SlurmEndpoint(
            uid=self.uid(key),
            target=self._target(controller) if controller is not None else gone,
            outlives=left is not None,
            remembered=self._remembered(key, left) if left is not None else None,
        )

    def external(self, member: NodeSet) -> ExternalSlurm | None:
        """How the slurmctld of a NodeSet is asked if it is outside, to be remembered there."""
        before = member.status.external_slurm
        controller = self._caches.controller_of(member)
        if controller is None:
            return before
        if not controller.spec.external:
            return None
        restapi = oldest_restapi(self._caches.restapis_of.get(controller.metadata.key))
        url = self._url_of(restapi) if restapi is not None else ""
        ref = names.jwt_key_ref(controller)
        return ExternalSlurm(
            url or (before.rest_api_url if before is not None else ""),
            ref.name,
            ref.key,
            before.silent_since if before is not None else "",
        )

    def _orphaned_external(self, key: str) -> ExternalSlurm | None:
        """Return the connection to an external slurmctld whose Controller is gone, if needed."""
        controller = self._caches.controllers.get(key)
        if controller is not None and not controller.metadata.deleting:
            return None
        every = (one.status.external_slurm for one in self._caches.nodesets_of.get(key))
        return next((one for one in every if one is not None), None)

    def _remembered(self, key: str, left: ExternalSlurm) -> Target | None:
        """URL and JWT key by what a NodeSet remembers, as far as they are still there."""
        ref = SecretKeySelector(name=left.jwt_secret, key=left.jwt_secret_key)
        secret = self._secrets.value(key.partition("/")[0], ref)
        if not left.rest_api_url or secret is None:
            return None
        return Target(left.rest_api_url, secret)

    def _target(self, controller: Controller) -> Target | str:
        """URL and JWT key, or why there is no slurmrestd to ask."""
        meta = controller.metadata
        restapi = oldest_restapi(self._caches.restapis_of.get(meta.key))
        if restapi is None:
            return f"no RestApi refers to Controller {meta.name}"
        ref = names.jwt_key_ref(controller)
        secret = self._secrets.value(meta.namespace, ref)
        if secret is None:
            return f"Secret {ref.name} has no usable key {ref.key} to sign tokens with"
        url = self._url_of(restapi)
        return self._distrust(url, restapi.metadata.uid) or Target(url, secret)

    def _distrust(self, url: str, uid: str = "") -> str:
        """Why no token goes to a Service; empty when it may."""
        return self._services.distrust(url, uid) if self._services is not None and url else ""


def service_url(restapi: RestApi) -> str:
    """URL of a RestApi's Service, by its name in the cluster's DNS."""
    port = restapi.spec.service.port or daemons.SLURMRESTD_PORT
    return f"http://{names.restapi_service(restapi)}.{restapi.metadata.namespace}:{port}"


def oldest_restapi(restapis: tuple[RestApi, ...]) -> RestApi | None:
    """Of several RestApis the one that was there first speaks for the cluster."""
    living = [one for one in restapis if not one.metadata.deleting]
    return min(
        living,
        key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name),
        default=None,
    )


def _size(nodeset: NodeSet) -> int:
    """How many Slurm nodes it has, or is to have."""
    return max(nodeset.spec.replicas, nodeset.status.replicas)
