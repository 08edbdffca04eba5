"""Probes of external daemons: which addresses are connected to, and how each end is reported."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.controllers.runtime.connectivity import (
    MOST_RESULTS,
    PAUSE_S,
    Check,
    NotProbedError,
    PortProbe,
    connect,
)
from penstock.decide.cluster.connectivity import End, closed, is_probed, leads_inside
from penstock.simulation.manual_clock import ManualClock

API_SERVER = "10.96.0.1"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        API_SERVER,
        "no address",
    ],
)
def test_an_address_inside_is_never_connected_to(address: str):
    """Audit A34: the operator's pod was a port scanner of its own network."""
    assert leads_inside(address, {API_SERVER})


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.7.1", "172.16.0.9", "fd00::1", "8.8.8.8"])
def test_private_networks_are_external(address: str):
    assert not leads_inside(address, {API_SERVER})
    assert is_probed(address, {"10.96.0.53"})
    assert not is_probed(address, {address})


def test_an_address_inside_is_reported_with_the_field():
    found = closed(End.INSIDE, "slurmctld", "localhost", 22)
    assert found is not None
    assert found.ok is False
    assert found.message.startswith("spec.externalConfig.host: localhost leads to")


async def test_nobody_is_connected_to_at_an_address_that_fails_the_check():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        listening.settimeout(0)
        assert await PortProbe(ManualClock()).probe("slurm", "localhost", port) is End.INSIDE
        with pytest.raises(BlockingIOError):
            listening.accept()


async def test_a_service_of_another_namespace_is_not_probed_and_counts_as_open():
    """The answer is the same whether it exists, is open or is closed."""
    tried: list[str] = []

    async def dial(host: str, _: int, check: Check) -> None:
        check("10.96.7.7")
        tried.append(host)

    def services(namespace: str) -> set[str]:
        return set() if namespace == "mine" else {"10.96.7.7"}

    probe = PortProbe(ManualClock(), dial, services=services)
    assert await probe.probe("other", "db.mine", 3306) is End.OPEN
    assert tried == []
    assert await probe.probe("mine", "db", 3306) is End.OPEN
    assert tried == ["db"]


async def test_what_the_check_lets_pass_is_connected_to():
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        checked: list[str] = []
        await connect("127.0.0.1", port, checked.append)
        assert checked == ["127.0.0.1"]

    def reject(_: str) -> None:
        raise NotProbedError(End.INSIDE)

    with pytest.raises(NotProbedError):
        await connect("127.0.0.1", port, reject)


async def test_results_are_kept_for_a_few_seconds_and_not_without_bound():
    calls: list[int] = []

    async def dial(_host: str, port: int, _: Check) -> None:
        calls.append(port)

    clock = ManualClock()
    probe = PortProbe(clock, dial)
    for _ in range(2):
        await probe.probe("slurm", "h", 1)
    assert calls == [1]
    for number in range(MOST_RESULTS):
        await probe.probe("slurm", "h", number)
    await clock.advance(PAUSE_S)
    await probe.probe("slurm", "h", MOST_RESULTS)
    assert len(probe._found) == 1  # pyright: ignore[reportPrivateUsage]
