"""The database that a Backup or a Restore logs in to, and whether the Secrets for it exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.accounting import has_slurmdbd
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.penstock.backup_parts import ACCOUNTING, Part
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.nebius_caches import NebiusCaches
from penstock.render.nebius import mariadb
from penstock.render.nebius.config import slurmdbd_conf as conf
from penstock.translate.nebius.database import Database, database


def database_of(
    caches: NebiusCaches, cluster: SlurmCluster, parts: Sequence[Part]
) -> Database | None:
    """The database of a SlurmCluster; None without the part accounting, or without a database."""
    if ACCOUNTING not in parts or not has_slurmdbd(cluster.spec.slurm_nodes.accounting):
        return None
    meta = cluster.metadata
    live = caches.mariadbs.get(f"{meta.namespace}/{names.mariadb(meta.name)}")
    return database(cluster, mariadb.password_ref(live.spec if live is not None else None))


def missing_login(secrets: SecretReader, namespace: str, given: Database | None) -> str:
    """The first Secret or key that is absent, in words; empty if all exist."""
    if given is None:
        return ""
    if given.password is None or not (given.password.name and given.password.key):
        return f"{given.path}.passwordSecretKeyRef names no Secret and key"
    for ref in (given.password, *_certificates(given)):
        if secrets.value(namespace, ref) is None:
            return f"{given.path}: Secret {ref.name} does not exist, or lacks the key {ref.key}"
    return ""


def _certificates(given: Database) -> Iterator[SecretKeySelector]:
    if given.tls is None:
        return
    if given.tls.server_ca_secret_ref:
        yield SecretKeySelector(name=given.tls.server_ca_secret_ref, key=conf.CA_FILE)
    if given.tls.client_cert_secret_ref:
        for key in (conf.CERT_FILE, conf.KEY_FILE):
            yield SecretKeySelector(name=given.tls.client_cert_secret_ref, key=key)
