"""The calls of slurmrestd that metrics are computed from.

Long lists are decoded while they arrive (`array_body`). A list that did not change is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from penstock.slurm.rest import http, records
from penstock.slurm.rest.array_body import ArrayBody
from penstock.slurm.rest.errors import BadReplyError
from penstock.slurm.rest.http import Answer, Exchange
from penstock.slurm.rest.transport import SLURMCTLD, SLURMDBD, Transport
from penstock.slurm.rest.wire import Listing, Number, Reply

T = TypeVar("T")
R = TypeVar("R", bound=Reply)

TIMEOUT_S = 60.0
"""slurmrestd needs seconds for the jobs of a large cluster."""
_PIECE = 65536


@dataclass(frozen=True, slots=True)
class _Kind(Generic[T, R]):
    """A list, its records on the wire, and the whole reply."""

    member: str
    wire: type[Any]
    reply: type[R]


class _ListTransport(Generic[T]):
    """A transport for one list, whose records are decoded as they arrive.

    `take` follows the answer without another `await` between, so calls may overlap.
    """

    def __init__(
        self,
        kind: _Kind[T, Any],
        base_url: str,
        token: Callable[[], str],
        on_call: Callable[[str, str], None] | None,
        exchange: Exchange | None,
    ) -> None:
        self._kind = kind
        self._plain = exchange
        self._items: list[T] = []
        self.transport = Transport(base_url, token, TIMEOUT_S, on_call, self._exchange)

    def take(self, rest: tuple[Any, ...] | None) -> tuple[T, ...]:
        """The records; `rest` are those that came with the reply because it began otherwise."""
        found, self._items = self._items, []
        return (*found, *(one.record() for one in rest or ()))

    async def _exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None],
        /,
    ) -> Answer:
        taken: ArrayBody[T] = ArrayBody(
            self._kind.member, self._kind.wire, lambda one: cast("T", one.record())
        )
        try:
            if self._plain is None:
                answer = await http.exchange(
                    url, method, headers, body, fence, limit=LIMIT, feed=taken.feed
                )
            else:
                answer = await self._plain(url, method, headers, body, fence)
                for at in range(0, len(answer.body), _PIECE):
                    taken.feed(answer.body[at : at + _PIECE])
            rest = taken.finish()
        except (ValueError, RecursionError) as error:
            if isinstance(error, http.HttpFormatError):
                raise
            raise http.HttpFormatError(str(error)[:300]) from error
        self._items = taken.items
        return Answer(answer.status, answer.content_type, rest)


LARGEST = 2**31
"""Bytes of one reply. They are not kept, so this only ends one that never ends."""
LIMIT = http.SizeLimit(lambda: LARGEST, LARGEST)

_NODES: _Kind[records.NodeRecord, records.NodeRecords] = _Kind(
    "nodes", records.NodeWire, records.NodeRecords
)
_JOBS: _Kind[records.JobRecord, records.JobRecords] = _Kind(
    "jobs", records.JobWire, records.JobRecords
)
_STORED: _Kind[records.JobRecord, records.StoredJobRecords] = _Kind(
    "jobs", records.StoredJobWire, records.StoredJobRecords
)


class RecordsClient:
    """Client of one slurmrestd. Each method raises SlurmError.

    `on_call` gets method and path of each request.
    """

    def __init__(
        self,
        base_url: str,
        token: Callable[[], str],
        *,
        on_call: Callable[[str, str], None] | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._nodes = _ListTransport(_NODES, base_url, token, on_call, exchange)
        self._jobs = _ListTransport(_JOBS, base_url, token, on_call, exchange)
        self._stored = _ListTransport(_STORED, base_url, token, on_call, exchange)
        self._other = Transport(base_url, token, TIMEOUT_S, on_call, exchange or http.exchange)

    async def nodes(self, since: int | None = None) -> Listing[records.NodeRecord] | None:
        """All nodes; None when nothing changed since `since`, a `last_update`."""
        reply = await self._nodes.transport.ask(records.NodeRecords, "nodes/", _since(since))
        if reply is None:
            return None
        found = self._nodes.take(reply.nodes)
        return Listing(found, _update_time(reply.last_update, "nodes"))

    async def jobs(self, since: int | None = None) -> Listing[records.JobRecord] | None:
        """All jobs, finished ones too; None when nothing changed since `since`."""
        reply = await self._jobs.transport.ask(records.JobRecords, "jobs/", _since(since))
        if reply is None or (since and not reply.last_update.value()):
            # "No change" may be a 200 with an empty list.
            return None
        found = self._jobs.take(reply.jobs)
        return Listing(found, _update_time(reply.last_update, "jobs"))

    async def stored_jobs(self, begin: int, end: int) -> tuple[records.JobRecord, ...]:
        """Jobs in slurmdbd that were not finished at `begin`, up to `end`, Unix seconds."""
        params = {"start_time": f"uts{begin}", "end_time": f"uts{end}", "skip_steps": "true"}
        reply = await self._stored.transport.ask(
            records.StoredJobRecords, "jobs/", params, api=SLURMDBD
        )
        return () if reply is None else self._stored.take(reply.jobs)

    async def counters(self) -> records.Counters:
        """Counters of slurmctld."""
        reply = await self._other.must(records.CountersReply, "diag/", api=SLURMCTLD)
        if reply.statistics is None:
            raise BadReplyError("slurmrestd's diag answer has no statistics")
        return reply.statistics


def _since(update_time: int | None) -> dict[str, str] | None:
    return {"update_time": str(update_time)} if update_time else None


def _update_time(number: Number, name: str) -> int:
    found = number.value()
    if not found:
        raise BadReplyError(f"slurmrestd's answer has no list of {name}")
    return found
