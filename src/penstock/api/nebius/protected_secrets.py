"""Secrets that the operator made for a SlurmCluster and that nobody else may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.api.admission import Problem
from penstock.api.cluster.labels import TRUE
from penstock.api.kubernetes.kinds import Secret
from penstock.api.nebius.labels import PROTECTED, PROTECTED_FOR


def is_protected(secret: Secret) -> bool:
    """Whether a Secret has the label of protected ones."""
    return secret.metadata.labels.get(PROTECTED) == TRUE


def cluster_of_secret(secret: Secret) -> str:
    """The SlurmCluster that a protected Secret belongs to; empty when it names none."""
    return secret.metadata.annotations.get(PROTECTED_FOR, "")


def create_problems(secret: Secret) -> Iterator[Problem]:
    """A protected Secret without its cluster."""
    if is_protected(secret) and not cluster_of_secret(secret):
        yield Problem(
            f"metadata.annotations[{PROTECTED_FOR}]",
            f"name the SlurmCluster: the Secret has the label {PROTECTED}=true",
        )


def change_problems(new: Secret, old: Secret) -> Iterator[Problem]:
    """A change of a protected Secret. One that is being deleted may lose its finalizers."""
    if not is_protected(old) or new.metadata.deleting:
        return
    if _content(new) != _content(old):
        yield Problem(
            "data",
            f"Secret {old.metadata.name} has passwords that SlurmCluster "
            f"{cluster_of_secret(old)} works with, and cannot be changed",
        )


def delete_problems(secret: Secret, *, cluster_exists: bool) -> Iterator[Problem]:
    """The deletion of a protected Secret whose cluster exists."""
    if is_protected(secret) and cluster_exists:
        yield Problem(
            "metadata.name",
            f"Secret {secret.metadata.name} has passwords of SlurmCluster "
            f"{cluster_of_secret(secret)}: delete that first",
        )


def _content(secret: Secret) -> tuple[Mapping[str, object], ...]:
    return secret.data or {}, secret.metadata.labels, secret.metadata.annotations
