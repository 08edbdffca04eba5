"""Records of nodes and jobs, and counters of slurmctld, as far as metrics show them.

They are far more than decisions read (`slurm.state`), and finished jobs are among them, so the
mirror of the operator has none of this. Fields that a data parser lacks are None: their metrics are
left out. Source: slurmrestd OpenAPI, v0.0.42 to v0.0.45.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from penstock.slurm.rest.wire import Number, Reply, Strings, Wire

_MINUTE: Final = 60
_UNALLOCATED: Final = frozenset({"", "None assigned", "(null)"})
"""Nodes of a job that has none yet: slurmctld's spelling, and two of slurmdbd."""


class NodeRecord(Struct, frozen=True, gc=False):
    """One Slurm node. Memory is in MiB."""

    name: str
    states: frozenset[str]
    instance_id: str = ""
    reason: str = ""
    reservation: str = ""
    address: str = ""
    comment: str = ""
    partitions: Strings = ()
    tres: str = ""
    gres: str = ""
    gres_used: str = ""
    cpus: int | None = None
    allocated_cpus: int | None = None
    idle_cpus: int | None = None
    effective_cpus: int | None = None
    memory: int | None = None
    allocated_memory: int | None = None
    free_memory: int | None = None
    specialized_memory: int | None = None


class JobRecord(Struct, frozen=True, gc=False):
    """One job, finished or not. Times are Unix seconds, 0 without one; memory is in MiB."""

    id: int
    states: Strings
    """The base state first, then flags such as COMPLETING."""
    reason: str = ""
    partition: str = ""
    name: str = ""
    user: str = ""
    user_id: str = ""
    mail: str = ""
    account: str = ""
    standard_error: str = ""
    standard_output: str = ""
    array_job: str = ""
    array_task: str = ""
    submit_time: int = 0
    start_time: int = 0
    end_time: int = 0
    allocated_tres: str = ""
    requested_tres: str = ""
    cpus: int | None = None
    memory_per_node: int | None = None
    node_count: int | None = None
    nodes: str = ""
    """A host list; empty while no node is allocated."""

    @property
    def state(self) -> str:
        """The base state, such as RUNNING."""
        return self.states[0] if self.states else ""


class NodeWire(Wire, frozen=True):
    """One node of `GET nodes/`."""

    name: str
    state: Strings
    instance_id: str = ""
    reason: str = ""
    reservation: str = ""
    address: str = ""
    comment: str = ""
    partitions: Strings | None = None
    tres: str = ""
    gres: str = ""
    gres_used: str = ""
    cpus: int | None = None
    alloc_cpus: int | None = None
    alloc_idle_cpus: int | None = None
    effective_cpus: int | None = None
    real_memory: int | None = None
    alloc_memory: int | None = None
    free_mem: Number | None = None
    specialized_memory: int | None = None

    def record(self) -> NodeRecord:
        """The record that metrics are computed from."""
        return NodeRecord(
            name=self.name,
            states=frozenset(map(sys.intern, self.state)),
            instance_id=self.instance_id,
            reason=self.reason,
            reservation=self.reservation,
            address=self.address,
            comment=self.comment,
            partitions=_interned(self.partitions or ()),
            tres=sys.intern(self.tres),
            gres=sys.intern(self.gres),
            gres_used=sys.intern(self.gres_used),
            cpus=self.cpus,
            allocated_cpus=self.alloc_cpus,
            idle_cpus=self.alloc_idle_cpus,
            effective_cpus=self.effective_cpus,
            memory=self.real_memory,
            allocated_memory=self.alloc_memory,
            free_memory=_value(self.free_mem),
            specialized_memory=self.specialized_memory,
        )


