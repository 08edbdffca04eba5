"""When Slurm is asked, and what a scrape gets.

Collections run only while something scrapes: a collection starts at the first scrape, is repeated
in each interval, and stops a few intervals after the last scrape. A scrape gets a text that is
ready, so scrapes cost Slurm nothing, however many there are. Values of a part whose query fails
stay as they were.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from penstock.controllers.exporter import exposition
from penstock.controllers.exporter.exposition import Exposition
from penstock.controllers.exporter.history import NodeHistory
from penstock.controllers.exporter.own_metrics import OwnMetrics
from penstock.controllers.exporter.saved_state import SavedState
from penstock.controllers.exporter.snapshot import Place, Snapshot
from penstock.controllers.exporter.source import Source
from penstock.kube import Clock, KubeError
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.records import Counters, JobRecord, NodeRecord

IDLE_INTERVALS: Final = 4
"""Intervals without a scrape after which collections stop."""
LEAST_IDLE_S: Final = 150.0
"""Prometheus scrapes once a minute by default, and may miss one scrape."""
FIRST_S: Final = 8.0
"""Seconds that a scrape waits for the first collection after a pause; Prometheus waits for 10."""

SAVE_S: Final = 5.0
"""Seconds that a save may take: metrics do not wait for the API server."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Part:
    """One of the queries of a collection."""

    name: str
    run: Callable[[], Awaitable[None]]
    inflight: int = 0
    problem: str = ""


@dataclass(slots=True)
class _Records:
    nodes: tuple[NodeRecord, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    counters: Counters | None = None
    revision: int = 0
    """Counts collections, as times in the text follow the clock."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between collections, and how many queries of one kind may run at a time."""

    interval_s: float = 30.0
    inflight: int = 1

    @property
    def idle_s(self) -> float:
        """Seconds without a scrape after which collections stop."""
        return max(IDLE_INTERVALS * self.interval_s, LEAST_IDLE_S)


@dataclass(slots=True)
class Collection:
    """Collects in the background (`run`) and answers scrapes (`scrape`)."""

    source: Source
    saved_state: SavedState
    history: NodeHistory
    clock: Clock
    pace: Pace
    metrics: OwnMetrics
    places: Callable[[], Mapping[str, Place]] = dict
    vpenso_names: bool = False
    _records: _Records = field(default_factory=_Records)
    _rendered: Exposition | None = None
    _rendered_revision: int = -1
    _renders: asyncio.Lock = field(default_factory=asyncio.Lock)
    _scraped: asyncio.Event = field(default_factory=asyncio.Event)
    _scraped_at: float = float("-inf")
    _collected: asyncio.Event = field(default_factory=asyncio.Event)
    _unsaved: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def scrape(self) -> Exposition:
        """The text of the last collection; after a pause, of one that begins now."""
        self._scraped_at = self.clock.monotonic()
        self._scraped.set()
        self.metrics.requests.inc()
        if not self._collected.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_S):
                    await self._collected.wait()
        # While the next text is written, scrapes get the last one.
        found = self._rendered or await self._render()
        self.metrics.exported.set(found.series)
        return found

    async def run(self) -> None:
        """Collect while something scrapes, until cancelled."""
        parts = (
            _Part("nodes", self._nodes),
            _Part("jobs", self._jobs),
            _Part("diag", self._counters),
        )
        try:
            while True:
                await self._scraped.wait()
                self._start(self._collect(parts))
                await self.clock.sleep(self.pace.interval_s)
                if self.clock.monotonic() - self._scraped_at > self.pace.idle_s:
                    self._scraped.clear()
                    self._collected.clear()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _collect(self, parts: tuple[_Part, ...]) -> None:
        """Run the parts side by side, each unless earlier runs of it are still under way."""
        began = self.clock.monotonic()
        due: list[_Part] = []
        for part in parts:
            if part.inflight < self.pace.inflight:
                due.append(part)
            else:
                self.metrics.skipped.labels(part.name).inc()
        succeeded = await asyncio.gather(*map(self._run_part, due))
        self.metrics.attempts.inc()
        if not all(succeeded):
            self.metrics.failures.inc()
        self.metrics.collection_duration.set(self.clock.monotonic() - began if due else 0.0)
        self._records.revision += 1
        # Now, so that the next scrape finds the text ready.
        await self._render()
        self._collected.set()

    async def _run_part(self, part: _Part) -> bool:
        metrics, began = self.metrics, self.clock.monotonic()
        part.inflight += 1
        metrics.inflight.labels(part.name).set(part.inflight)
        problem = ""
        try:
            await part.run()
        except SlurmError as error:
            problem = str(error)
        except Exception as error:
            # One answer that nobody thought of must not end all collections.
            log.exception("a collection failed", collector=part.name)
            problem = type(error).__name__
        finally:
            part.inflight -= 1
            metrics.inflight.labels(part.name).set(part.inflight)
            metrics.duration.labels(part.name).set(self.clock.monotonic() - began)
        if problem:
            metrics.errors.labels(part.name).inc()
        if problem != part.problem:
            part.problem = problem
            event = "Slurm cannot be queried" if problem else "Slurm answers again"
            log.warning(event, collector=part.name, problem=problem)
        return not problem

    async def _nodes(self) -> None:
        found = await self.source.nodes()
        nodes = self._records.nodes if found is None else found
        if not nodes:
            return
        longest = self.pace.idle_s
        async with self._renders:
            # A text that is being written reads the history.
            self._records.nodes = nodes
            self._unsaved |= self.history.follow(nodes, self.clock.time(), longest)
        await self._save()

    async def _jobs(self) -> None:
        found = await self.source.jobs()
        if found is not None:
            self._records.jobs = found

    async def _counters(self) -> None:
        self._records.counters = await self.source.counters()

    async def _save(self) -> None:
        """Save durations before they are shown; what cannot be saved is tried again later."""
        if not self._unsaved:
            return
        try:
            async with asyncio.timeout(SAVE_S):
                await self.saved_state.save(self.history.saved)
            self._unsaved = False
        except (OSError, KubeError) as error:
            log.warning("durations cannot be saved", problem=str(error))

    async def _render(self) -> Exposition:
        """The text of the current records; it is written once for all scrapes."""
        async with self._renders:
            records = self._records
            if self._rendered is None or self._rendered_revision != records.revision:
                self._rendered_revision = records.revision
                taken = Snapshot(
                    now=self.clock.time(),
                    history=self.history,
                    nodes=records.nodes,
                    jobs=records.jobs,
                    counters=records.counters,
                    places=self.places(),
                )
                self._rendered = await asyncio.to_thread(
                    exposition.render, taken, vpenso_names=self.vpenso_names
                )
            return self._rendered
