"""slurmdbd.conf of a SlurmCluster.

Source: slurmdbd.conf(5).
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster.embedded_database import DATABASE
from penstock.api.nebius.accounting import AccountingNode
from penstock.api.nebius.slurmcluster import AuthType
from penstock.render.nebius.config.lines import BANNER, given, one_line
from penstock.slurm import daemons
from penstock.slurm.conf.document import quoted
from penstock.slurm.conf.lines import lines_of
from penstock.translate.nebius.database import Database

CONF: Final = "slurmdbd.conf"
FOLDER: Final = "/etc/slurm"
"""Folder of the files that slurmdbd reads, which belong to its user."""
JWT_KEY: Final = "jwt.key"
CA_FILE: Final = "ca.crt"
CERT_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
HOST: Final = "accounting"
"""Hostname of slurmdbd's pod: slurmdbd runs only on its DbdHost."""
SPOOL: Final = "/var/spool/slurmdbd"


def slurmdbd_conf(
    accounting: AccountingNode,
    database: Database,
    password: str,
    tls_digest: str = "",
    auth_type: AuthType = "auth/munge",
) -> str:
    """The file's text. Raises ConfError for a password that cannot stand in it.

    `tls_digest` is that of the certificates for the database: slurmdbd reads them again when its
    file changes.
    """
    lines = [
        *_general(accounting, auth_type),
        *_storage(database, password),
        *_records(accounting),
    ]
    if tls_digest:
        lines.append(f"# Certificates: {tls_digest}")
    return BANNER + lines_of(lines)


def port(accounting: AccountingNode) -> int:
    """Port of slurmdbd and of its Service."""
    declared = accounting.slurmdbd.port if accounting.slurmdbd is not None else None
    return declared or daemons.SLURMDBD_PORT


def _general(accounting: AccountingNode, auth_type: AuthType) -> list[str]:
    return given(
        ("AuthType", auth_type),
        ("AuthAltTypes", "auth/jwt"),
        ("AuthAltParameters", f"jwt_key={FOLDER}/{JWT_KEY}"),
        ("SlurmUser", "slurm"),
        ("LogFile", "/dev/null"),
        ("PidFile", f"{SPOOL}/slurmdbd.pid"),
        ("ArchiveDir", SPOOL),
        ("DbdHost", HOST),
        ("DbdPort", port(accounting)),
    )


def _storage(database: Database, password: str) -> list[str]:
    values = {
        "StorageLoc": DATABASE,
        "StoragePass": password,
        "StorageUser": one_line(database.user),
        "StorageHost": one_line(database.host),
        "StoragePort": str(database.port),
        "StorageParameters": ",".join(f"{key}={one_line(value)}" for key, value in _tls(database)),
    }
    lines = [f"{key}={quoted(value)}" for key, value in values.items() if value]
    return ["StorageType=accounting_storage/mysql", *lines]


def _tls(database: Database) -> list[tuple[str, str]]:
    """StorageParameters by name: those of the user, and the paths of certificates."""
    found = dict(database.parameters)
    tls = database.tls
    if tls is not None and tls.server_ca_secret_ref:
        found["SSL_CA"] = f"{FOLDER}/{CA_FILE}"
    if tls is not None and tls.client_cert_secret_ref:
        found["SSL_CERT"] = f"{FOLDER}/{CERT_FILE}"
        found["SSL_KEY"] = f"{FOLDER}/{KEY_FILE}"
    return sorted(found.items())


def _records(accounting: AccountingNode) -> list[str]:
    spec = accounting.slurmdbd_config
    return given(
        ("ArchiveEvents", spec.archive_events),
        ("ArchiveJobs", spec.archive_jobs),
        ("ArchiveResvs", spec.archive_resvs),
        ("ArchiveSteps", spec.archive_steps),
        ("ArchiveSuspend", spec.archive_suspend),
        ("ArchiveTXN", spec.archive_txn),
        ("ArchiveUsage", spec.archive_usage),
        ("DebugLevel", spec.debug_level),
        ("TCPTimeout", spec.tcp_timeout),
        ("PurgeEventAfter", spec.purge_event_after),
        ("PurgeJobAfter", spec.purge_job_after),
        ("PurgeResvAfter", spec.purge_resv_after),
        ("PurgeStepAfter", spec.purge_step_after),
        ("PurgeSuspendAfter", spec.purge_suspend_after),
        ("PurgeTXNAfter", spec.purge_txn_after),
        ("PurgeUsageAfter", spec.purge_usage_after),
        ("PrivateData", spec.private_data),
        ("DebugFlags", spec.debug_flags),
    )
