"""A small cluster with partitions in the api lab, and what slurmctld has of them."""

from __future__ import annotations

import json
from typing import Any

from penstock.api.kubernetes.meta import Json
from support.operator_kit import Lab, Running

API = "slinky.slurm.net/v1beta1"
REF: Json = {"controllerRef": {"name": "slurm"}}
CONTROLLER: Json = {
    "apiVersion": API,
    "kind": "Controller",
    "metadata": {"name": "slurm"},
    "spec": {"extraConf": "MinJobAge=2\n"},
}
RESTAPI: Json = {"apiVersion": API, "kind": "RestApi", "metadata": {"name": "slurm"}, "spec": REF}
NODESET: Json = {
    "apiVersion": API,
    "kind": "NodeSet",
    "metadata": {"name": "compute"},
    "spec": {**REF, "replicas": 2, "partition": {"enabled": True}},
}


def partition(object_name: str = "part", /, **spec: Any) -> Json:
    return {
        "apiVersion": "penstock.dev/v1alpha1",
        "kind": "Partition",
        "metadata": {"name": object_name},
        "spec": {"controllerRef": {"name": "slurm"}, **spec},
    }


def conf(lab_: Lab, name: str = "slurm-config") -> str:
    """The slurm.conf of a ConfigMap."""
    found = lab_.get("ConfigMap", name)
    return found["data"]["slurm.conf"] if found is not None else ""


async def start(lab_: Lab) -> None:
    """A cluster with two nodes whose slurmctld has read its file."""
    await lab_.apply(CONTROLLER, RESTAPI, NODESET)
    await lab_.until(lambda: lab_.ready("NodeSet", "compute"))
    await effective(lab_)
    reads(lab_)


def reads(lab_: Lab) -> None:
    """Slurmctld reads its file."""
    lab_.slurm.read(conf(lab_))


def live(lab_: Lab, name: str = "part") -> Json:
    return lab_.slurm.partitions.get(name, {"nodes": {}, "maximums": {}, "partition": {}})


def posts(lab_: Lab) -> int:
    return sum("POST" in one and "/partitions" in one for one in lab_.rest.calls)


async def drifted(lab_: Lab, kind: str, name: str) -> str:
    """Wait for the condition; its message."""
    await lab_.until(
        lambda: (
            (found := lab_.condition(kind, name, "Drifted")) is not None and found.status == "True"
        )
    )
    found = lab_.condition(kind, name, "Drifted")
    return found.message if found is not None else ""


async def effective(lab_: Lab) -> None:
    """Wait until slurmctld runs the declared configuration."""

    def holds() -> bool:
        found = lab_.get("Controller", "slurm")
        status: Json = (found or {}).get("status", {})
        return bool(status) and status.get("effectiveConfigHash") == status.get("configHash")

    await lab_.until(holds)


def poke(lab_: Lab, running: Running) -> None:
    """Have slurmctld asked for its partitions now."""
    link = running.operator.connections.get(f"{lab_.namespace}/slurm")
    assert link is not None
    link.partitions.poll_soon()


def events(running: Running, reason: str) -> list[str]:
    """The notes of events with that reason."""
    found: list[Json] = [json.loads(one) for one in running.transport.bodies if one]
    return [one["note"] for one in found if one.get("reason") == reason and "note" in one]


async def events_of(lab_: Lab, running: Running, reason: str, count: int = 1) -> list[str]:
    """Wait until so many events of that reason are written, which is beside the work."""
    await lab_.until(lambda: len(events(running, reason)) >= count)
    found = events(running, reason)
    assert len(found) == count
    return found
