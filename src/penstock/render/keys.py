"""Secrets that the operator makes once when nobody else has, and never changes afterwards."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping

from penstock.api.meta import Json, KubeObject
from penstock.render.context import owner
from penstock.render.pod import object_metadata


def generate() -> bytes:
    """A fresh key for auth/slurm or auth/jwt: 1024 printable characters, hard to guess."""
    return base64.b64encode(secrets.token_bytes(768))


def key_secret(
    of: KubeObject, name: str, data: Mapping[str, str | bytes], labels: Mapping[str, str]
) -> Json:
    """An immutable Secret of `of`'s namespace that `of` owns."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": object_metadata(name, of.metadata.namespace, labels, owner(of)),
        "type": "Opaque",
        "immutable": True,
        "data": {
            key: base64.b64encode(v.encode() if isinstance(v, str) else v).decode()
            for key, v in sorted(data.items())
        },
    }
