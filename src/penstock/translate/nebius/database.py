"""The database of a SlurmCluster's slurmdbd, whichever of three fields declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.api.cluster import embedded_database as embedded
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.accounting import DatabaseTls
from penstock.api.nebius.slurmcluster import SlurmCluster

_PATH = "spec.slurmNodes.accounting"


@dataclass(frozen=True, slots=True)
class Database:
    """Address and login of a database. `path` is the field that declares it."""

    path: str
    host: str
    port: int
    user: str
    password: SecretKeySelector | None
    tls: DatabaseTls | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """StorageParameters of slurmdbd.conf."""


def database(cluster: SlurmCluster, password: SecretKeySelector | None = None) -> Database:
    """The database of a SlurmCluster that declares one.

    `password` is that of a MariaDB object which exists already. With replication, its primary
    takes the writes, so slurmdbd uses the Service of the primary.
    """
    accounting, name = cluster.spec.slurm_nodes.accounting, cluster.metadata.name
    if accounting.has_embedded:
        host = names.accounting_database(name)
        key = SecretKeySelector(name=host, key=embedded.KEY)
        return Database(f"{_PATH}.embeddedDB", host, embedded.PORT, embedded.USER, key)
    operated = accounting.mariadb_operator
    if operated is not None and operated.enabled:
        host = names.mariadb(name)
        if operated.replication is not None and operated.replication.enabled:
            host = f"{host}-primary"
        key = password or SecretKeySelector(name=names.mariadb_password(name), key=embedded.KEY)
        port = operated.port or embedded.PORT
        return Database(f"{_PATH}.mariadbOperator", host, port, embedded.USER, key)
    given = accounting.external_db
    ref = given.password_secret_key_ref
    return Database(
        f"{_PATH}.externalDB",
        given.host,
        given.port or embedded.PORT,
        given.user,
        SecretKeySelector(name=ref.name, key=ref.key) if ref is not None else None,
        given.tls,
        given.storage_parameters or {},
    )
