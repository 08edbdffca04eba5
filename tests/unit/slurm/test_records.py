"""Records that metrics read: as whole replies, in pieces, and as real parsers write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.slurm.rest import records
from penstock.slurm.rest.array_body import ArrayBody
from penstock.slurm.rest.errors import BadReplyError, SlurmError
from penstock.slurm.rest.http import Answer
from penstock.slurm.rest.records_client import RecordsClient

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurmrestd"
PARSERS = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")


class Item(msgspec.Struct, frozen=True):
    """A record of these tests."""

    id: int
    name: str = ""


def fed(body: bytes, size: int = 7) -> tuple[list[Item], bytes]:
    """Records and rest of a body that arrives in pieces."""
    taken: ArrayBody[Item] = ArrayBody("jobs", Item, lambda one: one)
    for at in range(0, len(body), size):
        taken.feed(body[at : at + size])
    return taken.items, taken.finish()


HOSTILE: list[dict[str, Any]] = [
    {"id": 1, "name": '},{"id":2'},
    {"id": 2, "name": '"}, {"id": 9}]', "more": [{"id": 8}, {"id": 7}]},
    {"id": 3, "name": "\\"},
    {"id": 4, "name": "ü\u2028"},
]


@pytest.mark.parametrize("size", [1, 3, 64, 10**6])
@pytest.mark.parametrize("indent", [None, 2])
def test_records_are_found_however_they_are_spelled_and_cut(size: int, indent: int | None):
    reply = {"jobs": HOSTILE, "last_update": {"number": 5}, "errors": []}
    items, rest = fed(json.dumps(reply, indent=indent, ensure_ascii=False).encode(), size)
    assert items == [Item(one["id"], one["name"]) for one in HOSTILE]
    assert json.loads(rest) == {"jobs": [], "last_update": {"number": 5}, "errors": []}


@pytest.mark.parametrize(
    "body", [b'{"jobs": [], "errors": []}', b'{"errors":[{"error":"x"}]}', b""]
)
def test_a_reply_without_records_stays_as_it_is(body: bytes):
    assert fed(body) == ([], body)


def test_a_list_that_is_not_the_first_member_stays_in_the_reply():
    body = json.dumps({"meta": "x" * 70000, "jobs": HOSTILE}).encode()
    assert fed(body, 4096) == ([], body)


def test_bytes_that_are_no_text_hide_no_record():
    body = b'{"jobs": [{"id": 1, "name": "\xff"}, {"id": 2}], "errors": []}'
    items, _ = fed(body)
    assert [one.id for one in items] == [1, 2]


def test_a_record_of_another_form_is_an_error():
    with pytest.raises(msgspec.ValidationError):
        fed(b'{"jobs": [{"id": "x"}, {"id": 2}]}')


def reply(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found.get("body", found)


class Slurmrestd:
    """Answers of files, by the last part of the path."""

    def __init__(self, parser: str) -> None:
        self.parser = parser
        self.answers: dict[str, dict[str, Any]] = {
            name: reply(FIXTURES / "parsers" / parser / f"{name}.json")
            for name in ("nodes", "jobs")
        }
        self.urls: list[str] = []

    async def __call__(
        self, url: str, method: str, headers: Any, body: bytes, fence: Any
    ) -> Answer:
        self.urls.append(url)
        if url.endswith("/openapi/v3"):
            found: Any = {"paths": {f"/slurm/{self.parser}/nodes/": {}}}
        else:
            found = self.answers[url.partition("?")[0].rstrip("/").rpartition("/")[2]]
        return Answer(200, "application/json", json.dumps(found).encode())


@pytest.mark.parametrize("parser", PARSERS)
async def test_records_of_each_parser_are_read(parser: str):
    server = Slurmrestd(parser)
    client = RecordsClient("http://rest", lambda: "token", exchange=server)
    nodes, jobs = await client.nodes(), await client.jobs()
    assert nodes is not None
    assert jobs is not None
    theirs = server.answers["nodes"]["nodes"][0]
    node = nodes.items[0]
    assert (node.name, node.cpus, node.memory) == (
        theirs["name"],
        theirs["cpus"],
        theirs["real_memory"],
    )
    assert node.states == frozenset(theirs["state"])
    job, wire = jobs.items[0], server.answers["jobs"]["jobs"][0]
    assert (job.id, job.state, job.partition) == (
        wire["job_id"],
        wire["job_state"][0],
        wire["partition"],
    )
    assert job.requested_tres == wire["tres_req_str"]
    # slurmctld has the user's name as the address where no address was given.
    assert job.mail == ""


async def test_a_list_that_did_not_change_is_none():
    server = Slurmrestd("v0.0.45")
    client = RecordsClient("http://rest", lambda: "token", exchange=server)
    server.answers["jobs"] = {"jobs": [], "errors": []}
    assert await client.jobs(5) is None
    assert server.urls[-1].endswith("?update_time=5")
    server.answers["nodes"] = {"errors": [{"error_number": 1900}]}
    assert await client.nodes(5) is None


async def test_a_reply_without_a_list_is_no_answer():
    server = Slurmrestd("v0.0.45")
    client = RecordsClient("http://rest", lambda: "token", exchange=server)
    server.answers["nodes"] = {"errors": []}
    with pytest.raises(BadReplyError):
        await client.nodes()
    server.answers["jobs"] = {"jobs": [{"job_id": "x"}], "errors": []}
    with pytest.raises(SlurmError, match="cannot be read"):
        await client.jobs()


def test_a_job_of_slurmdbd_has_the_fields_of_slurmctld_as_far_as_they_are_there():
    wire = {
        "job_id": 7,
        "state": {"current": ["RUNNING"], "reason": "None"},
        "association": {"user": "alice", "account": "team"},
        "nodes": "None assigned",
        "time": {"submission": 5, "start": 100, "end": 0, "limit": {"set": True, "number": 2}},
        "tres": {"requested": [{"type": "mem", "name": "", "count": 500}], "allocated": []},
        "required": {"CPUs": 3},
        "array": {"job_id": 6, "task_id": {"set": False}, "task": "1-5"},
    }
    found = msgspec.convert(wire, records.StoredJobWire).record()
    assert (found.user, found.account, found.nodes, found.end_time) == ("alice", "team", "", 220)
    assert (found.requested_tres, found.cpus, found.array_task) == ("mem=500M", 3, "1-5")
    assert (found.node_count, found.user_id, found.mail) == (None, "", "")
