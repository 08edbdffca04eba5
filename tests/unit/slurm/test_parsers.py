"""Each data parser's own replies, recorded from slurmrestd 24.11.5 and 26.05.5.

`24.11.5` is that slurmrestd's, the other folders are what 26.05.5 gave by each of its parsers, of a
slurmctld with this slurm.conf.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.partition.adoption import into_extra_conf
from penstock.slurm.partition.comparison import differences
from penstock.slurm.partition.declaration import PARTITION, Difference, partition_lines
from penstock.slurm.rest import BadReplyError, Partition, Slurmrestd
from penstock.slurm.rest.wire import PartitionNodes
from penstock.slurm.versions import PARTITION_CALLS_SINCE, RESERVATION_CALLS_SINCE

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurmrestd" / "parsers"
CONF = """
PartitionName=compute Nodes=compute Default=YES MaxTime=60 OverSubscribe=FORCE:2 PriorityTier=3
PartitionName=all Nodes=ALL State=DOWN
"""
SPOKEN = {
    "24.11.5": "v0.0.42",
    "v0.0.42": "v0.0.42",
    "v0.0.43": "v0.0.43",
    "v0.0.44": "v0.0.44",
    "v0.0.45": "v0.0.45",
}
every = pytest.mark.parametrize("folder", SPOKEN)


@asynccontextmanager
async def replay(folder: str) -> AsyncGenerator[Slurmrestd]:
    """A slurmrestd that offers one data parser and gives that one's recorded replies."""
    offers = SPOKEN[folder]

    async def answer(request: web.Request) -> web.Response:
        parts = request.path.strip("/").split("/")
        if parts == ["openapi", "v3"]:
            name = FIXTURES / ("24.11.5" if folder == "24.11.5" else "26.05.5") / "openapi.json"
        elif parts[1] != offers:
            return web.Response(status=404, text="Unable to find requested URL endpoint.")
        else:
            name = FIXTURES / folder / f"{parts[2]}.json"
        body: dict[str, Any] = json.loads(name.read_text())["body"]
        if "x-slurm" in body.get("info", {}):
            body["info"]["x-slurm"]["data_parsers"] = [{"plugin": f"data_parser/{offers}"}]
        return web.json_response(body)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Slurmrestd(f"http://127.0.0.1:{runner.addresses[0][1]}", lambda: "t")
    await runner.cleanup()


async def partitions(folder: str) -> dict[str, Partition]:
    async with replay(folder) as rest:
        return {one.name: one for one in await rest.partitions()}


@every
async def test_the_parser_is_found_with_and_without_its_name_in_the_document(folder: str):
    async with replay(folder) as rest:
        await rest.ping()
        assert rest.parser == SPOKEN[folder]


@every
async def test_nodes_and_jobs_of_each_parser_are_read(folder: str):
    async with replay(folder) as rest:
        nodes, jobs = await rest.nodes(), await rest.jobs()
    assert nodes is not None
    assert jobs is not None
    assert [(one.name, one.features) for one in nodes.items] == [
        ("n1", ("compute",)),
        ("n2", ("compute",)),
    ]
    assert {one.topology for one in nodes.items} == {None if SPOKEN[folder] == "v0.0.42" else ""}
    assert {one.state for one in jobs.items} == {frozenset({"PENDING"})}


@every
async def test_partitions_of_each_parser_are_read_without_a_false_difference(folder: str):
    found = await partitions(folder)
    lines = partition_lines(CONF)
    assert found["compute"].nodes.configured == "n[1-2]"
    assert [d for name in lines for d in differences(lines[name], found[name])] == []


@every
async def test_a_real_difference_of_each_parser_is_seen(folder: str):
    found = await partitions(folder)
    line = partition_lines(CONF.replace("MaxTime=60", "MaxTime=90"))["compute"]
    assert differences(line, found["compute"]) == (Difference("MaxTime", "60", "90"),)


@every
async def test_a_partition_whose_keys_are_not_all_reported_is_not_adopted(folder: str):
    found = await partitions(folder)
    missing = {"compute": (Difference(PARTITION, "compute", ""),)}
    adoption = into_extra_conf("", missing, found, {"compute": frozenset({"n1", "n2"})})
    if SPOKEN[folder] == "v0.0.45":
        assert "OverSubscribe=FORCE:2" in adoption.patch["extraConf"]
    else:
        assert adoption.patch == {}
        assert "slurmrestd does not report" in adoption.left["compute"]
        assert "Default" in adoption.left["compute"]


def test_a_partition_of_which_nothing_else_is_known_differs_in_nothing():
    bare = Partition("compute", PartitionNodes("n[1-2]", 2), "compute")
    line = partition_lines(CONF)["compute"]
    assert differences(line, bare, frozenset({"n1", "n2"})) == ()


LACKING = [
    ("nodes", "state"),
    ("nodes", "comment"),
    ("nodes", "features"),
    ("nodes", "slurmd_start_time"),
    ("jobs", "nodes"),
    ("jobs", "job_state"),
    ("partitions", "nodes.configured"),
]


@pytest.mark.parametrize(("what", "field"), LACKING)
async def test_a_reply_that_lacks_what_every_parser_has_is_no_answer(what: str, field: str):
    slurmctld = SimulatedSlurmctld()
    slurmctld.register("n1")
    slurmctld.run("n1")
    slurmctld.update_partition({"name": "p", "nodes": {"configured": "n1"}})
    async with SimulatedSlurmrestd(slurmctld) as server:
        rest = Slurmrestd(server.url, lambda: "t")
        ask = {"nodes": rest.nodes, "jobs": rest.jobs, "partitions": rest.partitions}[what]
        assert await ask()
        slurmctld.lacks = (what, field)
        with pytest.raises(BadReplyError, match=rf"required field `{field.rpartition('.')[2]}`"):
            await ask()


async def test_the_parser_is_chosen_again_after_an_upgrade_of_slurmrestd():
    async with SimulatedSlurmrestd() as server:
        server.slurmctld.register("n1")
        server.slurmctld.newest_parser = "v0.0.42"
        rest = Slurmrestd(server.url, lambda: "t")
        await rest.nodes()
        assert rest.parser == "v0.0.42"
        assert rest.lacks(PARTITION_CALLS_SINCE) == (
            "slurmrestd speaks v0.0.42, which has no call for it before Slurm 26.05"
        )
        assert rest.lacks(RESERVATION_CALLS_SINCE)
        server.slurmctld.newest_parser = ""
        await rest.nodes()
        await rest.nodes()
        assert rest.parser == "v0.0.45"
        assert not rest.lacks(PARTITION_CALLS_SINCE)
        await rest.nodes()
        assert server.calls.count("GET /openapi/v3") == 2


async def test_a_release_that_differs_from_the_document_for_good_is_not_asked_for_ever():
    class Odd(SimulatedSlurmrestd):
        @property
        def release(self) -> str:
            return "26.05.5" if self.calls[-1].endswith("/openapi/v3") else "26.05.5-1"

    async with Odd() as server:
        server.slurmctld.register("n1")
        rest = Slurmrestd(server.url, lambda: "t")
        for _ in range(40):
            await rest.nodes()
        assert server.calls.count("GET /openapi/v3") < 15
