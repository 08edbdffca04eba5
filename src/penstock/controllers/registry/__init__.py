"""The API groups that the operator can lead.

A process imports the reconcilers of a group when it builds them: it starts without those of the
groups that it does not serve.
"""

from __future__ import annotations

from penstock.api.nebius.labels import NAME as NEBIUS_NAME
from penstock.controllers.caches.store import DAEMONS, WORKERS
from penstock.controllers.runtime.apis import NEBIUS, SLINKY
from penstock.controllers.runtime.served_api import ApiControllers, ApiParts, ServedApi


def _slinky(parts: ApiParts) -> ApiControllers:
    from penstock.controllers.registry import slinky

    return slinky.build(parts)


def _nebius(parts: ApiParts) -> ApiControllers:
    from penstock.controllers.registry import nebius

    return nebius.build(parts)


SERVED_APIS = (
    ServedApi(
        group=SLINKY,
        # The name that slurm-operator uses: in one namespace the two never act at the same time.
        lease="slurm-operator",
        pods=DAEMONS,
        pvcs=WORKERS,
        build=_slinky,
    ),
    ServedApi(
        group=NEBIUS,
        # The name that soperator uses, for the same reason.
        lease="e21479ae.nebius.ai",
        pods=(NEBIUS_NAME,),
        pvcs=(NEBIUS_NAME,),
        build=_nebius,
    ),
)
