"""The database of a SlurmCluster that mariadb-operator runs: MariaDB, Grant and their state."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.mariadb_objects import not_ready
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.controllers.nebius.context import NebiusContext
from penstock.controllers.runtime.reconciler import REFUSED
from penstock.controllers.runtime.report import Events
from penstock.kube import KubeError
from penstock.render.nebius import mariadb as render
from penstock.render.nebius.inputs import ClusterInputs

ABSENT_S = 30.0
"""Seconds until the next check whether the kinds are installed."""
_RETRY_S = 5.0


@dataclass(slots=True)
class _State:
    requeue_s: float | None = None


class OperatedDatabases:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext, events: Events) -> None:
        self._caches = context.caches
        self._objects = context.objects
        self._events = events
        self._states = context.states(SLURM_CLUSTERS, _State)

    def begin(self, obj: SlurmCluster) -> None:
        """Forget the wait of the last reconcile."""
        self._states.of(obj).requeue_s = None

    def requeue_after(self, obj: SlurmCluster) -> float | None:
        """Seconds until the kinds are looked for, or a write is repeated; None for neither."""
        return self._states.of(obj).requeue_s

    def password(self, obj: SlurmCluster) -> SecretKeySelector | None:
        """The password that the MariaDB names; None while there is no MariaDB."""
        return render.password_ref(self._live(obj).get("MariaDB"))

    async def reconcile(self, obj: SlurmCluster, cluster: ClusterInputs) -> Finding | None:
        """Make MariaDB and Grant; a finding while one of them is not ready.

        What keeps them from being written is a finding as well: slurmctld does not wait for it.
        """
        if why := self._caches.databases_absent:
            self._states.of(obj).requeue_s = ABSENT_S
            return _not_installed(why)
        accounting = cluster.spec.slurm_nodes.accounting
        live, operated = self._live(obj), accounting.mariadb_operator
        try:
            if operated is not None and operated.protected_secret:
                await self._create_secrets(obj, cluster, live.get("MariaDB"))
            await self._objects.apply(obj, self._events, render.objects(cluster, live))
        except KubeError as error:
            self._states.of(obj).requeue_s = _RETRY_S
            message = f"spec.slurmNodes.accounting.mariadbOperator cannot be created: {error}"
            return Finding(
                False if isinstance(error, REFUSED) else None, AccountingReason.NOT_CREATED, message
            )
        return self._waiting(obj)

    async def _create_secrets(
        self, obj: SlurmCluster, cluster: ClusterInputs, live: Json | None
    ) -> None:
        for secret in render.secrets(cluster, live):
            key = f"{obj.metadata.namespace}/{secret['metadata']['name']}"
            if self._caches.secrets.get(key) is None:
                await self._objects.create_secret(obj, self._events, secret)

    def _waiting(self, obj: SlurmCluster) -> Finding | None:
        """The first of MariaDB and Grant that mariadb-operator reports as not ready."""
        name = names.mariadb(obj.metadata.name)
        for kind, cache in (("MariaDB", self._caches.mariadbs), ("Grant", self._caches.grants)):
            found = cache.get(f"{obj.metadata.namespace}/{name}")
            why = "it is being created" if found is None else not_ready(found)
            if why is not None:
                return Finding(
                    None,
                    AccountingReason.WAITING_FOR_DATABASE,
                    f"{kind} {name} is not ready: {why}",
                )
        return None

    def _live(self, obj: SlurmCluster) -> dict[str, Json]:
        """Specs of both objects, by kind."""
        key = f"{obj.metadata.namespace}/{names.mariadb(obj.metadata.name)}"
        every = (("MariaDB", self._caches.mariadbs), ("Grant", self._caches.grants))
        return {kind: found.spec for kind, cache in every if (found := cache.get(key)) is not None}


def _not_installed(why: str) -> Finding:
    return Finding(
        False,
        AccountingReason.DATABASE_NOT_SERVED,
        "spec.slurmNodes.accounting.mariadbOperator: there are no kinds of mariadb-operator "
        f"({why}), so jobs run without records. Install mariadb-operator, or enable embeddedDB, or "
        "externalDB with the address of a MariaDB or MySQL",
    )
