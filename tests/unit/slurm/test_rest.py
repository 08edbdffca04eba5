from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.auth import jwt
from penstock.slurm.rest import (
    AuthError,
    BadReplyError,
    NotFoundError,
    SlurmError,
    Slurmrestd,
    UnreachableError,
    UnsupportedError,
)
from penstock.slurm.rest.reservation import WantedReservation


@pytest.fixture
async def server() -> AsyncIterator[SimulatedSlurmrestd]:
    async with SimulatedSlurmrestd() as server:
        server.slurmctld.register("cpu-0")
        server.slurmctld.register("cpu-1")
        yield server


@pytest.fixture
def rest(server: SimulatedSlurmrestd) -> Slurmrestd:
    return Slurmrestd(server.url, lambda: "token", timeout_s=5)


async def test_the_best_common_parser_is_found_once(server: SimulatedSlurmrestd, rest: Slurmrestd):
    server.parsers = ("v0.0.43", "v0.0.44", "v0.0.99")
    await rest.nodes()
    await rest.nodes()
    assert rest.parser == "v0.0.44"
    assert server.calls.count("GET /openapi/v3") == 1


async def test_a_replaced_server_is_asked_again_for_its_parsers(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    await rest.nodes()
    assert rest.parser == "v0.0.45"
    server.parsers = ("v0.0.44",)
    assert await rest.nodes() is not None
    assert rest.parser == "v0.0.44"


async def test_a_server_without_a_common_parser_is_reported_with_both_lists(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    server.parsers = ("v0.0.39",)
    with pytest.raises(UnsupportedError, match=r"offers .* v0\.0\.39; Penstock speaks v0\.0\.45"):
        await rest.nodes()


async def test_only_changes_are_listed_since_a_time(server: SimulatedSlurmrestd, rest: Slurmrestd):
    now = 1000.0
    server.slurmctld.clock = lambda: now
    server.slurmctld.touch()
    now = 1002.0
    listing = await rest.nodes()
    assert listing is not None
    assert await rest.nodes(listing.last_update) is None
    assert await rest.jobs(listing.last_update) is None
    server.slurmctld.run("cpu-0")
    nodes, jobs = await rest.nodes(listing.last_update), await rest.jobs(listing.last_update)
    assert nodes is not None
    assert jobs is not None
    assert [n.busy for n in nodes.items] == [True, False]
    assert [j.nodes for j in jobs.items] == [("cpu-0",)]


async def test_finished_jobs_are_left_out(server: SimulatedSlurmrestd, rest: Slurmrestd):
    leaving = server.slurmctld.run("cpu-0", state={"CANCELLED", "COMPLETING"})
    server.slurmctld.finish(server.slurmctld.run("cpu-1"))
    jobs = await rest.jobs()
    assert jobs is not None
    assert [job.id for job in jobs.items] == [leaving.id]


async def test_a_node_is_drained_and_undrained(server: SimulatedSlurmrestd, rest: Slurmrestd):
    await rest.update_node("cpu-0", state=["DRAIN"], reason="why", comment="c", features=["a"])
    node = await rest.node("cpu-0")
    assert (node.drained, node.reason, node.comment, node.features) == (True, "why", "c", ("a",))
    await rest.update_node("cpu-0", state=["UNDRAIN"])
    node = await rest.node("cpu-0")
    assert (node.drain, node.reason) == (False, "")


async def test_a_deleted_node_is_not_found(server: SimulatedSlurmrestd, rest: Slurmrestd):
    await rest.delete_node("cpu-0")
    with pytest.raises(NotFoundError):
        await rest.node("cpu-0")


async def test_a_name_is_quoted_in_the_path(server: SimulatedSlurmrestd, rest: Slurmrestd):
    with pytest.raises(NotFoundError):
        await rest.node("../nodes/?x")
    assert "GET /slurm/v0.0.45/nodes/" not in server.calls


async def test_partitions_come_and_go(server: SimulatedSlurmrestd, rest: Slurmrestd):
    server.slurmctld.register("cpu-0")
    await rest.update_partition({"name": "p", "nodes": {"configured": "cpu-0"}})
    assert (await rest.partition("p")).nodes.configured == "cpu-0"
    await rest.delete_partition("p")
    with pytest.raises(NotFoundError):
        await rest.delete_partition("p")


async def test_a_reservation_is_made_changed_and_deleted(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    wanted = WantedReservation(
        "maint", start_time=1_800_000_000, duration=30, nodes=["cpu-0"], users=["root", "slurm"]
    )
    await rest.update_reservation(wanted)
    found = await rest.reservation("maint")
    assert (found.node_list, found.users, found.node_count) == ("cpu-0", "root,slurm", 1)
    assert found.end_time.value() == 1_800_001_800
    await rest.update_reservation(WantedReservation("maint", nodes=["cpu-0", "cpu-1"]))
    (found,) = await rest.reservations()
    assert (found.node_list, found.users) == ("cpu-[0-1]", "root,slurm")
    await rest.delete_reservation("maint")
    assert await rest.reservations() == ()
    with pytest.raises(NotFoundError):
        await rest.reservation("maint")
    with pytest.raises(SlurmError):
        await rest.delete_reservation("maint")


async def test_small_calls_reach_slurmctld(server: SimulatedSlurmrestd, rest: Slurmrestd):
    job = server.slurmctld.run("cpu-0")
    assert (await rest.diag()).jobs_running == 1
    await rest.reconfigure()
    assert server.slurmctld.reconfigured == 1
    await rest.cancel(job.id)
    assert job.state == {"CANCELLED"}
    server.slurmctld.responding = False
    assert [ping.up for ping in await rest.ping()] == [False]


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault.REFUSE, UnreachableError, "broke off the connection"),
        (Fault.ERROR_IN_200, SlurmError, "answered with an error: Unspecified error"),
        (Fault.HALF_BODY, BadReplyError, "cannot be read"),
        (Fault.CONTROLLER_DOWN, SlurmError, "Unable to contact slurm controller"),
        (Fault.UNAVAILABLE, SlurmError, "HTTP 503: no healthy upstream"),
        (Fault.EXPIRED, AuthError, "authentication error"),
    ],
)
async def test_a_fault_is_an_error_in_words(
    server: SimulatedSlurmrestd, rest: Slurmrestd, fault: Fault, error: type[SlurmError], words: str
):
    await rest.ping()
    server.fault = fault
    for call in (rest.nodes, rest.jobs, rest.ping):
        with pytest.raises(error, match=words):
            await call()


