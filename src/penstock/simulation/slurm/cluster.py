"""A simulated Slurm: slurmctld with its slurmds, jobs that come and go, and slurmrestd.

Its state is the truth that promises are checked against. An operator observes it through
`SlurmLine`, which can be cut, slow or wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

from penstock.decide.observed import node_comment
from penstock.decide.observed.check_comment import values
from penstock.simulation import faults
from penstock.simulation.faults import Fault
from penstock.simulation.kubelet.pod_manifests import SILENT, NodeConf
from penstock.simulation.slurm.auth_keys import Keys, read, understand
from penstock.simulation.slurm.reconfigure import slurm_conf
from penstock.simulation.slurm.rest_replies import JSON, RestRequest
from penstock.simulation.slurm.slurmctld import (
    UNFINISHED,
    SimulatedJob,
    SimulatedSlurmctld,
    SimulatedSlurmNode,
)
from penstock.simulation.slurm.slurmrestd import InMemorySlurmrestd
from penstock.slurm import hostlist
from penstock.slurm.rest.http import Answer, unfenced

sent_at: ContextVar[float] = ContextVar("sent_at", default=0.0)
NODE_FAIL = "NODE_FAIL"
NOT_RESPONDING = "NOT_RESPONDING"
LOW_MEMORY = "Low RealMemory (reported:900 < 100.00% of configured:1000)"
ANSWERS_S = 0.5
"""How long a slurmd takes to register when it is asked to."""
UNSAVED_S = 5.0
"""For how long after a registration slurmctld's saved state is of no use."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the sender of a request can know, in seconds of the running loop.

    `listed_at` is when it last received all nodes, `sent_at` when it sent the request.
    """

    listed_at: float = float("-inf")
    sent_at: float = 0.0


OnRequest = Callable[[RestRequest, Callable[[RestRequest], Answer], Knowledge], Answer]
"""Called with a request, with what answers it, and with what its sender knew."""


@dataclass
class Slurmd:
    """A running slurmd: its pod, its start (Unix seconds), and the parameters of its node."""

    pod_uid: str
    started: int
    conf: NodeConf = SILENT
    keys: Keys | None = None
    address: str = ""
    registered: bool = False
    """Whether slurmctld has taken the registration that it sends when it starts."""


class SimulatedSlurm:
    """slurmctld, and the slurmds that run. `clock` gives Unix seconds, as Slurm sees them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.ctld = SimulatedSlurmctld(clock)
        self.ctld.asks = self._asked
        self.slurmds: dict[str, Slurmd] = {}
        self.up = False
        """Whether slurmctld runs."""
        self.external = False
        """Whether it runs without a pod of ours."""
        self.rest_up = False
        """Whether a slurmrestd runs."""
        self.lost_jobs: list[SimulatedJob] = []
        """Jobs that ended because their slurmd did."""
        self.drained_at: dict[str, float] = {}
        """When somebody last drained or resumed a node by hand, in seconds of the running loop."""
        self.drains: dict[str, str] = {}
        """Reasons of the drains that somebody set by hand, by node."""
        self.overwritten: dict[str, str] = {}
        """Reasons of drains that a preStop hook put its own in the place of. They may come back:
        who had seen one in time may bring it back later."""
        self.lifted_at: dict[str, float] = {}
        """When a drain last ended by other than the operator's request, in the loop's seconds."""
        self.remembered_after = float("inf")
        """Seconds after which a drain must have been remembered by the operator."""
        self.starting: list[Callable[[], None]] = []
        """Called whenever slurmctld starts."""
        self.shrunk: set[str] = set()
        """Nodes that come back with less memory than they had, when they register next."""
        self.keys: Keys | None = None
        """What slurmctld has read; None where keys play no part."""
        self._registered_at: dict[str, float] = {}
        self._clock = clock

    def slurmd_starts(
        self,
        name: str,
        pod_uid: str,
        conf: NodeConf = SILENT,
        keys: Keys | None = None,
        address: str = "",
    ) -> None:
        """A slurmd runs; `registers` makes it known to slurmctld."""
        self.slurmds[name] = Slurmd(pod_uid, int(self._clock()), conf, keys, address)

    def runs_slurmd(self, name: str, pod_uid: str) -> bool:
        """Whether the slurmd of a name runs in that very pod, in truth."""
        slurmd = self.slurmds.get(name)
        return slurmd is not None and slurmd.pod_uid == pod_uid

    def rereads(self, name: str, keys: Keys | None) -> bool:
        """Slurmctld makes a slurmd read its files: whether there is a new process of it now."""
        slurmd = self.slurmds.get(name)
        if slurmd is None or not self.up or not self.trusts(slurmd) or name not in self.ctld.nodes:
            return False
        slurmd.keys, slurmd.started = keys, int(self._clock())
        return True

    def turned_away(self, name: str) -> bool:
        """Whether a slurmd ends at its start, as slurmctld gives it no configuration."""
        slurmd = self.slurmds.get(name)
        return slurmd is not None and self.up and not slurmd.registered and not self.trusts(slurmd)

    def trusts(self, slurmd: Slurmd) -> bool:
        """Whether slurmctld and a slurmd believe each other."""
        return understand(self.keys, slurmd.keys)

    def reads(self, files: Mapping[str, str]) -> None:
        """Slurmctld reads its files."""
        self.ctld.read(slurm_conf(files))
        self.keys = read(files)

    def _asked(self, address: str) -> None:
        """Slurmctld asks whoever listens there to register, as it has a record with that address.

        Seen with Slurm 26.05: a slurmd answers with its own name, and a record is made of it.
        """
        for name, slurmd in self.slurmds.items():
            if address and slurmd.address == address:
                loop = asyncio.get_running_loop()
                loop.call_later(ANSWERS_S, lambda name=name: self.registers(name, asked=True))

    def registers(self, name: str, *, asked: bool = False) -> bool:
        """The running slurmd of that name registers; whether it is done with that.

        It registers by itself when it starts, and later only when slurmctld asks it, which it does
        of nodes that it knows. With ReturnToService=0 a node that is DOWN stays so. Source:
        slurm.conf(5), and seen with Slurm 26.05 and 24.11.
        """
        slurmd = self.slurmds.get(name)
        if slurmd is None or not self.up or not self.trusts(slurmd):
            return slurmd is None
        if slurmd.registered and not asked and name not in self.ctld.nodes:
            return True
        node = self.ctld.nodes.get(name) or self.ctld.register(name, **slurmd.conf.values)
        node.started, slurmd.registered = slurmd.started, True
        node.flags.discard(NOT_RESPONDING)
        if node.base == "UNKNOWN":
            node.base = "IDLE"
        self._registered_at[name] = _loop_time()
        node.flags.discard("INVALID_REG")
        if name in self.shrunk:
            self.shrunk.discard(name)
            node.flags.add("INVALID_REG")
            self._drain(name, LOW_MEMORY, user="slurm")
        self.ctld.touch()
        return True

    def pre_stop(self, name: str, reason: str) -> None:
        """What the preStop hook of worker pods does, when slurmctld answers.

        It puts its own words in the place of any drain that nobody had the time to remember: the
        one that was remembered before, if any, is what is left.
        """
        if self.up and name in self.ctld.nodes:
            record = values(self.ctld.nodes[name].comment)
            kept = record is not None and record.get(node_comment.DRAIN) == self.drains.get(name)
            had_time = _loop_time() - self.drained_at.get(name, 0.0) > self.remembered_after
            if not kept and not had_time and name in self.drains:
                self.overwritten[name] = self.drains.pop(name)
                before = record.get(node_comment.DRAIN) if record is not None else None
                if before is not None:
                    self.drains[name] = before
            self.ctld.update_node(name, ["DOWN"], {"reason": reason})

    def slurmd_ends(self, name: str, pod_uid: str) -> None:
        """The slurmd of that pod ends, and with it what runs there."""
        slurmd = self.slurmds.get(name)
        if slurmd is None or slurmd.pod_uid != pod_uid:
            return
        del self.slurmds[name]
        for job in self.jobs_on(name):
            if "CONFIGURING" in job.state:
                # Nothing of it runs before the boot that slurmctld waits for.
                continue
            self.lost_jobs.append(job)
            self.ctld.finish(job, NODE_FAIL)
        node = self.ctld.nodes.get(name)
        if node is not None:
            node.flags.add(NOT_RESPONDING)
            self.ctld.touch()

    def give_up_silent_nodes(self) -> None:
        """What slurmctld does after SlurmdTimeout with nodes that do not answer."""
        for name, node in self.ctld.nodes.items():
            if node.flags & {"POWERING_DOWN", "POWERED_DOWN"}:
                # slurmctld pings none of these. Source: its ping_nodes.c.
                continue
            if self.up and NOT_RESPONDING in node.flags and node.base != "DOWN":
                node.base = "DOWN"
                if not node.reason:
                    node.reason, node.reason_user = "Not responding", "slurm"
                    if name in self.drains:
                        # Of a drain without words.
                        self.drains[name], self.drained_at[name] = node.reason, _loop_time()
                self.ctld.touch()

    def jobs_on(self, name: str) -> list[SimulatedJob]:
        """The jobs that hold a node, in slurmctld's truth."""
        return [job for job in self.ctld.jobs.values() if job.uses(name)]

    def free_nodes(self) -> list[SimulatedSlurmNode]:
        """Nodes on which a job could start now."""
        self.ctld.pass_time()
        return [
            node
            for name, node in sorted(self.ctld.nodes.items())
            if self.up
            and node.base == "IDLE"
            and not node.flags - {"DYNAMIC_NORM"}
            and name in self.slurmds
            and name not in self.ctld.maintained
            and not self.jobs_on(name)
        ]

    def submit(self, width: int, **values: object) -> SimulatedJob | None:
        """Start a job on that many nodes, if they are free."""
        free = self.free_nodes()
        if not 0 < width <= len(free):
            return None
        nodes = [node.name for node in free[:width]]
        values = {"partition": self._partition(nodes), **values}
        return self.ctld.run(*nodes, start=int(self._clock()), **values)

    def _partition(self, nodes: list[str]) -> str:
        """A partition that takes a job on these nodes, not always the same; "all" without one."""
        found = [
            name
            for name, one in sorted(self.ctld.partitions.items())
            if "UP" in one["partition"]["state"]
            and set(nodes) <= set(hostlist.expand(one["nodes"].get("configured") or ""))
        ]
        return found[len(self.ctld.jobs) % len(found)] if found else "all"

    def running(self) -> list[SimulatedJob]:
        """The jobs that run."""
        return [job for job in self.ctld.jobs.values() if "RUNNING" in job.state]

    def change(self, job: SimulatedJob, state: str) -> None:
        """A job gets another state."""
        job.state = {state}
        self.ctld.touch()

    def finish(self, job: SimulatedJob) -> None:
        """A job ends by itself, unless it was lost before."""
        if job.state & {"RUNNING", "SUSPENDED"}:
            self.ctld.finish(job)

    # Administrators

    def drained_by_hand(self, name: str, reason: str) -> None:
        """Somebody drains a node; nobody else may undo or reword that."""
        if self.up and name in self.ctld.nodes:
            self._drain(name, reason, user="root")

    def _drain(self, name: str, reason: str, *, user: str) -> None:
        self.ctld.update_node(name, ["DRAIN"], {"reason": reason}, user=user)
        self.drains[name] = reason
        self.drained_at[name] = _loop_time()

    def resumed_by_hand(self, name: str) -> None:
        """Somebody resumes a node."""
        if self.up and name in self.ctld.nodes:
            self.ctld.update_node(name, ["RESUME"], {}, user="root")
            self.drains.pop(name, None)
            self.lifted_at[name] = _loop_time()

    def deleted_by_hand(self, name: str) -> None:
        """Somebody deletes a node record."""
        if self.up and name in self.ctld.nodes and not self.jobs_on(name):
            self.ctld.delete_node(name)
            self.drains.pop(name, None)
            self.lifted_at[name] = _loop_time()

    def killed(self) -> bool:
        """Slurmctld is killed; whether its saved state will be empty when it starts again.

        Seen with Slurm 26.05: killed within about 5 s of a registration it listed no node at all
        after its restart, with HTTP 200, and the slurmds did not come back for 25 s or more.
        """
        self.stop()
        newest = max(self._registered_at.values(), default=float("-inf"))
        return _loop_time() - newest < UNSAVED_S

    def start(self, *, lost: Callable[[SimulatedSlurmNode], bool] = lambda _: False) -> None:
        """Slurmctld starts: all nodes have to register again; `lost` are not in its state."""
        self.up = True
        self.ctld.began = int(self._clock())
        for callback in self.starting:
            callback()
        for name, node in list(self.ctld.nodes.items()):
            if lost(node):
                for job in self.jobs_on(name):
                    self.lost_jobs.append(job)
                    self.ctld.finish(job, NODE_FAIL)
                self.ctld.lose(name)
                self.drains.pop(name, None)
                self.lifted_at[name] = _loop_time()
        self.ctld.touch()

    def stop(self) -> None:
        """Slurmctld ends. The jobs run on."""
        self.up = False

    def loses_unsaved(self) -> None:
        """Slurmctld reads its file, and the operator is not the cause: some jobs are lost.

        These are jobs of partitions that requests made and whose file is still on its way. A
        partition that its folder had once keeps its jobs. Source: docs/admin/partitions.md.
        """
        for job in self.ctld.jobs.values():
            named = self.ctld.partitions.keys() & set(job.partition.split(","))
            if job.state & UNFINISHED and named and named.isdisjoint(self.ctld.in_file):
                self.lost_jobs.append(job)
                self.ctld.finish(job, NODE_FAIL)


