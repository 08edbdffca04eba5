"""The ways in which a slurmrestd misbehaves, for the stand-in and for the proxy."""

from __future__ import annotations

import enum
import json
from typing import Any, cast


class Fault(enum.Enum):
    """How requests are treated."""

    NONE = "pass"
    REFUSE = "refuse"
    """Connections are closed without an answer."""
    HANG = "hang"
    """Requests are read and never answered."""
    SLOW = "slow"
    """Requests are answered late."""
    ERROR_IN_200 = "error-in-200"
    NODES_FAIL = "nodes-fail"
    """An error for whoever asks for all nodes, while jobs are answered."""
    EMPTY_NODES = "empty-nodes"
    HALF_NODES = "half-nodes"
    HALF_BODY = "half-body"
    """JSON that stops in the middle."""
    CONTROLLER_DOWN = "502"
    """slurmctld is away: 502 with error 1800."""
    UNAVAILABLE = "503"
    """An answer of something in between that knows no Slurm."""
    EXPIRED = "expired"
    STANDBY = "standby"
    """A slurmctld that waits beside the first one answers: it knows nothing."""


def error(number: int, words: str, description: str = "", source: str = "test") -> dict[str, Any]:
    """A reply's body with one error."""
    entry = {
        "description": description or words,
        "error_number": number,
        "error": words,
        "source": source,
    }
    return {"errors": [entry], "warnings": []}


CONTROLLER_DOWN = error(1800, "Unable to contact slurm controller (connect failure)")
AUTHENTICATION = error(1007, "Protocol authentication error")
UNSPECIFIED = error(-1, "Unspecified error")
STANDBY = error(2027, "Slurm backup controller in standby mode")


def answer(fault: Fault) -> tuple[int, bytes, str] | None:
    """Status, body and content type that the fault gives instead of the real answer."""
    if fault is Fault.UNAVAILABLE:
        return 503, b"no healthy upstream", "text/plain"
    replies = {
        Fault.EXPIRED: (511, AUTHENTICATION),
        Fault.CONTROLLER_DOWN: (502, CONTROLLER_DOWN),
        Fault.ERROR_IN_200: (200, UNSPECIFIED),
        Fault.STANDBY: (500, STANDBY),
    }
    if fault not in replies:
        return None
    status, reply = replies[fault]
    return status, json.dumps(reply).encode(), "application/json"


def lacking(body: bytes, what: str, field: str) -> bytes:
    """A reply in which each record of the list `what` lacks a field, `a.b` for one within one."""
    reply: dict[str, Any] = json.loads(body)
    *outer, last = field.split(".")
    for record in cast("list[dict[str, Any]]", reply.get(what) or []):
        inner = record
        for name in outer:
            inner = cast("dict[str, Any]", inner.get(name) or {})
        inner.pop(last, None)
    return json.dumps(reply).encode()


def spoil(fault: Fault, path: str, body: bytes) -> bytes:
    """A good answer's body as the fault leaves it."""
    if not body:
        return body
    if fault is Fault.HALF_BODY:
        return body[: len(body) // 2]
    if fault is Fault.NODES_FAIL and path.rstrip("/").endswith("/nodes"):
        return json.dumps(UNSPECIFIED).encode()
    if fault in {Fault.EMPTY_NODES, Fault.HALF_NODES} and path.rstrip("/").endswith("/nodes"):
        reply: dict[str, Any] = json.loads(body)
        nodes = cast("list[Any]", reply.get("nodes") or [])
        reply["nodes"] = nodes[: len(nodes) // 2] if fault is Fault.HALF_NODES else []
        return json.dumps(reply).encode()
    return body
