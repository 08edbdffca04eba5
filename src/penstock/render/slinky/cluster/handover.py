"""The container in which the first slurmctld of several waits while another one has control."""

from __future__ import annotations

from penstock.api.cluster.pod_names import HANDOVER
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.render.parts.script import script
from penstock.render.slinky.cluster import release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import daemons, versions

_POD_NAME = {"fieldRef": {"fieldPath": "metadata.name"}}


def containers(cluster: ClusterInputs, image: str) -> list[Json]:
    """Init containers that come last; none for a single slurmctld.

    Only the first slurmctld of slurm.conf takes control at its start; a backup has no host to wait
    for. A slurmctld that answers no HTTP does not show who has control.
    """
    controller, version = cluster.controller, release.of_slurmctld(cluster)
    count = controller.spec.replicas
    if count == 1 or (version is not None and version < versions.PROBES_SINCE):
        return []
    first, *others = (names.controller_pod(controller, number) for number in range(count))
    return [
        {
            "name": HANDOVER,
            "image": image,
            "command": ["tini", "-g", "--", "bash", "-c", script("handover"), HANDOVER],
            "args": [first, str(daemons.SLURMCTLD_PORT), *others],
            "env": [{"name": "POD_NAME", "valueFrom": _POD_NAME}],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    ]
