from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import ClientConnectorError, ClientSession

from penstock.simulation.fault_proxy import FaultProxy
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.rest import SlurmError, Slurmrestd, UnreachableError


@pytest.fixture
async def server() -> AsyncIterator[SimulatedSlurmrestd]:
    async with SimulatedSlurmrestd() as server:
        server.slurmctld.register("cpu-0")
        server.slurmctld.register("cpu-1")
        yield server


@pytest.fixture
async def proxy(server: SimulatedSlurmrestd) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(server.url, delay_s=0.01) as proxy:
        yield proxy


@pytest.fixture
def rest(proxy: FaultProxy) -> Slurmrestd:
    return Slurmrestd(proxy.url, lambda: "token", timeout_s=0.3)


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.SLOW])
async def test_without_a_fault_everything_passes(
    proxy: FaultProxy, rest: Slurmrestd, server: SimulatedSlurmrestd, fault: Fault
):
    await proxy.switch(fault)
    await rest.update_node("cpu-0", state=["DRAIN"], reason="x")
    assert (await rest.node("cpu-0")).drained
    listing = await rest.nodes(1)
    assert listing is not None
    assert "GET /slurm/v0.0.45/nodes/?update_time=1" in server.calls
    assert proxy.calls == len(server.calls)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.REFUSE, "refused the connection|broke off"),
        (Fault.HANG, "did not answer"),
        (Fault.ERROR_IN_200, "Unspecified error"),
        (Fault.HALF_BODY, "cannot be read"),
        (Fault.CONTROLLER_DOWN, "Unable to contact slurm controller"),
        (Fault.UNAVAILABLE, "HTTP 503"),
        (Fault.EXPIRED, "authentication error"),
    ],
)
async def test_a_fault_reaches_the_client_and_ends(
    proxy: FaultProxy, rest: Slurmrestd, fault: Fault, words: str
):
    await rest.ping()
    await proxy.switch(fault)
    with pytest.raises(SlurmError, match=words):
        await rest.nodes()
    await proxy.switch(Fault.NONE)
    assert await rest.nodes() is not None


async def test_a_closed_socket_gives_a_real_connection_error(proxy: FaultProxy):
    await proxy.switch(Fault.REFUSE)
    async with ClientSession() as session:
        with pytest.raises(ClientConnectorError):
            await session.get(proxy.url)


@pytest.mark.parametrize(("fault", "left"), [(Fault.EMPTY_NODES, 0), (Fault.HALF_NODES, 1)])
async def test_node_lists_are_shortened_and_nothing_else(
    proxy: FaultProxy, rest: Slurmrestd, server: SimulatedSlurmrestd, fault: Fault, left: int
):
    server.slurmctld.run("cpu-1")
    await proxy.switch(fault)
    nodes, jobs = await rest.nodes(), await rest.jobs()
    assert nodes is not None
    assert jobs is not None
    assert len(nodes.items) == left
    assert len(jobs.items) == 1
    assert (await rest.node("cpu-1")).busy


async def test_an_upstream_that_is_away_is_a_503(
    proxy: FaultProxy, rest: Slurmrestd, server: SimulatedSlurmrestd
):
    await server.stop()
    with pytest.raises(SlurmError, match="HTTP 503"):
        await rest.nodes()


async def test_its_command_serves_is_switched_over_http_and_stops_on_sigterm(
    server: SimulatedSlurmrestd, unused_tcp_port_factory: Callable[[], int]
):
    port, control = unused_tcp_port_factory(), unused_tcp_port_factory()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "penstock.simulation.fault_proxy", "--listen", f"127.0.0.1:{port}",
        "--upstream", server.url, "--control-port", str(control),
    )  # fmt: skip
    switch = f"http://127.0.0.1:{control}"
    try:
        async with asyncio.timeout(30), ClientSession() as session:
            rest = Slurmrestd(f"http://127.0.0.1:{port}", lambda: "token")
            await _listening(control)
            assert await rest.nodes() is not None
            async with session.put(f"{switch}/mode/refuse") as response:
                assert await response.json() == {"mode": "refuse"}
            with pytest.raises(UnreachableError):
                await rest.nodes()
            async with session.put(f"{switch}/mode/nonsense") as response:
                assert response.status == 404
            async with session.get(f"{switch}/mode") as response:
                assert await response.json() == {"mode": "refuse"}
            async with session.delete(f"{switch}/calls") as response:
                assert await response.json() == {"calls": 0}
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def _listening(port: int) -> None:
    """Wait until something listens there; a process that starts gives no other sign."""
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError(f"nothing listens on port {port}")
