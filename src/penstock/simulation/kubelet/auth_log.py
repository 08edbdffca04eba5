"""Reports of the keys of auth/slurm that daemons of a SlurmCluster have read."""

from __future__ import annotations

import hashlib
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm.reconfigure import Data, mounted
from penstock.slurm.auth.key_files import SLURM_JWKS

SSHD: Final = "sshd"
_VOLUME: Final = "slurm-auth-key"


def has_keys(pod: Json) -> bool:
    """Whether daemons of a pod read keys beside their configuration."""
    return any(one["name"] == _VOLUME for one in pod["spec"].get("volumes", ()))


def log(pod: Json, container: str, data: Data) -> str:
    """What a login or the sidecar `reconfigure` logs; kubelets refresh a changed Secret at once."""
    text = mounted(pod, _VOLUME, data).get(SLURM_JWKS)
    if not text:
        return ""
    keys = f"keys {hashlib.sha256(text.encode()).hexdigest()}"
    return f"penstock: sackd has the {keys}\n" if container == SSHD else f"penstock: {keys}"
