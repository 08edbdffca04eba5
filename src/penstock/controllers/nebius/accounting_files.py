"""slurmdbd.conf of a SlurmCluster, of its spec and the Secrets that it names."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.catalog.reasons.accounting import AccountingReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.nebius.context import NebiusContext
from penstock.render.nebius import accounting as render
from penstock.render.nebius.config import slurmdbd_conf
from penstock.render.parts.digest import digest
from penstock.slurm.conf.document import ConfError
from penstock.slurm.conf.storage_password import password_problem
from penstock.translate.nebius.database import Database


@dataclass(frozen=True, slots=True)
class SlurmdbdFile:
    """The text of slurmdbd.conf, and the hash that slurmdbd's container reports for it."""

    conf: str
    conf_hash: str


class AccountingFiles:
    """Those of all SlurmClusters."""

    def __init__(self, context: NebiusContext) -> None:
        self._secrets = context.secrets

    def read(self, obj: SlurmCluster, database: Database) -> SlurmdbdFile | Finding:
        """The file, or why there is none: slurmdbd keeps the one it has meanwhile."""
        declared, space = obj.spec.slurm_nodes.accounting, obj.metadata.namespace
        path = database.path
        password = self._password(space, database)
        if isinstance(password, Finding):
            return password
        if not database.user:
            return Finding(
                False,
                AccountingReason.USER_MISSING,
                f"{path}.user is empty: write the database user",
            )
        key = SecretKeySelector(name=names.jwt_secret(obj.metadata.name), key=names.JWT_KEY)
        jwt = self._secrets.value(space, key)
        if jwt is None:
            message = f"Secret {key.name} has no usable key {key.key}"
            return Finding(False, ObjectReason.SECRET_NOT_FOUND, message)
        certificates = self._certificates(space, database, jwt)
        if isinstance(certificates, Finding):
            return certificates
        try:
            text = slurmdbd_conf.slurmdbd_conf(
                declared, database, password, certificates, obj.spec.auth_type
            )
        except ConfError as error:
            message = f"{path} has a value that slurmdbd.conf cannot have: {error}"
            return Finding(False, ObjectReason.INVALID, message)
        return SlurmdbdFile(text, render.conf_hash(text, jwt))

    def _password(self, space: str, database: Database) -> str | Finding:
        """The password; a line break at its end is not part of it."""
        path, ref = f"{database.path}.passwordSecretKeyRef", database.password
        if ref is None or not (ref.name and ref.key):
            message = f"{path} is empty: name the Secret and the key with the database password"
            return Finding(False, ObjectReason.SECRET_NOT_FOUND, message)
        value = self._secrets.value(space, ref)
        if value is None:
            return _absent(path, ref.name, ref.key)
        password = value.decode(errors="replace").rstrip("\r\n")
        if wrong := password_problem(password):
            message = f"{path}: the password cannot be used: {wrong}"
            return Finding(False, AccountingReason.PASSWORD_UNUSABLE, message)
        return password

    def _certificates(self, space: str, database: Database, jwt: bytes) -> str | Finding:
        """A digest of the certificates for the database; empty without any."""
        tls = database.tls
        if tls is None:
            return ""
        wanted = (
            ("serverCASecretRef", tls.server_ca_secret_ref, slurmdbd_conf.CA_FILE),
            ("clientCertSecretRef", tls.client_cert_secret_ref, slurmdbd_conf.CERT_FILE),
            ("clientCertSecretRef", tls.client_cert_secret_ref, slurmdbd_conf.KEY_FILE),
        )
        every = b""
        for field, name, key in wanted:
            if not name:
                continue
            value = self._secrets.value(space, SecretKeySelector(name=name, key=key))
            if value is None:
                return _absent(f"{database.path}.tls.{field}", name, key)
            every += digest(jwt + value).encode()
        return digest(every) if every else ""


def _absent(path: str, name: str, key: str) -> Finding:
    message = f"{path}: Secret {name} with a key {key} does not exist. Create it"
    return Finding(False, ObjectReason.SECRET_NOT_FOUND, message)
