"""The MariaDB that the operator runs for slurmdbd, for the objects of any API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.api.cluster.embedded_database import CONTAINER, KEY
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.cluster import claim_templates
from penstock.controllers.runtime.reconciler import Context
from penstock.controllers.runtime.report import Events
from penstock.decide.pod.workload import workload
from penstock.render.parts import embedded_database as render
from penstock.render.parts.digest import digest
from penstock.render.parts.embedded_database import DatabaseInputs

_KINDS = ("StatefulSet", "Service")


class EmbeddedDatabases:
    """Those of all objects of one API."""

    def __init__(self, context: Context, events: Events) -> None:
        self._caches = context.caches
        self._secrets = context.secrets
        self._objects = context.objects
        self._events = events

    async def reconcile(
        self, obj: KubeObject, given: DatabaseInputs, field: str, salt: bytes, pods: Sequence[Pod]
    ) -> list[Finding]:
        """Make password, Service and StatefulSet; findings about what is not as it should be.

        `field` declares the database. The hash of the password that its pod shows includes `salt`,
        so it cannot be guessed from the hash. Raises KubeError.
        """
        space, name = given.namespace, given.name
        if self._caches.secrets.get(f"{space}/{name}") is None:
            secret = render.password_secret(obj, name, given.labels)
            await self._objects.create_secret(obj, self._events, secret)
            return [
                Finding(None, AccountingReason.CREATING_DATABASE, f"Secret {name} is being created")
            ]
        password = self._secrets.value(space, SecretKeySelector(name=name, key=KEY))
        if password is None:
            message = (
                f"{field}: Secret {name} has no key {KEY}. Delete the Secret: the operator "
                "creates another one, and its database takes the new password over"
            )
            return [Finding(False, ObjectReason.SECRET_NOT_FOUND, message)]
        made = replace(given, password_hash=digest(salt + password))
        findings: list[Finding] = []
        for manifest in render.objects(made):
            if manifest["kind"] == "StatefulSet":
                live = self._objects.live(manifest)
                kept, findings = claim_templates.keep(manifest, live, f"{field}.storage")
                manifest = kept
            await self._objects.apply(obj, self._events, [manifest])
        runs = workload(CONTAINER, given.replicas, pods)
        if not runs.ok:
            findings.append(Finding(runs.ok, runs.reason, f"Database {name}: {runs.message}"))
        return findings

    async def remove(self, obj: KubeObject, name: str) -> None:
        """Remove the pod of a database that is not declared any more; PVC and Secret stay."""
        for kind in _KINDS:
            await self._objects.remove(obj, self._events, kind, name)
