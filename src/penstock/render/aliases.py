"""Second names under which older documentation finds a cluster's Service and ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.meta import Json
from penstock.api.slinky import names, wellknown
from penstock.render.config import config_map
from penstock.render.context import Cluster, owner
from penstock.render.service import Port, service


def objects(
    cluster: Cluster, ports: tuple[Port, ...], files: Mapping[str, str] | None
) -> list[Json]:
    """A Service `slurm-controller-<name>` and a ConfigMap `slurm-config-<name>` with these files.

    The Service carries no labels: monitoring that selects Services by label must find each
    slurmctld once.
    """
    controller = cluster.controller
    found = [
        service(
            names.controller_service_alias(controller),
            cluster.namespace,
            {
                **wellknown.selector_labels("slurmctld", controller.metadata.name),
                wellknown.CONTROLLER_ACTIVE: wellknown.TRUE,
            },
            tuple(Port(port.name, port.number, port.target) for port in ports),
            owner(controller),
            unready=True,
        ),
    ]
    if files is not None:
        found.append(config_map(cluster, names.config_map_alias(controller), files))
    return found
