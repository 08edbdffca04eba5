"""Token: the Secret with a JWT."""

from __future__ import annotations

import base64

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.token import Token
from penstock.catalog.marks import kubernetes
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

_LAST_APPLIED = kubernetes.LAST_APPLIED.key


def secret(token: Token, value: str) -> Json:
    """The Secret in which `value` is put, with labels and annotations of the Token.

    It is the Token's own, and goes with it. One that is not to be refreshed is immutable.
    """
    meta, ref = token.metadata, names.token_secret(token)
    metadata = object_metadata(ref.name, meta.namespace, meta.labels, owner(token))
    annotations = {k: v for k, v in meta.annotations.items() if k != _LAST_APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    out: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": {ref.key: base64.b64encode(value.encode()).decode()},
    }
    if not token.spec.refresh:
        out["immutable"] = True
    return out
