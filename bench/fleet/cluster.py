"""Objects of the clusters that fleets are measured in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Cluster = Callable[[int], list[Json]]
"""The objects of a cluster, whose slurmrestd is at that port of the machine."""

SPACE = "fleet"
CLUSTER = "slurm"
NODESET = "worker"
DAEMON = "daemon"
WINDOW = "window"
PLACES = {"bench.penstock.dev/place": "true"}
"""The label of machines that get a worker in DaemonSet mode."""
NOWHERE = {"bench.penstock.dev/place": "false"}
_REF: Json = {"controllerRef": {"name": CLUSTER}}
_IDLE: Json = {"command": ["sleep", "infinity"]}
"""Instead of a program whose log shows what it took over: simulated pods have no log."""


def rest_host(space: str) -> str:
    """Host of the slurmrestd of the cluster in a namespace."""
    return f"{CLUSTER}-restapi.{space}"


def plain(port: int) -> list[Json]:
    """One NodeSet and what it takes."""
    return [
        declared("Controller", CLUSTER, {"persistence": {"enabled": False}, "reconfigure": _IDLE}),
        declared("RestApi", CLUSTER, {**_REF, "service": {"port": port}}),
        # Several workers may share a machine, so the scheduler has the least to do: whatever else
        # takes time beside the operator would hide it.
        declared("NodeSet", NODESET, {**_REF, "replicas": 0, "oversubscribeNode": True}),
    ]


def modes(port: int) -> list[Json]:
    """With an Accounting, one NodeSet in DaemonSet mode and two in StatefulSet mode."""
    keys = {
        "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
        "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
    }
    password = {"name": "database", "key": "password"}
    controller = {
        "persistence": {"enabled": False},
        "accountingRef": {"name": CLUSTER},
        "reconfigure": _IDLE,
    }
    accounting = {
        **keys,
        "slurmdbd": _IDLE,
        "storageConfig": {"host": "database", "username": "slurm", "passwordKeyRef": password},
    }
    fleet = {**_REF, "replicas": 0, "oversubscribeNode": True}
    daemon = {**_REF, "scalingMode": "DaemonSet", "template": {"spec": {"nodeSelector": NOWHERE}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "database", "namespace": SPACE},
            "stringData": {"password": "secret"},
        },
        declared("Accounting", CLUSTER, accounting),
        declared("Controller", CLUSTER, controller),
        declared("RestApi", CLUSTER, {**_REF, "service": {"port": port}}),
        declared("NodeSet", DAEMON, daemon),
        declared("NodeSet", NODESET, fleet),
        declared("NodeSet", WINDOW, fleet),
    ]


def declared(kind: str, name: str, spec: Json) -> Json:
    """One object of the kinds."""
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": spec,
    }
