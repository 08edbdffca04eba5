"""What slurmrestd answers about a SimulatedSlurmctld, without any HTTP.

The answers have the shapes and statuses that Slurm 26.05's slurmrestd gave when it was asked: 304
for unchanged nodes, an empty 200 for unchanged jobs, 511 for a bad token, a 200 with an error of
number 0 for an unknown node. Fields and calls that an older data parser lacks are left out, as
slurmrestd 24.11.5 and 26.05.5 left them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from penstock.simulation import faults
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import (
    INVALID_JOB,
    SimulatedJob,
    SimulatedSlurmctld,
    SimulatedSlurmNode,
    SlurmctldError,
)
from penstock.slurm import hostlist
from penstock.slurm.auth import jwt
from penstock.slurm.rest.http import Answer
from penstock.slurm.versions import (
    PARTITION_CALLS_SINCE,
    PROBES_SINCE,
    RESERVATION_CALLS_SINCE,
    TOPOLOGY_SINCE,
    Version,
    of_parser,
)

JSON = "application/json"
TEXT = "text/plain"
NO_ENDPOINT = Answer(404, TEXT, b"Unable to find requested URL endpoint.")
_CALLS_SINCE = {
    ("POST", "partitions"): PARTITION_CALLS_SINCE,
    ("DELETE", "partition"): PARTITION_CALLS_SINCE,
    ("POST", "reservation"): RESERVATION_CALLS_SINCE,
    ("DELETE", "reservation"): RESERVATION_CALLS_SINCE,
}
USER_HEADER = "X-SLURM-USER-TOKEN"


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request; `path` as it came, quoted, without its query."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    token: str = ""
    body: bytes = b""


class SlurmAnswers:
    """Answers requests from the records of `slurmctld`.

    With `key`, tokens are verified with it; without, any token will do. `calls` has every request
    as `METHOD path?query`. Set `fault` to make the answers wrong. The transport simulates refused
    connections, and answers that hang or are slow.
    """

    def __init__(
        self,
        slurmctld: SimulatedSlurmctld | None = None,
        *,
        key: bytes | None = None,
        parsers: Iterable[str] = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
    ) -> None:
        self.slurmctld = slurmctld or SimulatedSlurmctld()
        self.parsers = tuple(parsers)
        self.fault = Fault.NONE
        self.calls: list[str] = []
        self.key = key
        self._signed = (b"", "")
        self._claims: dict[str, Any] = {}
        self._handlers: dict[tuple[str, str, bool], Callable[[RestRequest, str], Answer]] = {
            ("GET", "nodes", False): self._get_nodes,
            ("GET", "node", True): self._get_node,
            ("POST", "node", True): self._post_node,
            ("POST", "new", True): self._new_node,
            ("DELETE", "node", True): self._delete_node,
            ("GET", "jobs", False): self._get_jobs,
            ("GET", "job", True): self._get_job,
            ("DELETE", "job", True): self._delete_job,
            ("GET", "ping", False): self._ping,
            ("GET", "clusters", False): self._get_clusters,
            ("GET", "diag", False): self._diag,
            ("GET", "reconfigure", False): self._reconfigure,
            ("GET", "partitions", False): self._get_partitions,
            ("POST", "partitions", False): self._post_partitions,
            ("GET", "partition", True): self._get_partitions,
            ("DELETE", "partition", True): self._delete_partition,
            ("GET", "reservations", False): self._get_reservations,
            ("GET", "reservation", True): self._get_reservations,
            ("POST", "reservation", False): self._post_reservation,
            ("DELETE", "reservation", True): self._delete_reservation,
        }

    def answer(self, asked: RestRequest) -> Answer:
        """The answer, spoilt by `fault`."""
        parts = asked.path.strip("/").split("/")
        if not asked.token:
            return Answer(401, TEXT, b"Authentication failure")
        if parts == ["openapi", "v3"] and asked.method == "GET":
            return self._openapi()
        of_slurmdbd = parts[:1] == ["slurmdb"] and self.slurmctld.accounted
        if parts[0] != "slurm" and not of_slurmdbd:
            return NO_ENDPOINT
        if len(parts) not in {3, 4} or parts[1] not in self.offered:
            return NO_ENDPOINT
        fault = self.fault if self._verified(asked.token) else Fault.EXPIRED
        if (instead := faults.answer(fault)) is not None:
            status, body, content_type = instead
            return Answer(status, content_type, body)
        self.slurmctld.pass_time()
        handler = self._handlers.get((asked.method, parts[2], len(parts) == 4))
        since = _CALLS_SINCE.get((asked.method, parts[2]))
        if handler is None or (since is not None and (of_parser(parts[1]) or since) < since):
            return NO_ENDPOINT
        try:
            found = handler(asked, unquote(parts[-1]))
        except SlurmctldError as refused:
            found = _json(faults.error(refused.number, refused.words), 422)
        body = faults.spoil(self.fault, asked.path, found.body)
        if self.slurmctld.lacks and body:
            body = faults.lacking(body, *self.slurmctld.lacks)
        return Answer(found.status, found.content_type, body)

    @property
    def offered(self) -> tuple[str, ...]:
        """The data parsers of the slurmrestd that runs now."""
        newest = self.slurmctld.newest_parser
        return tuple(one for one in self.parsers if not newest or one <= newest)

    @property
    def release(self) -> str:
        """The release that slurmrestd reports: that of its best parser."""
        version = of_parser(max(self.offered, default=""))
        return f"{version}.5" if version is not None else "26.05.5"

    def _verified(self, token: str) -> bool:
        # slurmctld looks at `exp` alone: what is not valid yet by `nbf` is taken.
        if self.key is None:
            return True
        try:
            if (self.key, token) != self._signed:
                self._claims = jwt.signed_claims(self.key, token)
                self._signed = self.key, token
        except jwt.JwtError:
            return False
        return self.slurmctld.clock() < self._claims["exp"]

    def _openapi(self) -> Answer:
        if self.release < str(PROBES_SINCE):
            version = f"Slurm-{self.release}&openapi/slurmctld"
            paths: dict[str, Any] = {f"/slurm/{parser}/nodes/": {} for parser in self.offered}
            return _json({"info": {"version": version}, "paths": paths})
        parsers = [{"plugin": parser, "flags": ["NONE"]} for parser in self.offered]
        return _json({"info": {"x-slurm": {"data_parsers": parsers, "release": self.release}}})

    def _unchanged(self, asked: RestRequest) -> bool:
        since = int(asked.query.get("update_time", "0"))
        return since - 1 >= self.slurmctld.changed

    def _now(self) -> dict[str, Any]:
        return _number(int(self.slurmctld.clock()))

    def _get_nodes(self, asked: RestRequest, _: str) -> Answer:
        if self._unchanged(asked):
            return Answer(304, TEXT, b"")
        shown = list(self.slurmctld.nodes.values())
        if asked.query.get("flags") == "FUTURE":
            shown += self.slurmctld.future.values()
        nodes = [self._node(node, asked) for node in shown]
        return self._reply(nodes=nodes, last_update=self._now())

    def _get_node(self, asked: RestRequest, name: str) -> Answer:
        node = self.slurmctld.nodes.get(name)
        if node is None:
            why = f"Failure to query node {name}"
            return _json(faults.error(0, "No error", why, "_dump_nodes"))
        return self._reply(nodes=[self._node(node, asked)], last_update=self._now())

    def _post_node(self, asked: RestRequest, name: str) -> Answer:
        values: dict[str, Any] = msgspec.json.decode(asked.body)
        if not _has(asked, TOPOLOGY_SINCE):
            # What a parser does not have is left out with a warning.
            values.pop("topology_str", None)
        state: str | list[str] = values.pop("state", [])
        states = [state] if isinstance(state, str) else state
        self.slurmctld.update_nodes(name, states, values)
        return self._reply()

    def _new_node(self, asked: RestRequest, _: str) -> Answer:
        if not asked.path.rstrip("/").endswith("/new/node") or _parser(asked) < "v0.0.44":
            return NO_ENDPOINT
        self.slurmctld.new_node(msgspec.json.decode(asked.body)["node_conf"])
        return self._reply()

    def _delete_node(self, _: RestRequest, name: str) -> Answer:
        self.slurmctld.delete_nodes(name)
        return self._reply()

    def _get_jobs(self, asked: RestRequest, _: str) -> Answer:
        if self._unchanged(asked):
            return self._reply(jobs=[], last_update=_number(0))
        jobs = [_job(job) for job in self.slurmctld.jobs.values()]
        return self._reply(jobs=jobs, last_update=self._now())

    def _get_job(self, asked: RestRequest, job_id: str) -> Answer:
        number, ctld = int(job_id), self.slurmctld
        if asked.path.strip("/").startswith("slurmdb"):
            found = ctld.jobs.get(number) or ctld.forgotten.get(number)
            return self._reply(jobs=[] if found is None else [_stored_job(found)])
        if number not in ctld.jobs:
            raise SlurmctldError(*INVALID_JOB)
        return self._reply(jobs=[_job(ctld.jobs[number])], last_update=self._now())

    def _delete_job(self, _: RestRequest, job_id: str) -> Answer:
        if int(job_id) in self.slurmctld.jobs:
            self.slurmctld.cancel(int(job_id))
        return self._reply(status=[])

    def _ping(self, asked: RestRequest, _: str) -> Answer:
        pings: list[dict[str, Any]] = []
        for number, host in enumerate(self.slurmctld.hosts):
            up = self.slurmctld.responding and host not in self.slurmctld.deaf
            ping: dict[str, Any] = {"hostname": host, "latency": 500, "primary": number == 0}
            ping["responding"] = up
            if "/v0.0.45/" not in asked.path:
                ping["pinged"] = "UP" if up else "DOWN"
            pings.append(ping)
        return self._reply(pings=pings)

    def _get_clusters(self, _: RestRequest, __: str) -> Answer:
        ctld = self.slurmctld
        if not ctld.slurmdbd():
            raise SlurmctldError(7000, "Unable to connect to database")
        there = {"host": "10.0.0.1", "port": 6817} if ctld.registered else {"host": "", "port": 0}
        return self._reply(clusters=[{"name": ctld.cluster_name, "controller": there}])

    def _diag(self, _: RestRequest, __: str) -> Answer:
        running = sum("RUNNING" in job.state for job in self.slurmctld.jobs.values())
        statistics = {
            "server_thread_count": 1,
            "jobs_running": running,
            "req_time": self._now(),
            "req_time_start": _number(self.slurmctld.began),
        }
        return self._reply(statistics=statistics)

    def _reconfigure(self, _: RestRequest, __: str) -> Answer:
        self.slurmctld.reconfigured += 1
        self.slurmctld.rereads()
        return self._reply()

    def _get_partitions(self, asked: RestRequest, name: str) -> Answer:
        found = [
            _partition(p, asked)
            for n, p in self.slurmctld.partitions.items()
            if name in {"partitions", n}
        ]
        return self._reply(partitions=found, last_update=self._now())

    def _post_partitions(self, asked: RestRequest, _: str) -> Answer:
        body: dict[str, Any] = msgspec.json.decode(asked.body)
        for partition in body["partitions"]:
            self.slurmctld.update_partition(partition)
        return self._reply()

    def _delete_partition(self, _: RestRequest, name: str) -> Answer:
        self.slurmctld.delete_partition(name)
        return self._reply()

    def _get_reservations(self, _: RestRequest, name: str) -> Answer:
        found = [r for n, r in self.slurmctld.reservations.items() if name in {"reservations", n}]
        return self._reply(reservations=found, last_update=self._now())

    def _post_reservation(self, asked: RestRequest, _: str) -> Answer:
        self.slurmctld.update_reservation(msgspec.json.decode(asked.body))
        return self._reply()

    def _delete_reservation(self, _: RestRequest, name: str) -> Answer:
        self.slurmctld.delete_reservation(name)
        return self._reply()

    def _reply(self, **content: Any) -> Answer:
        meta = {"slurm": {"release": self.release}}
        return _json({**content, "meta": meta, "errors": [], "warnings": []})

    def _node(self, node: SimulatedSlurmNode, asked: RestRequest | None = None) -> dict[str, Any]:
        placed = asked is None or _has(asked, TOPOLOGY_SINCE)
        topology = {"topology": node.topology} if placed else {}
        return topology | {
            "name": node.name,
            "state": self.slurmctld.states(node),
            "reason": node.reason,
            "reason_set_by_user": node.reason_user,
            "reason_changed_at": _number(node.reason_since or None),
            "comment": node.comment,
            "features": node.features,
            "active_features": node.active_features,
            "partitions": node.partitions,
            "address": node.address,
            "hostname": node.name,
            "weight": node.weight,
            "gres": node.gres,
            "gres_used": node.gres_used,
            "boot_time": _number(node.started),
            "slurmd_start_time": _number(node.started),
        }


def _parser(asked: RestRequest) -> str:
    return asked.path.strip("/").split("/")[1]


def _has(asked: RestRequest, since: Version) -> bool:
    """Whether the parser of a request has what came with a release."""
    version = of_parser(_parser(asked))
    return version is None or version >= since


def _partition(record: dict[str, Any], asked: RestRequest) -> dict[str, Any]:
    """A partition as the parser of a request shows it."""
    if _has(asked, PARTITION_CALLS_SINCE):
        return record
    shown = {key: value for key, value in record.items() if key not in ("flags", "preempt_mode")}
    if not _has(asked, TOPOLOGY_SINCE):
        del shown["topology"]
    return shown | {
        "cpus": {**record["cpus"], "task_binding": 0},
        "partition": {"state": record["partition"]["state"]},
    }


def _job(job: SimulatedJob) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "job_state": sorted(job.state),
        "nodes": hostlist.compress(job.nodes),
        "start_time": _number(job.start),
        "submit_time": _number(job.start),
        "end_time": _number(job.end),
        "state_reason": job.reason,
        "time_limit": _number(job.time_limit),
        "name": job.name,
        "user_name": job.user,
        "partition": job.partition,
    }


def _stored_job(job: SimulatedJob) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "state": {"current": sorted(job.state), "reason": job.reason},
        "nodes": hostlist.compress(job.nodes) or "None assigned",
        "name": job.name,
        "time": {"submission": job.start, "end": job.end},
    }


def _number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": value is None, "number": value or 0}


def _json(content: dict[str, Any], status: int = 200) -> Answer:
    return Answer(status, JSON, msgspec.json.encode(content))
