"""Clusters with a backup slurmctld, and what users see of the one that is absent."""

from __future__ import annotations

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from penstock.api.slinky.labels import CONTROLLER_ACTIVE

PODS = ("slurm-controller-0", "slurm-controller-1")
EXTRA_CONF = manifests.EXTRA_CONF + "SlurmctldTimeout=10\n"


def objects(**spec: Json) -> list[Json]:
    """A shared PVC and a Controller with a backup on it."""
    shared = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "64Mi"}}}
    metadata = {"name": "shared"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    controller = manifests.controller(
        EXTRA_CONF,
        ha={"enabled": True},
        persistence={"enabled": True, "existingClaim": "shared"},
        **spec,
    )
    return [{**claim, "spec": shared}, controller]


def works(cluster: Cluster) -> list[str]:
    """Names of the pods that the Service leads to."""
    found = cluster.pods("app.kubernetes.io/name=slurmctld").items()
    labels = {name: pod["metadata"]["labels"] for name, pod in found}
    return sorted(name for name, has in labels.items() if has.get(CONTROLLER_ACTIVE) == "true")


def dialled(cluster: Cluster, pod: str) -> str:
    """What a connection to one slurmctld gives, by the name in slurm.conf, seen from a worker."""
    shown = cluster.on("compute-0", "timeout 60 scontrol show config")
    line = next(one for one in shown.splitlines() if f"= {pod}(" in one)
    host = line.rpartition("(")[2].rstrip(")\n ")
    return cluster.on(
        "compute-0", f"timeout 5 bash -c 'exec 3<>/dev/tcp/{host}/6817' 2>&1; echo ended $?"
    )
