"""Second names under which older documentation finds a cluster's Service and ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.render.parts.owner import owner
from penstock.render.parts.service import Port, service
from penstock.render.slinky.config.config_maps import config_map
from penstock.render.slinky.inputs import ClusterInputs


def objects(
    cluster: ClusterInputs, ports: tuple[Port, ...], files: Mapping[str, str] | None
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
                **app_labels.selector_labels("slurmctld", controller.metadata.name),
                slinky_labels.CONTROLLER_ACTIVE: app_labels.TRUE,
            },
            tuple(Port(port.name, port.number, port.target) for port in ports),
            owner(controller),
            unready=True,
        ),
    ]
    if files is not None:
        found.append(config_map(cluster, names.config_map_alias(controller), files))
    return found
