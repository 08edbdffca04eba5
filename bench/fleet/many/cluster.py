"""Objects of many small clusters, each in a namespace of its own, and ways to break one."""

from __future__ import annotations

from collections.abc import Mapping

from bench.fleet.cluster import Json, declared, plain
from bench.fleet.site import namespace
from penstock.simulation.faults import Fault

WORKERS = 5


def space(number: int) -> str:
    """Namespace of a cluster."""
    return f"many-{number:03d}"


def objects(number: int, port: int) -> list[Json]:
    """One of them; its slurmrestd is at that port of the machine."""
    found = plain(port)
    for one in found:
        one["metadata"]["namespace"] = space(number)
        if one["kind"] == "NodeSet":
            one["spec"]["replicas"] = WORKERS
    return [namespace(space(number)), *found]


SLURM_FAULTS = (
    Fault.HANG,
    Fault.REFUSE,
    Fault.SLOW,
    Fault.HALF_BODY,
    Fault.EXPIRED,
    Fault.EMPTY_NODES,
)
"""What the slurmrestd of a broken cluster does."""
REJECTED_POD: Json = {"template": {"spec": {"containers": [{"name": "other"}]}}}
"""Spec of a NodeSet whose pods the API server rejects."""
LOST: Mapping[str, Json] = {
    "a Controller that does not exist": declared(
        "NodeSet", "lost", {"controllerRef": {"name": "nowhere"}, "replicas": WORKERS}
    ),
    "a key that does not exist": declared(
        "Controller",
        "keyless",
        {
            "slurmKeyRef": {"name": "nowhere", "key": "slurm.key"},
            "jwtKeyRef": {"name": "nowhere", "key": "jwt.key"},
        },
    ),
}
"""Objects beside a cluster that wait for what does not come."""
QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "none"},
    "spec": {"hard": {"pods": "0"}},
}
"""With it no pod can be created; a worker is deleted at the same time."""
BROKEN = len(SLURM_FAULTS) + len(LOST) + 2
