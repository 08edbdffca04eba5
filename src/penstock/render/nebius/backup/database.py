"""The database of slurmdbd, as variables, volumes and mounts of a container.

images/entrypoints/accounting_dump.py reads them.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.api.cluster.embedded_database import DATABASE
from penstock.api.kubernetes.meta import Json
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.config import slurmdbd_conf as conf
from penstock.render.nebius.config.lines import one_line
from penstock.render.nebius.container import variable
from penstock.render.parts.pod_template import projected, secret_source
from penstock.translate.nebius.database import Database

_NAME: Final = "database"
_PATH: Final = "/etc/penstock/database"
_PASSWORD: Final = "password"  # noqa: S105 (the name of a file)
_OWNER_READS: Final = 0o400


def variables(given: Database) -> list[Json]:
    """Where the database is, and who logs in."""
    values = {
        "DATABASE_HOST": one_line(given.host),
        "DATABASE_PORT": str(given.port),
        "DATABASE_USER": one_line(given.user),
        "DATABASE_NAME": DATABASE,
    }
    return [variable(name, value) for name, value in values.items()]


def volumes(given: Database) -> list[Json]:
    """The password, and the certificates of TLS."""
    files: list[tuple[str, str, str]] = []
    if given.password is not None:
        files.append((given.password.name, given.password.key, _PASSWORD))
    if given.tls is not None and given.tls.server_ca_secret_ref:
        files.append((given.tls.server_ca_secret_ref, conf.CA_FILE, conf.CA_FILE))
    if given.tls is not None and given.tls.client_cert_secret_ref:
        name = given.tls.client_cert_secret_ref
        files += [(name, file, file) for file in (conf.CERT_FILE, conf.KEY_FILE)]
    sources: list[Any] = [
        secret_source(name, (key, file, _OWNER_READS)) for name, key, file in files
    ]
    return [projected(_NAME, _OWNER_READS, sources)]


def mounts() -> list[Json]:
    """Where the container has them."""
    return [vol.mount(_NAME, _PATH, read_only=True)]
