"""Secrets with the keys of a SlurmCluster: each is created once, and never changed afterwards.

A Secret that exists is used as it is, whoever made it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.parts.key_secret import key_secret
from penstock.slurm.auth.key_files import SLURM_KEY

MUNGE_KEY_BYTES: Final = 1024
"""Longest key that munged reads. Source: munged(8)."""
_JWT_KEY_BYTES: Final = 32


def munge_key() -> bytes:
    """A fresh key of munge."""
    return secrets.token_bytes(MUNGE_KEY_BYTES)


def jwt_key() -> bytes:
    """A fresh HS256 key of auth/jwt, in printable characters."""
    return secrets.token_hex(_JWT_KEY_BYTES).encode()


def munge_secret(cluster: SlurmCluster, key: bytes) -> Json:
    """The Secret with the key of munge."""
    name = names.munge_secret(cluster.metadata.name)
    return _secret(cluster, name, {names.MUNGE_KEY: key}, "common")


def slurm_key_secret(cluster: SlurmCluster, key: bytes) -> Json:
    """The Secret with the key of auth/slurm."""
    name = names.slurm_key_secret(cluster.metadata.name)
    return _secret(cluster, name, {SLURM_KEY: key}, "common")


def jwt_secret(cluster: SlurmCluster, key: bytes) -> Json:
    """The Secret with the key of auth/jwt, by which the operator and sconfigcontroller query."""
    name = names.jwt_secret(cluster.metadata.name)
    return _secret(cluster, name, {names.JWT_KEY: key}, "rest")


def ssh_host_keys(cluster: SlurmCluster, keys: Mapping[str, str]) -> Json:
    """The Secret with ssh host keys of logins and workers: `render.parts.ssh_host_keys.generate`.

    One that the user names is the user's: it is not created.
    """
    return _secret(cluster, names.sshd_keys_secret(cluster), keys, "worker")


def _secret(
    cluster: SlurmCluster, name: str, data: Mapping[str, str | bytes], component: str
) -> Json:
    return key_secret(cluster, name, data, labels.object_labels(component, cluster.metadata.name))
