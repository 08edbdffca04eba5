"""Metrics of slurmctld by the published names. Calls that never came have no series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.catalog import exporter_metric as of
from penstock.controllers.exporter.family import Family, single
from penstock.controllers.exporter.snapshot import Snapshot

_MICROSECONDS: Final = 1_000_000


def families(taken: Snapshot) -> Iterator[Family]:
    """Counters of slurmctld; none before they were asked for."""
    found = taken.counters
    if found is None:
        return
    kinds, users = found.rpcs_by_message_type or (), found.rpcs_by_user or ()
    threads = found.server_thread_count
    yield single(of.SERVER_THREADS, [] if threads is None else [((), threads)])
    yield single(of.RPC_CALLS, (((one.message_type,), one.count) for one in kinds if one.count))
    yield single(
        of.RPC_SECONDS,
        (((one.message_type,), one.total_time / _MICROSECONDS) for one in kinds if one.total_time),
    )
    yield single(
        of.RPC_USER_CALLS,
        (((one.user, str(one.user_id)), one.count) for one in users if one.count),
    )
    yield single(
        of.RPC_USER_SECONDS,
        (
            ((one.user, str(one.user_id)), one.total_time / _MICROSECONDS)
            for one in users
            if one.total_time
        ),
    )
