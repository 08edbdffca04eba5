"""A slurmrestd that answers with records as large as real ones, in a process of its own.

`python -m bench.exporter.stand_in NODES JOBS` prints its port. Each answer is counted, and GET
/calls returns the counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "tests/fixtures/slurmrestd"
PARSER = "v0.0.45"
STARTED = 1795252143
_PARTITIONS = ("main", "gpu", "hidden")


def _number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def _node(like: dict[str, Any], at: int) -> bytes:
    node = copy.copy(like)
    drained = at % 50 == 0
    node |= {
        "name": f"worker-{at}",
        "state": ["IDLE", "DRAIN"] if drained else ["MIXED", "DYNAMIC_NORM"],
        "reason": "[node_problem] gpu_health: 7 of 8 GPUs" if drained else "",
        "instance_id": f"computeinstance-e00{at:08}",
        "address": f"10.{at // 62500}.{at // 250 % 250}.{at % 250}",
        "partitions": list(_PARTITIONS[:2]),
        "cpus": 128,
        "alloc_cpus": 96,
        "alloc_idle_cpus": 32,
        "real_memory": 1600000,
        "tres": "cpu=128,mem=1600000M,billing=128,gres/gpu=8",
        "gres": "gpu:nvidia_h100:8(S:0-1)",
        "gres_used": "gpu:nvidia_h100:6(IDX:0-5)",
    }
    return json.dumps(node, indent=1).encode()


def _job(like: dict[str, Any], at: int, nodes: int) -> bytes:
    job, user = copy.copy(like), f"user{at % 300}"
    running = at % 2 == 0
    job |= {
        "job_id": at + 1,
        "name": f"train-large-model-{at}",
        "account": f"team{at % 40}",
        "user_name": user,
        "user_id": 1000 + at % 300,
        "mail_user": user,
        "partition": _PARTITIONS[at % 3],
        "job_state": ["RUNNING"] if running else ["PENDING"],
        "state_reason": "None" if running else "Priority",
        "nodes": f"worker-{at // 2 % nodes}" if running else "",
        "submit_time": _number(STARTED + at),
        "start_time": _number(STARTED + at if running else 0),
        "standard_output": f"/home/{user}/runs/{at}/slurm-{at}.out",
        "standard_error": f"/home/{user}/runs/{at}/slurm-{at}.err",
        "tres_alloc_str": "cpu=16,mem=200000M,node=1,billing=16,gres/gpu=1" if running else "",
        "tres_req_str": "cpu=16,mem=200000M,node=1,billing=16,gres/gpu=1",
    }
    return json.dumps(job, indent=1).encode()


def _list(name: str, records: Iterator[bytes], update: int) -> bytes:
    last = json.dumps({"last_update": _number(update), "meta": {}, "errors": [], "warnings": []})
    return b'{"' + name.encode() + b'": [' + b",".join(records) + b"], " + last[1:].encode()


def _first(name: str) -> dict[str, Any]:
    """The first record of a real answer."""
    found = json.loads((FIXTURES / "parsers" / PARSER / f"{name}.json").read_text())
    record: dict[str, Any] = found.get("body", found)[name][0]
    return record


class StandIn:
    """The answers, made once."""

    def __init__(self, nodes: int, jobs: int) -> None:
        node, job = _first("nodes"), _first("jobs")
        diag = {
            "statistics": {
                "server_thread_count": 3,
                "rpcs_by_message_type": [
                    {"message_type": f"REQUEST_{at}", "count": 7, "total_time": 9}
                    for at in range(60)
                ],
                "rpcs_by_user": [
                    {"user": f"user{at}", "user_id": at, "count": 7, "total_time": 9}
                    for at in range(300)
                ],
            }
        }
        openapi: dict[str, Any] = {
            "info": {"version": "26.05.5"},
            "paths": {f"/slurm/{PARSER}/nodes/": {}},
        }
        self.calls: Counter[str] = Counter()
        self._answers = {
            "/openapi/v3": json.dumps(openapi).encode(),
            f"/slurm/{PARSER}/nodes/": _list("nodes", (_node(node, i) for i in range(nodes)), 7),
            f"/slurm/{PARSER}/jobs/": _list("jobs", (_job(job, i, nodes) for i in range(jobs)), 7),
            f"/slurm/{PARSER}/diag/": json.dumps(diag).encode(),
        }

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request: lists always as a whole, as of a cluster in which all moves."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1].partition("?")[0]
        if path == "/calls":
            body = json.dumps(self.calls).encode()
        else:
            self.calls[path] += 1
            body = self._answers[path]
        status = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(f"{status}\r\n\r\n".encode())
        writer.write(body)
        # The exporter may have ended meanwhile.
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


async def main() -> None:
    """Serve until the process is ended."""
    stand_in = StandIn(int(sys.argv[1]), int(sys.argv[2]))
    server = await asyncio.start_server(stand_in.answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