class JobWire(Wire, frozen=True):
    """One job of slurmctld, of `GET jobs/`."""

    job_id: int
    job_state: Strings
    state_reason: str = ""
    partition: str = ""
    name: str = ""
    user_name: str | None = None
    group_name: str = ""
    user_id: int | None = None
    mail_user: str = ""
    account: str = ""
    standard_error: str = ""
    standard_output: str = ""
    array_job_id: Number | None = None
    array_task_id: Number | None = None
    array_task_string: str = ""
    submit_time: Number = Number()
    start_time: Number = Number()
    end_time: Number = Number()
    tres_alloc_str: str = ""
    tres_req_str: str = ""
    cpus: Number | None = None
    memory_per_node: Number | None = None
    node_count: Number | None = None
    nodes: str = ""

    def record(self) -> JobRecord:
        """The record that metrics are computed from."""
        user = self.group_name if self.user_name is None else self.user_name
        return JobRecord(
            id=self.job_id,
            states=_interned(self.job_state),
            reason=sys.intern(self.state_reason),
            partition=sys.intern(self.partition),
            name=self.name,
            user=sys.intern(user),
            user_id="" if self.user_id is None else sys.intern(str(self.user_id)),
            # slurmctld has the name of the user where no address was given.
            mail="" if not user or self.mail_user == user else self.mail_user,
            account=sys.intern(self.account),
            standard_error=self.standard_error,
            standard_output=self.standard_output,
            array_job=_text(self.array_job_id),
            array_task=_text(self.array_task_id) or self.array_task_string,
            submit_time=_value(self.submit_time) or 0,
            start_time=_value(self.start_time) or 0,
            end_time=_value(self.end_time) or 0,
            allocated_tres=sys.intern(self.tres_alloc_str),
            requested_tres=sys.intern(self.tres_req_str),
            cpus=_value(self.cpus),
            memory_per_node=_value(self.memory_per_node),
            node_count=_value(self.node_count),
            nodes=_nodes(self.nodes),
        )


class StoredState(Wire, frozen=True):
    """State of a job in slurmdbd."""

    current: Strings | None = None
    reason: str = ""


class StoredTimes(Wire, frozen=True):
    """Times of a job in slurmdbd; `limit` is in minutes."""

    submission: int = 0
    start: int = 0
    end: int = 0
    limit: Number | None = None


class StoredArray(Wire, frozen=True):
    """The array that a job in slurmdbd belongs to."""

    job_id: int | None = None
    task_id: Number | None = None
    task: str | None = None


class StoredTres(Wire, frozen=True):
    """An amount of one resource."""

    type: str = ""
    name: str = ""
    count: int | None = None


class StoredTresLists(Wire, frozen=True):
    """Resources of a job in slurmdbd."""

    allocated: tuple[StoredTres, ...] | None = None
    requested: tuple[StoredTres, ...] | None = None


class StoredAssociation(Wire, frozen=True):
    """Whose job it is."""

    user: str = ""
    account: str = ""


class StoredRequirements(Wire, frozen=True, rename={"cpus": "CPUs"}):
    """What a job in slurmdbd asks for."""

    cpus: int | None = None
    memory_per_node: Number | None = None


