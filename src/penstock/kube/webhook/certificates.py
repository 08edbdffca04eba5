"""Certificates of a server that only the API server calls: an authority of its own, and one leaf.

The authority's key is kept beside what it signed, so that a leaf can be renewed without anybody
else's doing. A new authority is trusted for a while before it signs anything, and the old one
until it expires: at no moment does a server show a certificate that its clients do not trust.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.base.x509 import general_name, key_pem, key_usage

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=90)
KNOWN_AFTER = timedelta(hours=1)
"""A new authority signs nothing before its certificate has had this time to reach API servers."""
SKEW = timedelta(minutes=5)
"""Clocks that differ by this must accept a certificate issued in this second."""

AUTHORITY, AUTHORITY_KEY, LEAF, LEAF_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""Keys in a Secret; all but `ca.key` are those of kubernetes.io/tls and of cert-manager."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """PEM text of all four parts. `authority` has the newest one first, and those before it."""

    authority: bytes
    authority_key: bytes
    leaf: bytes
    leaf_key: bytes

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> Bundle | None:
        """A bundle out of a Secret's values; None when it is not one, or its parts do not fit."""
        try:
            found = cls(data[AUTHORITY], data[AUTHORITY_KEY], data[LEAF], data[LEAF_KEY])
            fits = _fits(found)
        except (KeyError, ValueError, TypeError):
            return None
        return found if fits else None

    def data(self) -> dict[str, bytes]:
        """The values of a Secret."""
        return {
            AUTHORITY: self.authority,
            AUTHORITY_KEY: self.authority_key,
            LEAF: self.leaf,
            LEAF_KEY: self.leaf_key,
        }


def renewed(bundle: Bundle | None, hosts: Collection[str], now: datetime) -> Bundle:
    """What a server at `hosts` (names, addresses) should have now; the same while nothing is due.

    Each part is renewed when a third of its time is left.
    """
    if bundle is None:
        key, certificate = _authority(now)
        return _with_leaf(Bundle(_pem(certificate), key_pem(key), b"", b""), hosts, now)
    found = bundle
    newest, *older = x509.load_pem_x509_certificates(found.authority)
    if _due(newest, now):
        key, made = _authority(now)
        trusted = [one for one in (newest, *older) if one.not_valid_after_utc > now]
        found = replace(
            found,
            authority=b"".join(map(_pem, (made, *trusted))),
            authority_key=key_pem(key),
        )
        newest = made
    if _leaf_due(found.leaf, newest, hosts, now):
        found = _with_leaf(found, hosts, now)
    return found


def next_check(bundle: Bundle, now: datetime) -> timedelta:
    """When `renewed` is worth asking again: at least a minute, at most a day."""
    newest = x509.load_pem_x509_certificates(bundle.authority)[0]
    leaf = x509.load_pem_x509_certificate(bundle.leaf)
    times = [_renewal(newest), _renewal(leaf)]
    if not _signed_by(leaf, newest):
        times.append(newest.not_valid_before_utc + SKEW + KNOWN_AFTER)
    return min(max(min(times) - now, timedelta(minutes=1)), timedelta(days=1))


def expiry(leaf: bytes) -> datetime:
    """When a PEM certificate ends. Raises ValueError when it is none."""
    return x509.load_pem_x509_certificate(leaf).not_valid_after_utc


def _leaf_due(pem: bytes, newest: x509.Certificate, hosts: Collection[str], now: datetime) -> bool:
    leaf = x509.load_pem_x509_certificate(pem)
    if now >= leaf.not_valid_after_utc or _hosts(leaf) != set(hosts):
        return True
    known = now >= newest.not_valid_before_utc + SKEW + KNOWN_AFTER
    return known and (_due(leaf, now) or not _signed_by(leaf, newest))


def _with_leaf(bundle: Bundle, hosts: Collection[str], now: datetime) -> Bundle:
    signer = _key(bundle.authority_key)
    newest = x509.load_pem_x509_certificates(bundle.authority)[0]
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([general_name(one) for one in sorted(hosts)])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    certificate = (
        _builder("penstock-webhook", newest.subject, key, now, LEAF_LIFETIME)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(sign=False), critical=True)
        .add_extension(issuer, critical=False)
        .sign(signer, hashes.SHA256())
    )
    return replace(bundle, leaf=_pem(certificate), leaf_key=key_pem(key))


def _authority(now: datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities of one name would differ in their key identifiers only.
    name = f"penstock-webhook-ca-{now:%Y%m%d%H%M%S}"
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(name, _subject(name), key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(sign=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


def _builder(
    name: str,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - SKEW)
        .not_valid_after(now.astimezone(UTC) + lifetime)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _renewal(one: x509.Certificate) -> datetime:
    lifetime = one.not_valid_after_utc - one.not_valid_before_utc
    return one.not_valid_after_utc - lifetime / 3


def _due(one: x509.Certificate, now: datetime) -> bool:
    return now >= _renewal(one)


def _signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    return leaf.issuer == authority.subject


def _hosts(leaf: x509.Certificate) -> set[str]:
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses: Iterable[object] = names.get_values_for_type(x509.IPAddress)
    return {*names.get_values_for_type(x509.DNSName), *map(str, addresses)}


def _fits(bundle: Bundle) -> bool:
    """Whether keys belong to their certificates, and the leaf to an authority that is trusted."""
    authorities = x509.load_pem_x509_certificates(bundle.authority)
    leaf = x509.load_pem_x509_certificate(bundle.leaf)
    _hosts(leaf)
    pairs = ((authorities[0], bundle.authority_key), (leaf, bundle.leaf_key))
    owned = all(_key(key).public_key() == one.public_key() for one, key in pairs)
    return owned and any(_signed_by(leaf, one) for one in authorities)


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of ours")
    return found


def _pem(one: x509.Certificate) -> bytes:
    return one.public_bytes(serialization.Encoding.PEM)