class SlurmLine:
    """One client's way to slurmrestd. `heard` wraps each request that reaches slurmctld."""

    def __init__(
        self, slurm: SimulatedSlurm, key: Callable[[], bytes | None], on_request: OnRequest
    ) -> None:
        self.rest = _ObservedSlurmrestd(slurm.ctld, on_request)
        self.dead = False
        self._slurm = slurm
        self._key = key

    async def exchange(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        fence: Callable[[], None] = unfenced,
        /,
    ) -> Answer:
        """Answer one request. Raises ConnectionError; never returns when it hangs."""
        if self.dead or not self._slurm.rest_up:
            await asyncio.sleep(0.001)
            raise ConnectionRefusedError(111, "Connection refused")
        if not self._slurm.up:
            await asyncio.sleep(1.0)
            _, answer, _ = faults.answer(Fault.CONTROLLER_DOWN) or (0, b"", "")
            return Answer(502, JSON, answer)
        self.rest.key = self._key()
        sent_at.set(asyncio.get_running_loop().time())
        answer = await self.rest.exchange(url, method, headers, body, fence)
        if self.dead:
            raise ConnectionResetError(104, "Connection reset by peer")
        return answer


class _ObservedSlurmrestd(InMemorySlurmrestd):
    def __init__(self, ctld: SimulatedSlurmctld, on_request: OnRequest) -> None:
        super().__init__(ctld)
        self.listed_at = float("-inf")
        """When all nodes were last listed, in seconds of the running loop."""
        self._on_request = on_request

    def answer(self, asked: RestRequest) -> Answer:
        knowledge = Knowledge(self.listed_at, sent_at.get())
        if asked.method == "GET" and asked.path.endswith("/nodes/"):
            self.listed_at = _loop_time()
        return self._on_request(asked, super().answer, knowledge)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
