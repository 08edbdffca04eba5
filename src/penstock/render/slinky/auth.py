"""The parts of pods by which daemons and clients sign their messages: auth/slurm, or munge.

With auth/slurm `/etc/slurm` has slurm.key. With munge each pod has a sidecar with munged, and its
containers share the folder of munged's socket. Only that sidecar has the key, and it starts munged
again when the key changes, so no pod has a hash of it. slurmrestd has neither, as its requests have
tokens.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.render.parts.pod_template import memory, projected, secret_source

_KEY: Final = "munge-key"
_COPY: Final = "munge-copy"
_SOCKET: Final = "munge-socket"
_FILE: Final = "munge.key"
_COPY_PATH: Final = "/run/munge-key"
_FOLLOW_S: Final = "2"
"""Seconds between two looks of the sidecar at the key."""
_OWNER_READS: Final = 0o400


def conf_lines(munge_key: SecretKeySelector | None) -> list[str]:
    """The lines of slurm.conf about it; `munge_key` is None with auth/slurm."""
    name = "slurm" if munge_key is None else "munge"
    return [f"AuthType=auth/{name}", f"CredType=cred/{name}", "AuthAltTypes=auth/jwt"]


def auth_info(munge_key: SecretKeySelector | None) -> dict[str, str]:
    """Options of AuthInfo. munge knows no identity but that of the operating system."""
    return {"AuthInfo": "use_client_ids"} if munge_key is None else {}


def sidecars(munge_key: SecretKeySelector | None, image: str) -> list[Json]:
    """munged, which answers before the next container starts, and outlives its end."""
    if munge_key is None:
        return []
    answers: dict[str, Any] = {
        "exec": {"command": ["/bin/sh", "-c", "munge -n | unmunge >/dev/null"]},
        "timeoutSeconds": 5,
    }
    return [
        {
            "name": "munge",
            "image": image,
            "env": [
                # A folder of its own: that of the volume belongs to root.
                {"name": "MUNGE_KEY_FILE", "value": f"{_COPY_PATH}/own/{_FILE}"},
                {"name": "MUNGE_FOLLOW_KEY", "value": _FOLLOW_S},
            ],
            "restartPolicy": "Always",
            "startupProbe": {**answers, "periodSeconds": 1, "failureThreshold": 60},
            "livenessProbe": answers,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": _KEY, "mountPath": "/mnt/munge-key", "readOnly": True},
                {"name": _COPY, "mountPath": _COPY_PATH},
                *mounts(munge_key),
            ],
        }
    ]


def volumes(munge_key: SecretKeySelector | None) -> list[Json]:
    """The key, munged's copy of it, and the folder of its socket."""
    if munge_key is None:
        return []
    source = secret_source(munge_key.name, (munge_key.key, _FILE, None))
    return [projected(_KEY, _OWNER_READS, [source]), memory(_COPY), memory(_SOCKET)]


def mounts(munge_key: SecretKeySelector | None) -> list[Json]:
    """The folder of munged's socket, for a container that is a client of munge."""
    return [] if munge_key is None else [{"name": _SOCKET, "mountPath": "/run/munge"}]
