"""Reads values, hashes and key rings of Secrets, and computes each once for each version."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.kube import Cache
from penstock.kube.runtime.state import gone
from penstock.render.parts.digest import digest, secret_digest
from penstock.slurm.auth import key_rotation as keyring
from penstock.slurm.auth.key_rotation import Ring

T = TypeVar("T")


class _Memo(Generic[T]):
    """One result for each key, computed again for another version of the Secret."""

    def __init__(self, compute: Callable[[Secret, str], T]) -> None:
        self._compute = compute
        self._found: dict[tuple[str, str], tuple[str, T]] = {}

    def of(self, secret: Secret, name: str = "") -> T:
        """The result for a Secret, or for the value `name` of its data."""
        meta = secret.metadata
        version = f"{meta.uid} {meta.resource_version}"
        seen = self._found.get((meta.key, name))
        if seen is None or seen[0] != version:
            seen = self._found[meta.key, name] = version, self._compute(secret, name)
        return seen[1]

    def drop(self, key: str) -> None:
        """Forget a Secret by `namespace/name`."""
        for place in [place for place in self._found if place[0] == key]:
            del self._found[place]


class SecretReader:
    """Each reconcile of a cluster reads the same few Secrets, which change rarely."""

    def __init__(self, secrets: Cache[Secret]) -> None:
        self._secrets = secrets
        self._hashes = _Memo(lambda secret, _: secret_digest(secret.data))
        self._value_hashes = _Memo(lambda secret, name: digest(_value(secret, name) or b""))
        self._rings = _Memo[Ring | None](lambda secret, _: keyring.read(secret.data))
        secrets.subscribe(self._changed)

    def hash(self, namespace: str, ref: SecretKeySelector) -> str:
        """Hash of a Secret's data; empty while the Secret or its key is absent."""
        secret = self._with_key(namespace, ref)
        return self._hashes.of(secret) if secret is not None else ""

    def value(self, namespace: str, ref: SecretKeySelector) -> bytes | None:
        """One value of a Secret; None while it is absent or is not base64."""
        secret = self._secrets.get(f"{namespace}/{ref.name}")
        return _value(secret, ref.key) if secret is not None else None

    def value_hash(self, namespace: str, ref: SecretKeySelector) -> str:
        """Hash of one value, whatever else is in the Secret; empty while it is absent."""
        secret = self._with_key(namespace, ref)
        return self._value_hashes.of(secret, ref.key) if secret is not None else ""

    def ring(self, key: str) -> Ring | None:
        """The key ring in a Secret, by `namespace/name`; None while there is none."""
        secret = self._secrets.get(key)
        return self._rings.of(secret) if secret is not None else None

    def _with_key(self, namespace: str, ref: SecretKeySelector) -> Secret | None:
        secret = self._secrets.get(f"{namespace}/{ref.name}")
        return secret if secret is not None and ref.key in (secret.data or {}) else None

    def _changed(self, old: Secret | None, new: Secret | None) -> None:
        if (one := gone(old, new)) is not None:
            for memo in (self._hashes, self._value_hashes, self._rings):
                memo.drop(one.metadata.key)


def _value(secret: Secret, name: str) -> bytes | None:
    text = (secret.data or {}).get(name)
    try:
        return base64.b64decode(text, validate=True) if text is not None else None
    except binascii.Error:
        return None
