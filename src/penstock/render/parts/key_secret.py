"""Secrets that the operator makes once when nobody else has, and never changes afterwards."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.slurm.auth.key_rotation import Ring


def generate() -> bytes:
    """A fresh key for auth/slurm or auth/jwt: 1024 printable characters, hard to guess."""
    return base64.b64encode(secrets.token_bytes(768))


def ring_secret(of: KubeObject, name: str, ring: Ring, labels: Mapping[str, str]) -> Json:
    """The Secret with a cluster's key ring, which changes while slurm.key does."""
    made = key_secret(of, name, {}, labels)
    return {**made, "data": ring.data}


def key_secret(
    of: KubeObject,
    name: str,
    data: Mapping[str, str | bytes],
    labels: Mapping[str, str],
    *,
    immutable: bool = False,
    stays: bool = False,
) -> Json:
    """A Secret of `of`'s namespace that `of` owns; one that `stays` when it goes is nobody's.

    Not an immutable one for what may be made anew with another content: kubelets would go on to
    show the former one as long as any pod of their machine mounts it.
    """
    made: Json = {"immutable": True} if immutable else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": object_metadata(
            name, of.metadata.namespace, labels, *([] if stays else [owner(of)])
        ),
        "type": "Opaque",
        **made,
        "data": {
            key: base64.b64encode(v.encode() if isinstance(v, str) else v).decode()
            for key, v in sorted(data.items())
        },
    }
