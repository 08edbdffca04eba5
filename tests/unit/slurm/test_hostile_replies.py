"""What any user of Slurm can put into slurmrestd's answers costs nobody the view of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from penstock.decide.observed.slurm_view import SlurmSnapshot
from penstock.slurm.known import Known
from penstock.slurm.mirror.snapshot import Snapshot
from penstock.slurm.rest import BadReplyError, Slurmrestd
from penstock.slurm.rest.http import Answer
from penstock.slurm.state import Node

OPENAPI = b'{"info":{"x-slurm":{"data_parsers":[{"plugin":"data_parser/v0.0.45"}]}}}'
TIME = b'"last_update":{"set":true,"number":9}'


def says(body: bytes) -> Slurmrestd:
    """A slurmrestd that answers everything with these bytes."""

    async def exchange(
        url: str,
        method: str,
        headers: Mapping[str, str],
        data: bytes,
        fence: Callable[[], None],
        /,
    ) -> Answer:
        del method, headers, data, fence
        known = OPENAPI if url.endswith("/openapi/v3") else body
        return Answer(200, "application/json", known)

    return Slurmrestd("http://rest", lambda: "t", exchange=exchange)


def job(number: int, nodes: bytes, name: bytes = b"a", user: bytes = b"u") -> bytes:
    return (
        b'{"job_id":%d,"job_state":["RUNNING"],"nodes":"%s","name":"%s","user_name":"%s",'
        b'"partition":"p","start_time":{},"time_limit":{}}' % (number, nodes, name, user)
    )


def jobs(*records: bytes) -> bytes:
    return b'{"jobs":[' + b",".join(records) + b"]," + TIME + b"}"


def node(name: bytes, reason: bytes = b"") -> bytes:
    return (
        b'{"name":"%s","state":["IDLE"],"reason":"%s","reason_set_by_user":"",'
        b'"reason_changed_at":{},"comment":"","features":[],"active_features":[],"partitions":[],'
        b'"address":"","hostname":"","weight":1,"gres":"","gres_used":"","boot_time":{},'
        b'"slurmd_start_time":{}}' % (name, reason)
    )


GOOD = job(2, b"n[1-2]")


async def test_bytes_that_are_not_utf8_in_a_job_hide_no_other_job():
    bad = job(1, b"n3", b"\xff", b"\xc3")
    listing = await says(jobs(bad, GOOD)).jobs()
    assert listing is not None
    assert [(job.id, job.nodes) for job in listing.items] == [(1, ("n3",)), (2, ("n1", "n2"))]


async def test_bytes_that_are_not_utf8_in_a_node_hide_no_other_node():
    body = b'{"nodes":[%s,%s],' % (node(b"a\xff", b"\xfe"), node(b"b")) + TIME + b"}"
    listing = await says(body).nodes()
    assert listing is not None
    assert [node.name for node in listing.items][1] == "b"


@pytest.mark.parametrize(
    "nodes", [b"c-[" + b"9" * 5_000 + b"]", b"n[1-", b"n[1-99999999]", b"n\xff1"]
)
async def test_a_job_whose_nodes_cannot_be_read_uses_every_node(nodes: bytes):
    bad = job(1, nodes)
    listing = await says(jobs(bad, GOOD)).jobs()
    assert listing is not None
    known = Known({"n1": Node("n1"), "n9": Node("n9")}, 0.0)
    held = Known(listing.items, 0.0)
    view = SlurmSnapshot.of(known, held)
    for name, ids in (("n1", [1, 2]), ("n9", [1]), ("unknown", [1])):
        assert [job.id for job in view.jobs(name) or ()] == ids
        on = Snapshot(known, held).jobs_on(name)
        assert isinstance(on, Known)
        assert [job.id for job in on.value] == ids


@pytest.mark.parametrize(
    "body", [jobs(b"[" * 100_000), b"{" * 10, jobs(b'{"job_id":' + b"9" * 10_000 + b"}")]
)
async def test_an_answer_that_cannot_be_read_is_no_fact_and_gives_the_reason(body: bytes):
    with pytest.raises(BadReplyError, match="cannot be read") as caught:
        await says(body).jobs()
    assert len(str(caught.value)) < 500
