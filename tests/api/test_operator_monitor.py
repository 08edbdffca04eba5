"""A ServiceMonitor under a real API server, which is without such a kind at first: D20, row 13."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import pytest

from penstock.api.kubernetes.kinds import SERVICE_MONITORS, ServiceMonitor
from penstock.api.kubernetes.meta import Json
from penstock.kube import Cache
from support.operator_kit import DEFINITIONS, Lab, Node, lab, served

pytestmark = pytest.mark.api

MONITOR = "slurm-controller"
NAME = f"{SERVICE_MONITORS.plural}.{SERVICE_MONITORS.group}"
SCHEMA: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": SERVICE_MONITORS.group,
        "names": {
            "kind": SERVICE_MONITORS.kind,
            "listKind": "ServiceMonitorList",
            "plural": SERVICE_MONITORS.plural,
            "singular": "servicemonitor",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": SERVICE_MONITORS.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}
CONTROLLER: Json = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Controller",
    "metadata": {"name": "slurm"},
    "spec": {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}},
}


@contextlib.asynccontextmanager
async def defined(lab_: Lab) -> AsyncGenerator[None]:
    """While the API server serves ServiceMonitors."""
    await lab_.client.apply(DEFINITIONS, DEFINITION)
    try:
        await served(lab_.client, SERVICE_MONITORS)
        yield
    finally:
        await lab_.client.delete(DEFINITIONS, "", NAME)


def monitored(lab_: Lab, status: str) -> bool:
    found = lab_.condition("Controller", "slurm", "Monitored")
    return found is not None and found.status == status


async def test_a_servicemonitor_is_made_under_the_operators_rights_once_there_are_any(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_:
        async with lab_.operator():
            await lab_.apply(CONTROLLER)
            await lab_.until(lambda: lab_.ready("Controller", "slurm"))
            await lab_.until(lambda: monitored(lab_, "False"))
        async with defined(lab_), lab_.operator():
            await lab_.until(lambda: monitored(lab_, "True"))
            async with Watched.of(lab_) as monitors:
                made = await monitors.until(lambda found: found is not None)
                assert made is not None
                assert [one["port"] for one in made.spec["endpoints"]] == ["slurmctld"] * 4
                await lab_.client.delete(SERVICE_MONITORS, lab_.namespace, MONITOR)
                await monitors.until(lambda new: new is not None and new.metadata != made.metadata)
                await lab_.apply({**CONTROLLER, "spec": {"metrics": {"enabled": True}}})
                await monitors.until(lambda found: found is None)
            await lab_.until(lambda: lab_.condition("Controller", "slurm", "Monitored") is None)


class Watched:
    """The ServiceMonitor of the lab's Controller, which the lab itself does not watch."""

    def __init__(self, lab_: Lab) -> None:
        self._key = f"{lab_.namespace}/{MONITOR}"
        self.cache = Cache(lab_.client, SERVICE_MONITORS, namespaces=(lab_.namespace,))
        self._changed = asyncio.Event()
        self.cache.subscribe(lambda _, __: self._changed.set())

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, lab_: Lab) -> AsyncGenerator[Watched]:
        """Watch while the block runs."""
        watched = cls(lab_)
        running = asyncio.ensure_future(watched.cache.run())
        try:
            await watched.cache.wait_synced()
            yield watched
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def until(self, holds: Callable[[ServiceMonitor | None], bool]) -> ServiceMonitor | None:
        """The object once it is so."""
        async with asyncio.timeout(60):
            while not holds(found := self.cache.get(self._key)):
                self._changed.clear()
                await self._changed.wait()
        return found
