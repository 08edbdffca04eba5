"""Reads values, hashes and key rings of Secrets, and computes each once for each version."""

from __future__ import annotations

import base64
import binascii

from penstock.api.kubernetes.kinds import Secret
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.kube import Cache
from penstock.kube.runtime.state import gone
from penstock.render.parts.digest import digest, secret_digest
from penstock.slurm.auth import key_rotation as keyring
from penstock.slurm.auth.key_rotation import Ring


class SecretReader:
    """Each reconcile of a cluster reads the same few Secrets, which change rarely."""

    def __init__(self, secrets: Cache[Secret]) -> None:
        self._secrets = secrets
        self._hashes: dict[str, tuple[str, str]] = {}
        """Version of a Secret and hash of its data, by its key."""
        self._value_hashes: dict[tuple[str, str], tuple[str, str]] = {}
        """Version of a Secret and hash of one value, by its key and that within its data."""
        self._rings: dict[str, tuple[str, Ring | None]] = {}
        secrets.subscribe(self._changed)

    def hash(self, namespace: str, ref: SecretKeySelector) -> str:
        """Hash of a Secret's data; empty while the Secret or its key is absent."""
        key = f"{namespace}/{ref.name}"
        secret = self._secrets.get(key)
        if secret is None or ref.key not in (secret.data or {}):
            self._hashes.pop(key, None)
            return ""
        version = _version(secret)
        seen, found = self._hashes.get(key, ("", ""))
        if seen != version:
            found = secret_digest(secret.data)
            self._hashes[key] = version, found
        return found

    def value(self, namespace: str, ref: SecretKeySelector) -> bytes | None:
        """One value of a Secret; None while it is absent or is not base64."""
        secret = self._secrets.get(f"{namespace}/{ref.name}")
        text = (secret.data or {}).get(ref.key) if secret is not None else None
        if text is None:
            return None
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            return None

    def value_hash(self, namespace: str, ref: SecretKeySelector) -> str:
        """Hash of one value, whatever else is in the Secret; empty while it is absent."""
        place = (f"{namespace}/{ref.name}", ref.key)
        secret = self._secrets.get(place[0])
        if secret is None or ref.key not in (secret.data or {}):
            self._value_hashes.pop(place, None)
            return ""
        version = _version(secret)
        seen, found = self._value_hashes.get(place, ("", ""))
        if seen != version:
            found = digest(self.value(namespace, ref) or b"")
            self._value_hashes[place] = version, found
        return found

    def ring(self, key: str) -> Ring | None:
        """The key ring in a Secret, by `namespace/name`; None while there is none."""
        secret = self._secrets.get(key)
        if secret is None:
            self._rings.pop(key, None)
            return None
        version = _version(secret)
        seen, found = self._rings.get(key, ("", None))
        if seen != version:
            found = keyring.read(secret.data)
            self._rings[key] = version, found
        return found

    def _changed(self, old: Secret | None, new: Secret | None) -> None:
        if (one := gone(old, new)) is None:
            return
        key = one.metadata.key
        self._hashes.pop(key, None)
        self._rings.pop(key, None)
        for place in [place for place in self._value_hashes if place[0] == key]:
            del self._value_hashes[place]


def _version(secret: Secret) -> str:
    return f"{secret.metadata.uid} {secret.metadata.resource_version}"
