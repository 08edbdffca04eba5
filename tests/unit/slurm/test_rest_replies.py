"""The client against answers recorded from slurmrestd 26.05.5 (tests/fixtures/slurmrestd)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from penstock.slurm.rest import (
    AuthError,
    BusyError,
    DeniedError,
    NotFoundError,
    SlurmError,
    Slurmrestd,
    UnsupportedError,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurmrestd"


@asynccontextmanager
async def replay(name: str) -> AsyncGenerator[Slurmrestd]:
    """A server that gives the recorded answer to everything but the OpenAPI document."""

    async def answer(request: web.Request) -> web.Response:
        chosen = "openapi" if request.path == "/openapi/v3" else name
        recorded: dict[str, Any] = json.loads((FIXTURES / f"{chosen}.json").read_text())
        body = recorded["body"]
        if isinstance(body, str):
            return web.Response(status=recorded["status"], text=body)
        return web.json_response(body, status=recorded["status"])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Slurmrestd(f"http://127.0.0.1:{runner.addresses[0][1]}", lambda: "t")
    await runner.cleanup()


@pytest.mark.parametrize("name", ["nodes", "nodes-v0.0.44", "nodes-v0.0.42"])
async def test_nodes_are_read_from_every_parser(name: str):
    async with replay(name) as rest:
        listing = await rest.nodes()
    assert listing is not None
    assert listing.last_update > 1_700_000_000
    cpu1, cpu2 = listing.items
    assert (cpu1.name, cpu2.name) == ("cpu-1", "cpu-2")
    assert cpu1.state >= {"IDLE", "DRAIN", "DYNAMIC_NORM"}
    assert cpu1.reason == "slurm-operator: Pod (slurm/cpu-1) was cordoned"
    assert cpu1.reason_user == "slurm"
    assert cpu1.drained
    assert "MIXED" in cpu2.state
    assert cpu2.busy
    assert cpu2.features == ("compute", "extra2")
    assert cpu2.partitions == ("compute", "all")
    assert cpu2.address == "127.0.0.1"
    assert cpu2.slurmd_start_time > cpu2.boot_time > 1_700_000_000


@pytest.mark.parametrize("name", ["jobs", "jobs-v0.0.44"])
async def test_jobs_are_read_with_their_nodes(name: str):
    async with replay(name) as rest:
        listing = await rest.jobs()
    assert listing is not None
    running, held = listing.items
    assert running.state == {"RUNNING"}
    assert running.nodes == ("cpu-2", "cpu-3")
    assert running.time_limit == 5
    assert running.start_time is not None
    assert running.start_time > 1_700_000_000
    assert (running.name, running.user, running.partition) == ("t", "slurm", "compute")
    assert held.state == {"PENDING"}
    assert held.nodes == ()
    assert held.time_limit is None


@pytest.mark.parametrize("name", ["jobs-unchanged", "jobs-unchanged-v0.0.44"])
async def test_no_change_of_jobs_is_not_no_jobs(name: str):
    async with replay(name) as rest:
        assert await rest.jobs(1_795_000_000) is None
        with pytest.raises(SlurmError, match="no list of jobs"):
            await rest.jobs()


async def test_no_change_of_nodes_counts_only_when_changes_were_asked_for():
    async with replay("nodes-unchanged") as rest:
        assert await rest.nodes(1_795_000_000) is None
        with pytest.raises(SlurmError, match="no change"):
            await rest.nodes()


@pytest.mark.parametrize("name", ["ping", "ping-v0.0.44"])
async def test_a_ping_names_who_answers(name: str):
    async with replay(name) as rest:
        (ping,) = await rest.ping()
    assert ping.up
    assert ping.primary


async def test_partitions_are_read():
    async with replay("partitions") as rest:
        partitions = {p.name: p for p in await rest.partitions()}
    assert partitions.keys() == {"compute", "all"}
    assert partitions["compute"].nodes.configured
    assert partitions["compute"].partition.state == ("UP",)


async def test_a_submitted_job_has_an_id():
    async with replay("submit") as rest:
        assert await rest.submit("#!/bin/sh\n", name="u") > 0


async def _drain(rest: Slurmrestd) -> None:
    await rest.update_node("nope", state=["DRAIN"], reason="x")


Call = Callable[[Slurmrestd], Awaitable[object]]

FAILURES: list[tuple[str, Call, type[SlurmError], str]] = [
    ("node-unknown", lambda r: r.node("nope"), NotFoundError, "query node nope"),
    ("update-unknown-node", _drain, NotFoundError, "Invalid node name"),
    ("delete-unknown-node", lambda r: r.delete_node("nope"), NotFoundError, "Invalid node"),
    ("delete-busy-node", lambda r: r.delete_node("cpu-2"), BusyError, "nodes are busy"),
    ("partition-unknown", lambda r: r.partition("nope"), NotFoundError, "partition nope"),
    ("bad-token", lambda r: r.nodes(), AuthError, "authentication error"),
    ("denied", _drain, DeniedError, "Invalid user id"),
    ("controller-down", lambda r: r.nodes(), SlurmError, "Unable to contact slurm controller"),
    ("unknown-parser", lambda r: r.nodes(), UnsupportedError, "has no GET nodes/"),
]


@pytest.mark.parametrize(("name", "call", "error", "words"), FAILURES)
async def test_a_failing_answer_raises_its_reason(
    name: str, call: Call, error: type[SlurmError], words: str
):
    async with replay(name) as rest:
        with pytest.raises(error, match=words):
            await call(rest)
