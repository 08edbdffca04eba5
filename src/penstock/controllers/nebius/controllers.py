"""Builds what a process runs for `slurm.nebius.ai`, with the state that reconcilers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from penstock.controllers.admission.protected_secrets import WRITE_PATH, ProtectedSecrets
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts
from penstock.kube.runtime.declaration import Declaration

New: TypeAlias = Callable[[ApiParts], Declaration]


def build(parts: ApiParts, reconcilers: Iterable[New]) -> ApiControllers:
    """The reconcilers of SlurmClusters and of the kinds beside them."""
    made = tuple(new(parts) for new in reconcilers)
    if not parts.settings.webhooks.port:
        return ApiControllers(made)
    secrets = ProtectedSecrets(parts.store.of, parts.settings.namespaces)
    return ApiControllers(made, handlers={WRITE_PATH: secrets.validate})
