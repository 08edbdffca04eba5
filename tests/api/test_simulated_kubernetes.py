"""The simulated API server answers as the real one does, scenario by scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from api.kube_support import Node, namespace_of
from penstock.kube import Client
from penstock.simulation.apiserver import ApiServer, Connection
from penstock.simulation.event_loop import EPOCH, LoopClock, simulate
from support.kubernetes_minor import MINOR
from support.scenarios_kube import KUBERNETES, Kube, Notes, initial_events

pytestmark = pytest.mark.api
Scenario = Callable[[Kube], Awaitable[Notes]]


def simulated(scenario: Scenario) -> Notes:
    async def main() -> Notes:
        loop = asyncio.get_running_loop()
        server = ApiServer(lambda: EPOCH + loop.time())
        clock, connection = LoopClock(), Connection(server, "penstock")
        client = Client(connection, clock=clock)
        user = Client(connection, clock=clock, field_manager="kubectl")
        return await scenario(Kube(client, user, "test"))

    return simulate(main())


@pytest.mark.parametrize("scenario", KUBERNETES, ids=lambda one: one.__name__)
async def test_the_simulation_agrees_with_a_real_api_server(
    api_node: Node, scenario: Scenario
) -> None:
    if scenario is initial_events and MINOR < 34:
        pytest.skip("an API server before 1.34 streams no lists")
    async with namespace_of(api_node) as (client, space):
        user = Client(client.transport, field_manager="kubectl")
        real = await scenario(Kube(client, user, space))
    assert await asyncio.to_thread(simulated, scenario) == real
