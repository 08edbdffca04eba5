"""slurmrestd's calls, as far as Penstock uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from penstock.slurm.job_result import JobResult
from penstock.slurm.rest import wire
from penstock.slurm.rest.errors import BadReplyError, NotFoundError
from penstock.slurm.rest.http import Exchange, exchange, unfenced
from penstock.slurm.rest.job_results import JobReply, StoredJobReply
from penstock.slurm.rest.reservation import Reservation, ReservationsReply, WantedReservation
from penstock.slurm.rest.transport import SLURMDBD, TIMEOUT_S, Transport
from penstock.slurm.state import Job, Node
from penstock.slurm.versions import Version, of_parser

MOST_HELD = 1_000_000
"""Names of nodes that the jobs of one answer have together; jobs beyond that hold every node."""


class Slurmrestd:
    """Client of one slurmrestd, as one user.

    `token` is called for each request, so a rotated token takes effect at once. `on_call` gets the
    method and path of each. `fence` is called before each request that changes something, and once
    more right before it is sent; it raises to keep the request back, and the caller gets what it
    raises. No connection stays open between requests, so there is nothing to close.
    Every method raises a SlurmError when the answer is not a fact.
    """

    def __init__(
        self,
        base_url: str,
        token: Callable[[], str],
        *,
        timeout_s: float = TIMEOUT_S,
        on_call: Callable[[str, str], None] | None = None,
        exchange: Exchange = exchange,
        fence: Callable[[], None] = unfenced,
    ) -> None:
        self._http = Transport(base_url, token, timeout_s, on_call, exchange, fence)

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return self._http.base_url

    @property
    def parser(self) -> str | None:
        """The data parser in use, once the first request found it."""
        return self._http.parser

    def lacks(self, since: Version) -> str:
        """Why this slurmrestd has no call that came with a release; empty when it may have it."""
        parser = self.parser
        spoken = of_parser(parser)
        if spoken is None or spoken >= since:
            return ""
        return f"slurmrestd speaks {parser}, which has no call for it before Slurm {since}"

    async def nodes(self, update_time: int | None = None) -> wire.Listing[Node] | None:
        """All node records, or None when nothing changed since `update_time` (a `last_update`)."""
        reply = await self._http.ask(wire.NodesReply, "nodes/", _since(update_time))
        if reply is None:
            return _no_change(update_time)
        last_update = reply.last_update.value()
        if reply.nodes is None or not last_update:
            raise BadReplyError("slurmrestd's answer has no list of nodes")
        return wire.Listing(tuple(record.node() for record in reply.nodes), last_update)

    async def future_nodes(self) -> frozenset[str]:
        """Names of the records in state FUTURE, which `nodes` leaves out."""
        reply = await self._http.ask(wire.NodesReply, "nodes/", {"flags": "FUTURE"})
        records = reply.nodes if reply is not None else None
        if records is None:
            raise BadReplyError("slurmrestd's answer has no list of nodes")
        return frozenset(one.name for one in records if "FUTURE" in one.node().state)

    async def node(self, name: str) -> Node:
        """One node record. Raises NotFoundError when slurmctld has none of that name."""
        reply = await self._http.must(wire.NodesReply, _node(name))
        for record in reply.nodes or ():
            if record.name == name:
                return record.node()
        raise NotFoundError(f"slurmctld has no node record {name}")

    async def jobs(self, update_time: int | None = None) -> wire.Listing[Job] | None:
        """All jobs that still wait for or hold nodes, or None when nothing changed."""
        reply = await self._http.ask(wire.JobsReply, "jobs/", _since(update_time))
        if reply is None:
            return _no_change(update_time)
        last_update = reply.last_update.value()
        if update_time and not last_update:
            # "No change" is a 200 with an empty list here: it must not be read as "no jobs".
            return None
        if reply.jobs is None or not last_update:
            raise BadReplyError("slurmrestd's answer has no list of jobs")
        items: list[Job] = []
        room = MOST_HELD
        for record in reply.jobs:
            if not record.finished():
                items.append(record.job(room))
                room -= len(items[-1].nodes)
        return wire.Listing(tuple(items), last_update)

    async def job_results(self, job_id: int) -> tuple[JobResult, ...]:
        """One job, ended or not; of a job array each task that slurmctld has on its own.

        Raises NotFoundError once slurmctld has forgotten it.
        """
        reply = await self._http.must(JobReply, f"job/{job_id}")
        if not reply.jobs:
            raise NotFoundError(f"slurmctld has no job {job_id}")
        return tuple(one.result() for one in reply.jobs)

    async def stored_job_results(self, job_id: int) -> tuple[JobResult, ...]:
        """The same from slurmdbd's records; empty where it has none.

        Raises UnsupportedError without accounting.
        """
        reply = await self._http.must(StoredJobReply, f"job/{job_id}", api=SLURMDBD)
        return tuple(one.result() for one in reply.jobs or ())

    async def update_node(
        self,
        name: str,
        *,
        state: Sequence[str] = (),
        reason: str | None = None,
        comment: str | None = None,
        features: Sequence[str] | None = None,
        active_features: Sequence[str] | None = None,
        topology: str | None = None,
        weight: int | None = None,
        gres: str | None = None,
        extra: str | None = None,
    ) -> None:
        """Change what is given of one node record; `state` takes DRAIN, UNDRAIN, RESUME, DOWN...

        UNDRAIN and RESUME clear the reason, and the node reads NOT_RESPONDING until it answers
        slurmctld's next ping. Raises NotFoundError.
        """
        body: dict[str, Any] = {"state": list(state)} if state else {}
        optional = {
            "reason": reason,
            "comment": comment,
            "features": None if features is None else list(features),
            "features_act": None if active_features is None else list(active_features),
            "topology_str": topology,
            "weight": None if weight is None else {"set": True, "number": weight},
            "gres": gres,
            "extra": extra,
        }
        body.update({key: value for key, value in optional.items() if value is not None})
        await self._http.must(wire.Reply, _node(name), method="POST", body=body)

    async def delete_node(self, name: str) -> None:
        """Delete a dynamic node record. Raises NotFoundError; BusyError when jobs are on it."""
        await self._http.must(wire.Reply, _node(name), method="DELETE")

    async def new_node(self, conf: str) -> None:
        """Create a node record from slurm.conf words (`NodeName=... CPUs=...`); v0.0.45 only."""
        await self._http.must(wire.Reply, "new/node/", method="POST", body={"node_conf": conf})

    async def submit(self, script: str, **job: Any) -> int:
        """Submit a batch job described in slurmrestd's own field names; returns its id."""
        body = {"script": script, "job": job}
        reply = await self._http.must(wire.SubmitReply, "job/submit", method="POST", body=body)
        if reply.job_id is None:
            raise BadReplyError("slurmrestd took the job but gave no job id")
        return reply.job_id

    async def cancel(self, job_id: int) -> None:
        """Cancel a job; one that is gone already is no error."""
        await self._http.must(wire.Reply, f"job/{job_id}", method="DELETE")

    async def ping(self) -> tuple[wire.Ping, ...]:
        """Every slurmctld host in the order of slurm.conf, with whether it answers."""
        return (await self._http.must(wire.PingReply, "ping/")).pings or ()

    async def diag(self) -> wire.Diag:
        """Counters of slurmctld."""
        reply = await self._http.must(wire.DiagReply, "diag/")
        if reply.statistics is None:
            raise BadReplyError("slurmrestd's diag answer has no statistics")
        return reply.statistics

    async def clusters(self) -> tuple[wire.ClusterRecord, ...]:
        """The clusters in slurmdbd's records. Raises UnsupportedError without accounting."""
        reply = await self._http.must(wire.ClustersReply, "clusters/", api=SLURMDBD)
        if reply.clusters is None:
            raise BadReplyError("slurmrestd's answer has no list of clusters")
        return reply.clusters

    async def reconfigure(self) -> None:
        """Make slurmctld read its files again."""
        await self._http.must(wire.Reply, "reconfigure/")

    async def partitions(self) -> tuple[wire.Partition, ...]:
        """All partitions."""
        return (await self._http.must(wire.PartitionsReply, "partitions/")).partitions or ()

    async def partition(self, name: str) -> wire.Partition:
        """One partition. Raises NotFoundError (slurmrestd itself answers an empty list)."""
        reply = await self._http.must(wire.PartitionsReply, _partition(name))
        for found in reply.partitions or ():
            if found.name == name:
                return found
        raise NotFoundError(f"slurmctld has no partition {name}")

    async def update_partition(self, partition: dict[str, Any]) -> None:
        """Create or update one partition, in slurmrestd's own field names; v0.0.45 only."""
        await self._http.must(
            wire.Reply, "partitions/", method="POST", body={"partitions": [partition]}
        )

    async def delete_partition(self, name: str) -> None:
        """Delete one partition; v0.0.45 only. Raises NotFoundError."""
        await self._http.must(wire.Reply, _partition(name), method="DELETE")

    async def reservations(self) -> tuple[Reservation, ...]:
        """All reservations."""
        return (await self._http.must(ReservationsReply, "reservations/")).reservations or ()

    async def reservation(self, name: str) -> Reservation:
        """One reservation. Raises NotFoundError."""
        reply = await self._http.must(ReservationsReply, _reservation(name))
        for found in reply.reservations or ():
            if found.name == name:
                return found
        raise NotFoundError(f"slurmctld has no reservation {name}")

    async def update_reservation(self, wanted: WantedReservation) -> None:
        """Create a reservation, or change what is given of the one of that name."""
        await self._http.must(wire.Reply, "reservation", method="POST", body=wanted.body)

    async def delete_reservation(self, name: str) -> None:
        """Delete one reservation. Raises NotFoundError."""
        await self._http.must(wire.Reply, _reservation(name), method="DELETE")


def _since(update_time: int | None) -> dict[str, str] | None:
    return {"update_time": str(update_time)} if update_time else None


def _no_change(update_time: int | None) -> None:
    if not update_time:
        raise BadReplyError("slurmrestd answered 'no change' although everything was asked for")


def _node(name: str) -> str:
    return f"node/{quote(name, safe='')}"


def _partition(name: str) -> str:
    return f"partition/{quote(name, safe='')}"


def _reservation(name: str) -> str:
    return f"reservation/{quote(name, safe='')}"
