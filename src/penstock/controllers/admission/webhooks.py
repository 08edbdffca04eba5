"""The webhooks' certificate, who trusts it, and the server that shows it.

The configurations and the Service are in the manifests, so that they go when the manifests go. Here
is what cannot be in manifests: the certificate, in a Secret, and the `caBundle` of each webhook.
The Secret belongs to a configuration, and goes with it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from penstock.api.kubernetes.kinds import (
    MUTATING,
    SECRETS,
    VALIDATING,
    Secret,
    WebhookConfiguration,
)
from penstock.api.kubernetes.meta import Json, OwnerReference
from penstock.api.kubernetes.resource import Resource
from penstock.catalog.marks import kubernetes
from penstock.controllers.runtime.settings import Settings
from penstock.kube import AlreadyExistsError, Cache, Client, Controller, Manager, Result
from penstock.kube.runtime.leader import Leader
from penstock.kube.webhook.callers import Callers
from penstock.kube.webhook.certificates import (
    AUTHORITY,
    LEAF,
    LEAF_KEY,
    Bundle,
    expiry,
    next_check,
    renewed,
)
from penstock.kube.webhook.review import Handler
from penstock.kube.webhook.server import WebhookServer

KEY = "certificate"
INJECTED = (kubernetes.INJECT_CA.key, kubernetes.INJECT_CA_SECRET.key)
"""Annotations of a configuration whose caBundle cert-manager writes."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Webhooks:
    """Serves webhooks in every process; while leading, keeps the certificate and its trust.

    Any Lease is enough for that, as another operator may have those of other API groups: writes
    exclude each other by the version of the Secret.
    """

    def __init__(
        self,
        manager: Manager,
        settings: Settings,
        handlers: Mapping[str, Handler],
        leaders: Iterable[Leader],
    ) -> None:
        options = settings.webhooks
        self.paths = frozenset(handlers)
        """The paths that are served."""
        self._clock, self._metrics = manager.client.clock, manager.client.metrics
        self._own = options.own
        self._namespace = settings.namespace
        self._secret = options.secret or f"{options.name}-certificates"
        self._name = options.name
        service = f"{options.name}.{settings.namespace}"
        domain = settings.cluster_domain
        self._hosts = frozenset(
            {service, f"{service}.svc", f"{service}.svc.{domain}", *options.hosts}
        )
        self.server = WebhookServer(
            handlers,
            self._metrics,
            port=options.port,
            host=options.host,
            callers=Callers(options.client_ca, options.client_names),
        )
        self._secrets = manager.cache(
            SECRETS,
            namespaces=(self._namespace,),
            fields=f"metadata.name={self._secret}",
            needed=False,
        )
        named = f"metadata.name={options.name}"
        self._configurations: tuple[tuple[Resource[Any], Cache[WebhookConfiguration]], ...] = (
            (VALIDATING, manager.cache(VALIDATING, fields=named, needed=False)),
            (MUTATING, manager.cache(MUTATING, fields=named, needed=False)),
        )
        self._changed = asyncio.Event()
        self._secrets.subscribe(lambda _, __: self._changed.set())
        for number, leader in enumerate(leaders):
            self._lead(leader, f"webhook-{number}" if number else "webhook")
        manager.run_always(self.serve)

    def _lead(self, leader: Leader, name: str) -> None:
        loop = Controller(
            name,
            lambda _: self.reconcile(leader.client),
            clock=self._clock,
            metrics=self._metrics,
        )
        loop.watches(self._secrets, lambda _: [KEY])
        for _, cache in self._configurations:
            loop.watches(cache, lambda _: [KEY])
        # No object may exist yet whose watch event would start the first reconcile.
        loop.queue.add(KEY)
        leader.add(loop)

    async def reconcile(self, client: Client) -> Result:
        """Make or renew the certificate when it is time, and have it trusted. Raises KubeError."""
        now = datetime.fromtimestamp(self._clock.time(), UTC)
        secret = self._secrets.get(f"{self._namespace}/{self._secret}")
        found = values(secret)
        if not self._own:
            if AUTHORITY in found:
                await self._trust(client, found[AUTHORITY])
            return Result()
        owner = self._owner()
        if owner is None:
            # Nobody asks. The Secret went with what owned it, and is not to come back.
            return Result()
        before = Bundle.read(found)
        bundle = renewed(before, self._hosts, now)
        if bundle != before or not _owned(secret, owner):
            try:
                await self._write(client, secret, bundle, owner)
            except AlreadyExistsError:
                # The cache does not show it yet; when it does, it is looked at.
                return Result(requeue_after=1.0)
            if bundle != before:
                log.info("webhook certificate made", until=expiry(bundle.leaf).isoformat())
        await self._trust(client, bundle.authority)
        return Result(requeue_after=next_check(bundle, now).total_seconds())

    async def serve(self) -> None:
        """Show the certificate of the Secret, and each that follows it.

        Raises OSError when the port is taken.
        """
        try:
            while True:
                self._changed.clear()
                await self._show()
                await self._changed.wait()
        finally:
            await self.server.close()

    async def _show(self) -> None:
        found = values(self._secrets.get(f"{self._namespace}/{self._secret}"))
        if LEAF not in found or LEAF_KEY not in found:
            return
        try:
            await self.server.show(found[LEAF], found[LEAF_KEY])
            until = expiry(found[LEAF])
        except (ssl.SSLError, ValueError) as error:
            # What was shown before is shown on.
            log.warning("webhook certificate unusable", secret=self._secret, error=str(error))
            return
        self._metrics.certificate_expiry.set(until.timestamp())

    def _owner(self) -> OwnerReference | None:
        """The configuration that the Secret belongs to; None while there is none."""
        for resource, cache in self._configurations:
            live = cache.get(self._name)
            if live is not None:
                return OwnerReference(
                    resource.api_version, resource.kind, self._name, live.metadata.uid
                )
        return None

    async def _write(
        self, client: Client, old: Secret | None, bundle: Bundle, owner: OwnerReference
    ) -> None:
        meta: Json = {
            "namespace": self._namespace,
            "name": self._secret,
            "labels": {kubernetes.PART_OF.key: "penstock"},
            "ownerReferences": [msgspec.to_builtins(owner)],
        }
        data = {name: base64.b64encode(value).decode() for name, value in bundle.data().items()}
        manifest: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": meta,
            "data": data,
        }
        if old is None:
            await client.create(SECRETS, manifest)
            return
        # Whoever was faster has made one as good; and the type of a Secret cannot change.
        meta["resourceVersion"] = old.metadata.resource_version
        del manifest["type"]
        await client.apply(SECRETS, manifest)

    async def _trust(self, client: Client, authority: bytes) -> None:
        """Write the caBundle of each webhook that does not have it."""
        wanted = base64.b64encode(authority).decode()
        for resource, cache in self._configurations:
            live = cache.get(self._name)
            if live is None or any(one in live.metadata.annotations for one in INJECTED):
                continue
            if all(one.client_config.ca_bundle == wanted for one in live.webhooks):
                continue
            hooks = [
                {"name": one.name, "clientConfig": {"caBundle": wanted}} for one in live.webhooks
            ]
            # The uid keeps one that was deleted meanwhile from being made of these fields only.
            manifest: Json = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": self._name, "uid": live.metadata.uid},
                "webhooks": hooks,
            }
            await client.apply(resource, manifest)


def _owned(secret: Secret | None, owner: OwnerReference) -> bool:
    return secret is not None and any(
        one.uid == owner.uid for one in secret.metadata.owner_references
    )


def values(secret: Secret | None) -> Mapping[str, bytes]:
    """A Secret's values; those that are not base64 are left out."""
    found: dict[str, bytes] = {}
    for name, text in ((secret.data or {}) if secret is not None else {}).items():
        try:
            found[name] = base64.b64decode(text, validate=True)
        except binascii.Error:
            continue
    return found
