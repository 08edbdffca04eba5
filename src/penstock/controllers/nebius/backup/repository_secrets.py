"""Whether the Secrets of a repository exist: a pod that mounts an absent one waits without end."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.penstock.backup_parts import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Repository
from penstock.controllers.caches.secrets import SecretReader


def missing_key(secrets: SecretReader, namespace: str, repository: Repository) -> str:
    """The first Secret or key that is absent, in words; empty if all exist."""
    for ref in _references(repository):
        if secrets.value(namespace, ref) is None:
            return f"Secret {ref.name} does not exist, or lacks the key {ref.key}"
    return ""


def _references(repository: Repository) -> Iterator[SecretKeySelector]:
    yield repository.password_secret_ref
    if repository.s3 is not None:
        for key in (ACCESS_KEY_ID, SECRET_ACCESS_KEY):
            yield SecretKeySelector(name=repository.s3.credentials_secret_name, key=key)
