"""The sidecar with munged, which starts munged again with each key that its kubelet gives it."""

from __future__ import annotations

import base64
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.names import MUNGE_KEY
from penstock.simulation.apiserver import ApiServer
from penstock.slurm.auth.key_rotation import named

CONTAINER: Final = "munge"


def log(server: ApiServer, pod: Json) -> str:
    """What it logs: kubelets of these worlds refresh a changed Secret at once."""
    space: str = pod["metadata"]["namespace"]
    volumes: list[Json] = pod["spec"].get("volumes", [])
    for given in (one["secret"] for one in volumes if "secret" in one):
        if all(one["key"] != MUNGE_KEY for one in given.get("items", ())):
            continue
        secret = server.find("/secrets", space, given["secretName"])
        data: dict[str, str] = (secret or {}).get("data") or {}
        if MUNGE_KEY in data:
            return f"munge: munged has the key {named(base64.b64decode(data[MUNGE_KEY]))}\n"
    return ""
