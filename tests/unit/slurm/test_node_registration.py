"""Running slurmds register again by the way of stand-in records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest

from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.rest.client import Slurmrestd
from penstock.slurm.rest.errors import SlurmError, UnsupportedError
from penstock.slurm.rest.node_registration import Address, register, remove
from penstock.slurm.stand_in import BELL, stand_ins

SLURMDS = (Address("cpu-0", "10.0.0.1", 6818), Address("cpu-1", "10.0.0.2", 6818))


@pytest.fixture
async def server() -> AsyncIterator[SimulatedSlurmrestd]:
    async with SimulatedSlurmrestd() as server:
        yield server


@pytest.fixture
def rest(server: SimulatedSlurmrestd) -> Slurmrestd:
    return Slurmrestd(server.url, lambda: "token")


async def registered(_: Collection[str]) -> bool:
    return True


async def test_every_address_is_asked_and_no_stand_in_is_left(
    server: SimulatedSlurmrestd, rest: Slurmrestd
) -> None:
    asked: list[str] = []
    server.slurmctld.asks = asked.append
    await register(rest, SLURMDS, registered)
    assert {"10.0.0.1", "10.0.0.2"} <= set(asked)
    assert not server.slurmctld.nodes
    assert not server.slurmctld.future


async def test_no_stand_in_with_an_address_of_a_slurmd_may_ever_take_a_job(
    server: SimulatedSlurmrestd, rest: Slurmrestd
) -> None:
    seen: list[set[str]] = []

    async def look(_: Collection[str]) -> bool:
        ctld = server.slurmctld
        seen.extend(set(ctld.states(n)) for n in ctld.nodes.values() if n.name != BELL)
        assert server.slurmctld.nodes[BELL].base == "DOWN"
        return True

    server.slurmctld.asks = lambda _: seen.extend(
        {one.base, *one.flags} for one in server.slurmctld.nodes.values() if one.name != BELL
    )
    await register(rest, SLURMDS, look)
    assert seen
    assert all({"DOWN", "DRAIN"} <= states for states in seen)


@pytest.mark.parametrize("left", [["penstock-register-0"], ["penstock-register-1", BELL]])
async def test_what_a_killed_process_left_is_in_nobodys_way(
    server: SimulatedSlurmrestd, rest: Slurmrestd, left: list[str]
) -> None:
    for name in left:
        server.slurmctld.new_node(f"NodeName={name} NodeAddr=10.0.0.9 State=FUTURE")
    await register(rest, SLURMDS, registered)
    assert not server.slurmctld.nodes
    assert not server.slurmctld.future


async def test_future_records_are_listed_when_they_are_asked_for(
    server: SimulatedSlurmrestd, rest: Slurmrestd
) -> None:
    server.slurmctld.new_node("NodeName=penstock-register-0 NodeAddr=10.0.0.9 State=FUTURE")
    listed = await rest.nodes()
    assert listed is not None
    assert listed.items == ()
    assert await rest.future_nodes() == {"penstock-register-0"}


async def test_stand_ins_go_though_the_wait_for_workers_fails(
    server: SimulatedSlurmrestd, rest: Slurmrestd
) -> None:
    async def fails(_: Collection[str]) -> bool:
        raise SlurmError("no answer")

    with pytest.raises(SlurmError, match="no answer"):
        await register(rest, SLURMDS, fails)
    assert not server.slurmctld.nodes


async def test_a_cancellation_is_not_replaced_by_an_error_of_the_removal(
    rest: Slurmrestd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a process that lost its Lease ends while slurmrestd is away."""
    waits = asyncio.Event()

    async def never(_: Collection[str]) -> bool:
        waits.set()
        await asyncio.Event().wait()
        return True

    task = asyncio.create_task(register(rest, SLURMDS, never))
    await waits.wait()
    monkeypatch.setattr(rest, "delete_node", _fails)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _fails(_: str) -> None:
    raise SlurmError("connection refused")


async def test_a_slurmrestd_that_cannot_make_records_is_named() -> None:
    async with SimulatedSlurmrestd(parsers=("v0.0.43",)) as server:
        with pytest.raises(UnsupportedError, match=r"new/node/ in v0\.0\.43"):
            await register(Slurmrestd(server.url, lambda: "token"), SLURMDS, registered)


async def test_removing_what_is_partly_gone_removes_the_rest(
    server: SimulatedSlurmrestd, rest: Slurmrestd
) -> None:
    server.slurmctld.register("penstock-register-1")
    server.slurmctld.register("cpu-0")
    await remove(rest, stand_ins(["penstock-register-0", "penstock-register-1", "cpu-0"]))
    assert list(server.slurmctld.nodes) == ["cpu-0"]