async def test_a_stopped_server_accepts_no_connection(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    await server.stop()
    with pytest.raises(UnreachableError, match=r"refused the connection \(http://127"):
        await rest.nodes()


async def test_a_silent_server_times_out(server: SimulatedSlurmrestd):
    """D32."""
    server.fault = Fault.HANG
    rest = Slurmrestd(server.url, lambda: "token", timeout_s=0.05)
    with pytest.raises(UnreachableError, match=r"did not answer within 0.05 s"):
        await rest.nodes()


async def test_a_name_that_does_not_resolve_is_reported():
    rest = Slurmrestd("http://nowhere.invalid:6820", lambda: "token")
    with pytest.raises(UnreachableError, match="name of slurmrestd is unknown"):
        await rest.nodes()


async def test_the_token_is_asked_for_at_each_request():
    key = b"k" * 32
    async with SimulatedSlurmrestd(key=key) as server:
        tokens = [jwt.mint(key, "slurm", -1, time.time())]
        rest = Slurmrestd(server.url, lambda: tokens[-1])
        with pytest.raises(AuthError):
            await rest.nodes()
        tokens.append(jwt.mint(key, "slurm", 60, time.time()))
        assert await rest.nodes() is not None


async def test_an_empty_token_is_an_authentication_error(server: SimulatedSlurmrestd):
    with pytest.raises(AuthError, match="did not take the token"):
        await Slurmrestd(server.url, lambda: "").nodes()


class _DeposedError(Exception):
    """What a fence raises."""


async def test_what_changes_slurm_is_kept_back_once_the_fence_is_up(
    server: SimulatedSlurmrestd,
) -> None:
    """Every change, a reconfigure too although it is a GET; reads go on."""

    def fence() -> None:
        raise _DeposedError

    rest = Slurmrestd(server.url, lambda: "token", timeout_s=5, fence=fence)
    assert (await rest.node("cpu-0")).name == "cpu-0"
    before = len(server.calls)
    for change in (
        rest.update_node("cpu-0", state=["DRAIN"]),
        rest.delete_node("cpu-0"),
        rest.new_node("NodeName=cpu-2"),
        rest.update_partition({"name": "all"}),
        rest.delete_partition("all"),
        rest.delete_reservation("r"),
        rest.submit("#!/bin/sh"),
        rest.cancel(1),
        rest.reconfigure(),
    ):
        with pytest.raises(_DeposedError):
            await change
    assert server.calls[before:] == []
    assert "DRAIN" not in server.slurmctld.nodes["cpu-0"].flags


async def test_a_change_is_kept_back_when_leadership_is_lost_while_it_connects(
    server: SimulatedSlurmrestd,
) -> None:
    """The connection may take longer than another process waits for the Lease."""
    asked: list[str] = []

    def fence() -> None:
        asked.append("fence")
        if len(asked) == 2:
            raise _DeposedError

    rest = Slurmrestd(server.url, lambda: "token", timeout_s=5, fence=fence)
    await rest.node("cpu-0")
    before = len(server.calls)
    with pytest.raises(_DeposedError):
        await rest.update_node("cpu-0", state=["DRAIN"])
    assert asked == ["fence", "fence"]
    assert server.calls[before:] == []
