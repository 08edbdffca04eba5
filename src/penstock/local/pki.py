"""The certificates of one node, made fresh for each `up`: one authority signs them all."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.base.x509 import general_name, key_pem, key_usage
from penstock.local.errors import LocalError

LIFETIME = datetime.timedelta(days=365)


@dataclass(frozen=True)
class Pair:
    """A key and its certificate as PEM."""

    key: bytes
    certificate: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `name`.key (readable by its owner only) and `name`.crt."""
        key = folder / f"{name}.key"
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        (folder / f"{name}.crt").write_bytes(self.certificate)


class Authority:
    """A certificate authority of one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate
        self._name = certificate.subject

    @classmethod
    def new(cls, name: str) -> "Authority":
        """An authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name, ())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _builder(subject, subject, key)
            .add_extension(constraints, critical=True)
            .add_extension(key_usage(sign=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def load(cls, folder: Path, name: str) -> "Authority":
        """The authority that was written to `folder` under `name` (`Pair.write`)."""
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise LocalError(f"{folder / name}.key is not a key of the built-in node.")
        certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
        return cls(key, certificate)

    @property
    def pair(self) -> Pair:
        """The authority's own key and certificate."""
        return Pair(key_pem(self._key), self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """A pair for the user `name` in `groups`, or a server at `hosts` (names, addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_subject(name, groups), self._name, key)
        names = [general_name(host) for host in hosts]
        if names:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = (
            builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(sign=False), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return Pair(key_pem(key), certificate.public_bytes(serialization.Encoding.PEM))


def signing_key() -> tuple[bytes, bytes]:
    """A private key and its public half as PEM, for service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return key_pem(key), public


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A client whose clock differs a little must accept a certificate of this second.
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )


def _subject(name: str, groups: Iterable[str]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