class StoredJobWire(Wire, frozen=True):
    """One job of slurmdbd, of `GET jobs/` in its part of the API."""

    job_id: int
    state: StoredState = StoredState()
    partition: str = ""
    name: str = ""
    user: str | None = None
    account: str = ""
    association: StoredAssociation = StoredAssociation()
    stderr: str = ""
    stdout: str = ""
    stderr_expanded: str | None = None
    stdout_expanded: str | None = None
    nodes: str = ""
    allocation_nodes: int = 0
    array: StoredArray = StoredArray()
    time: StoredTimes = StoredTimes()
    tres: StoredTresLists = StoredTresLists()
    required: StoredRequirements = StoredRequirements()

    def record(self) -> JobRecord:
        """The record that metrics are computed from; slurmdbd has no user id and no address."""
        return JobRecord(
            id=self.job_id,
            states=_interned(self.state.current or ()),
            reason=sys.intern(self.state.reason),
            partition=sys.intern(self.partition),
            name=self.name,
            user=sys.intern(self.association.user if self.user is None else self.user),
            account=sys.intern(self.account or self.association.account),
            standard_error=self.stderr if self.stderr_expanded is None else self.stderr_expanded,
            standard_output=self.stdout if self.stdout_expanded is None else self.stdout_expanded,
            array_job="" if self.array.job_id is None else str(self.array.job_id),
            array_task=_text(self.array.task_id) or self.array.task or "",
            submit_time=max(self.time.submission, 0),
            start_time=max(self.time.start, 0),
            end_time=self._end_time(),
            allocated_tres=sys.intern(_tres(self.tres.allocated or ())),
            requested_tres=sys.intern(_tres(self.tres.requested or ())),
            cpus=self.required.cpus,
            memory_per_node=_value(self.required.memory_per_node),
            # 0 for a pending job: the number of nodes that it asks for is not there.
            node_count=self.allocation_nodes or None,
            nodes=_nodes(self.nodes),
        )

    def _end_time(self) -> int:
        """The expected end of a running job, as slurmctld reports it."""
        time = self.time
        if time.end > 0:
            return time.end
        if "RUNNING" not in (self.state.current or ()) or time.start <= 0:
            return 0
        limit = _value(time.limit)
        return 0 if limit is None else time.start + limit * _MINUTE


class RpcWire(Wire, frozen=True):
    """Calls of one kind. Times are in microseconds."""

    message_type: str
    count: int = 0
    total_time: int = 0


class UserRpcWire(Wire, frozen=True):
    """Calls of one user."""

    user: str
    user_id: int = 0
    count: int = 0
    total_time: int = 0


class Counters(Wire, frozen=True):
    """Counters of slurmctld, as sdiag(1) shows them. Times are in microseconds."""

    server_thread_count: int | None = None
    agent_queue_size: int = 0
    dbd_agent_queue_size: int = 0
    schedule_cycle_last: int = 0
    schedule_cycle_mean: int = 0
    schedule_cycle_per_minute: int = 0
    bf_cycle_last: int = 0
    bf_cycle_mean: int = 0
    bf_depth_mean: int = 0
    bf_backfilled_jobs: int = 0
    bf_last_backfilled_jobs: int = 0
    bf_backfilled_het_jobs: int = 0
    rpcs_by_message_type: tuple[RpcWire, ...] | None = None
    rpcs_by_user: tuple[UserRpcWire, ...] | None = None


class CountersReply(Reply, frozen=True):
    """`GET diag/`."""

    statistics: Counters | None = None


class NodeRecords(Reply, frozen=True):
    """`GET nodes/`, without the records where these were decoded on arrival."""

    nodes: tuple[NodeWire, ...] | None = None
    last_update: Number = Number()


class JobRecords(Reply, frozen=True):
    """`GET jobs/`, without the records where these were decoded on arrival."""

    jobs: tuple[JobWire, ...] | None = None
    last_update: Number = Number()


class StoredJobRecords(Reply, frozen=True):
    """`GET jobs/` of slurmdbd, without the records where these were decoded on arrival."""

    jobs: tuple[StoredJobWire, ...] | None = None


def _interned(texts: Iterable[str]) -> Strings:
    """Thousands of records share a few states, users and partitions."""
    return tuple(map(sys.intern, texts))


def _value(number: Number | None) -> int | None:
    return None if number is None else number.value()


def _text(number: Number | None) -> str:
    found = _value(number)
    return "" if found is None else str(found)


def _nodes(host_list: str) -> str:
    return "" if host_list.strip() in _UNALLOCATED else host_list


def _tres(amounts: Iterable[StoredTres]) -> str:
    """Resources as slurmctld writes them. slurmdbd counts memory in MiB."""
    found: list[str] = []
    for one in amounts:
        if one.count is not None:
            name = f"{one.type}/{one.name}" if one.name else one.type
            found.append(f"{name}={one.count}{'M' if one.type == 'mem' else ''}")
    return ",".join(found)
