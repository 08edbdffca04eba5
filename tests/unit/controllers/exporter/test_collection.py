"""When Slurm is asked: while something scrapes, and never by a scrape itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from penstock.controllers.exporter.collection import Collection, Pace
from penstock.controllers.exporter.history import NodeHistory, Saved
from penstock.controllers.exporter.own_metrics import OwnMetrics
from penstock.kube import UnreachableError as KubeUnreachableError
from penstock.simulation.manual_clock import ManualClock
from penstock.slurm.rest.errors import UnreachableError
from penstock.slurm.rest.records import Counters, JobRecord, NodeRecord


class Slurm:
    """A Source that counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.node = NodeRecord(name="w-0", states=frozenset({"IDLE"}))
        self.changed = True

    async def nodes(self) -> tuple[NodeRecord, ...] | None:
        self.asked += 1
        if self.fails:
            raise UnreachableError("slurmrestd refused the connection")
        return (self.node,) if self.changed else None

    async def jobs(self) -> tuple[JobRecord, ...] | None:
        return (JobRecord(id=1, states=("RUNNING",)),)

    async def counters(self) -> Counters:
        return Counters(server_thread_count=1)


class State:
    """A place that can fail."""

    def __init__(self) -> None:
        self.saved = 0
        self.fails = False

    async def load(self) -> Saved | None:
        return None

    async def save(self, saved: Saved) -> None:
        if self.fails:
            raise KubeUnreachableError("no API server")
        self.saved += 1


class Lab:
    def __init__(self) -> None:
        self.slurm, self.state, self.clock = Slurm(), State(), ManualClock()
        self.history = NodeHistory()
        self.collection = Collection(
            self.slurm, self.state, self.history, self.clock, Pace(30.0), OwnMetrics()
        )

    async def after(self, seconds: float) -> None:
        """Let time pass, and all that is due then."""

        await self.clock.advance(seconds)

        for _ in range(50):
            await asyncio.sleep(0)
        await asyncio.gather(*self.collection._tasks)

    async def text(self) -> str:
        return (await self.collection.scrape()).text.decode()

    def own(self, name: str, **labels: str) -> float | None:
        return self.collection.metrics.registry.get_sample_value(name, labels)


@asynccontextmanager
async def running() -> AsyncGenerator[Lab]:
    lab = Lab()
    task = asyncio.create_task(lab.collection.run())
    try:
        yield lab
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_asked_before_something_scrapes():
    async with running() as lab:
        await lab.after(300)
        assert lab.slurm.asked == 0


async def test_the_first_scrape_has_the_values_of_a_collection_of_its_own():
    async with running() as lab:
        assert "slurm_node_info{" in await lab.text()
        assert lab.slurm.asked == 1


async def test_scrapes_between_two_collections_ask_nothing():
    """S114."""
    async with running() as lab:
        for _ in range(20):
            await lab.text()
        assert lab.slurm.asked == 1
        await lab.after(30)
        assert lab.slurm.asked == 2
        assert lab.own("slurm_exporter_metrics_requests_total") == 20


async def test_collections_stop_after_the_last_scrape_and_begin_again():
    async with running() as lab:
        await lab.text()
        for _ in range(20):
            await lab.after(30)
        asked = lab.slurm.asked
        assert asked < 10
        await lab.after(300)
        assert lab.slurm.asked == asked
        await lab.text()
        assert lab.slurm.asked == asked + 1


async def test_values_stay_after_a_failed_query():
    async with running() as lab:
        await lab.text()
        lab.slurm.fails = True
        await lab.after(30)
        assert "slurm_node_info{" in await lab.text()
        assert lab.own("slurm_exporter_collector_errors_total", collector="nodes") == 1
        assert lab.own("slurm_exporter_collection_failures_total") == 1


async def test_durations_are_saved_when_one_begins_or_ends_only():
    async with running() as lab:
        await lab.text()
        await lab.after(30)
        assert lab.state.saved == 0
        lab.slurm.node = NodeRecord(name="w-0", states=frozenset({"DOWN"}))
        await lab.after(30)
        assert lab.state.saved == 1
        await lab.after(30)
        assert lab.state.saved == 1


async def test_durations_that_cannot_be_saved_are_tried_again_and_served():
    async with running() as lab:
        lab.state.fails = True
        lab.slurm.node = NodeRecord(name="w-0", states=frozenset({"DOWN"}))
        assert 'state_base="DOWN"' in await lab.text()
        lab.state.fails, lab.slurm.changed = False, False
        await lab.after(30)
        assert lab.state.saved == 1


async def test_a_query_that_takes_long_is_not_sent_a_second_time():
    async with running() as lab:
        answer = asyncio.Event()
        ask = lab.slurm.counters

        async def slowly() -> Counters:
            await answer.wait()
            return await ask()

        lab.slurm.counters = slowly
        scrape = asyncio.create_task(lab.collection.scrape())
        for _ in range(20):
            await asyncio.sleep(0)
        await lab.clock.advance(30)
        for _ in range(20):
            await asyncio.sleep(0)
        assert lab.own("slurm_exporter_collector_skipped_total", collector="diag") == 1
        answer.set()
        await scrape


@pytest.mark.parametrize("name", ["nodes", "jobs", "diag"])
async def test_each_part_reports_its_duration(name: str):
    async with running() as lab:
        await lab.text()
        assert lab.own("slurm_exporter_collector_duration_seconds", collector=name) is not None
