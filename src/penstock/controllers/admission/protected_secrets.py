"""Answers to writes of Secrets that belong to a SlurmCluster and have to stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from penstock.api.admission import Problem
from penstock.api.kubernetes.kinds import SECRETS, Secret
from penstock.api.kubernetes.resource import Resource
from penstock.api.nebius import protected_secrets
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS
from penstock.kube import Cache
from penstock.kube.webhook.review import AdmissionRequest, Answer, Cause

WRITE_PATH = "/validate--v1-secret"
"""The path of soperator."""


class ProtectedSecrets:
    """Answers about Secrets with the label of protected ones."""

    def __init__(
        self, cache_of: Callable[[Resource[Any]], Cache[Any]], namespaces: Collection[str] = ()
    ) -> None:
        self._clusters = cache_of(SLURM_CLUSTERS)
        self._namespaces = namespaces

    def validate(self, request: AdmissionRequest) -> Answer:
        """Whether this Secret may be created, changed or deleted."""
        watched = not self._namespaces or request.namespace in self._namespaces
        if request.kind.kind != SECRETS.kind or request.sub_resource or not watched:
            return Answer()
        causes = tuple(Cause(one.path, one.message) for one in self._problems(request))
        return Answer(causes)

    def _problems(self, request: AdmissionRequest) -> Iterable[Problem]:
        match request.operation:
            case "CREATE":
                return protected_secrets.create_problems(_secret(request.object))
            case "UPDATE":
                new, old = _secret(request.object), _secret(request.old_object)
                return protected_secrets.change_problems(new, old)
            case "DELETE":
                secret = _secret(request.old_object)
                return protected_secrets.delete_problems(
                    secret, cluster_exists=self._stays(request.namespace, secret)
                )
            case _:
                return ()

    def _stays(self, namespace: str, secret: Secret) -> bool:
        """Whether the cluster exists and is not being deleted: then its Secrets go with it."""
        name = protected_secrets.cluster_of_secret(secret)
        cluster = self._clusters.get(f"{namespace}/{name}")
        return cluster is not None and not cluster.metadata.deleting


def _secret(raw: msgspec.Raw) -> Secret:
    return msgspec.json.decode(raw, type=Secret)
