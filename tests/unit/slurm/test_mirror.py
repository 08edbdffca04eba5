from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.simulation.slurm.slurmrestd import SimulatedSlurmrestd
from penstock.slurm.known import Known, Unknown
from penstock.slurm.mirror.nodes_and_jobs import STOPPED, Mirror
from penstock.slurm.mirror.pace import Pace
from penstock.slurm.mirror.snapshot import NO_NODES, Snapshot
from penstock.slurm.rest import Slurmrestd
from penstock.slurm.state import Node

FAST = Pace(moving=0.01, settled=0.01, back_off=0.01, moving_for=0.05)
SLOW = Pace(moving=600, settled=600, back_off=600)
"""Polls only when asked to."""
SLOW_BESIDE_MANY = Pace(moving=600, settled=5, moving_for=600, back_off=600)


@pytest.fixture
async def server() -> AsyncIterator[SimulatedSlurmrestd]:
    async with SimulatedSlurmrestd() as server:
        for index in range(4):
            server.slurmctld.register(f"cpu-{index}")
        yield server


@pytest.fixture
def rest(server: SimulatedSlurmrestd) -> Slurmrestd:
    return Slurmrestd(server.url, lambda: "token", timeout_s=10)


@asynccontextmanager
async def running(mirror: Mirror) -> AsyncGenerator[Mirror]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mirror.run())
        await asyncio.sleep(0)
        yield mirror
        task.cancel()


async def until(mirror: Mirror, wanted: Callable[[Snapshot], bool]) -> Snapshot:
    """Wait for a snapshot of that kind, told by the mirror's own notices."""
    told = asyncio.Event()
    forget = mirror.subscribe(lambda _: told.set())
    async with asyncio.timeout(10):
        while not wanted(mirror.snapshot):
            told.clear()
            await told.wait()
    forget()
    return mirror.snapshot


def known(snapshot: Snapshot) -> bool:
    return isinstance(snapshot.nodes, Known)


def polls(server: SimulatedSlurmrestd) -> list[str]:
    return [call.removeprefix("GET /slurm/v0.0.45") for call in server.calls if "nodes/" in call]


async def test_it_mirrors_nodes_and_jobs(server: SimulatedSlurmrestd, rest: Slurmrestd):
    job = server.slurmctld.run("cpu-1", "cpu-2")
    mirror = Mirror(pace=FAST)
    mirror.endpoint(rest)
    async with running(mirror):
        snapshot = await until(mirror, known)
    assert isinstance(snapshot.nodes, Known)
    assert list(snapshot.nodes.value) == ["cpu-0", "cpu-1", "cpu-2", "cpu-3"]
    assert snapshot.nodes.value["cpu-1"].busy
    on = snapshot.jobs_on("cpu-2")
    assert isinstance(on, Known)
    assert [j.id for j in on.value] == [job.id]


async def test_without_an_endpoint_it_gives_the_reason():
    mirror = Mirror()
    mirror.endpoint(None, "no RestApi references this Controller")
    async with running(mirror):
        async with asyncio.timeout(5):
            snapshot = await mirror.poll()
    assert snapshot.nodes == snapshot.jobs == Unknown("no RestApi references this Controller")


async def test_losing_the_endpoint_makes_all_unknown_and_notifies(rest: Slurmrestd):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        told: list[frozenset[str]] = []
        mirror.subscribe(told.append)
        mirror.endpoint(None, "RestApi was deleted")
        assert mirror.snapshot.nodes == Unknown("RestApi was deleted")
        await until(mirror, lambda _: bool(told))
    assert told == [{"cpu-0", "cpu-1", "cpu-2", "cpu-3"}]


async def test_it_names_the_changed_nodes(server: SimulatedSlurmrestd, rest: Slurmrestd):
    mirror = Mirror(pace=FAST)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        told: list[frozenset[str]] = []
        mirror.subscribe(told.append)
        server.slurmctld.run("cpu-3")
        await until(mirror, lambda s: isinstance(s.jobs, Known) and bool(s.jobs.value))
        await until(mirror, lambda s: isinstance(n := s.node("cpu-3"), Known) and n.value.busy)
    assert set().union(*told) == {"cpu-3"}


async def test_a_settled_cluster_is_asked_for_changes_only(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    now = 1000.0
    server.slurmctld.clock = lambda: now
    server.slurmctld.touch()
    now = 2000.0
    mirror = Mirror(pace=FAST)
    mirror.endpoint(rest)
    async with running(mirror), asyncio.timeout(10):
        await server.called(10, "nodes/")
        assert known(mirror.snapshot)
    assert polls(server)[0] == "/nodes/"
    assert set(polls(server)[1:]) == {"/nodes/?update_time=2000"}


async def test_it_asks_for_everything_now_and_then(server: SimulatedSlurmrestd, rest: Slurmrestd):
    mirror = Mirror(pace=Pace(moving=0.01, settled=0.01, whole=0))
    mirror.endpoint(rest)
    async with running(mirror), asyncio.timeout(10):
        await server.called(5, "nodes/")
    assert set(polls(server)) == {"/nodes/"}


async def test_a_fresh_answer_is_asked_for_after_the_call(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        server.slurmctld.update_node("cpu-0", ["DRAIN"], {"reason": "x"})
        stale = mirror.snapshot.node("cpu-0")
        assert isinstance(stale, Known)
        assert not stale.value.drained
        answer = (await mirror.poll()).node("cpu-0")
        await mirror.poll()
    assert isinstance(answer, Known)
    assert answer.value.drained
    assert set(polls(server)) == {"/nodes/"}, "a fresh answer is a whole one"


async def test_a_poll_under_way_is_no_fresh_answer(server: SimulatedSlurmrestd, rest: Slurmrestd):
    server.fault, server.delay_s = Fault.SLOW, 0.1
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror), asyncio.timeout(10):
        await server.called(1, "nodes/")
        await mirror.poll()
    assert len(polls(server)) == 2


async def test_concurrent_callers_share_one_round_trip(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        before = len(polls(server))
        answers = await asyncio.gather(*(mirror.poll() for _ in range(20)))
    assert len(polls(server)) == before + 1
    assert all(answer is answers[0] for answer in answers)


async def test_a_caller_that_gives_up_does_not_harm_the_others(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        server.fault, server.delay_s = Fault.SLOW, 0.1
        impatient, patient = (
            asyncio.create_task(mirror.poll()),
            asyncio.create_task(mirror.poll()),
        )
        await asyncio.sleep(0.02)
        impatient.cancel()
        assert known(await patient)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.REFUSE, "slurmrestd broke off the connection"),
        (Fault.HANG, "slurmrestd did not answer within"),
        (Fault.ERROR_IN_200, "slurmrestd answered with an error: Unspecified error"),
        (Fault.EMPTY_NODES, NO_NODES),
        (Fault.HALF_NODES, "slurmrestd listed only 2 of 4 known nodes"),
        (Fault.HALF_BODY, "slurmrestd's answer cannot be read"),
        (Fault.CONTROLLER_DOWN, "Unable to contact slurm controller"),
        (Fault.UNAVAILABLE, "slurmrestd answered HTTP 503"),
        (Fault.EXPIRED, "Protocol authentication error"),
    ],
)
async def test_no_fault_is_ever_a_fact_about_nodes(
    server: SimulatedSlurmrestd, rest: Slurmrestd, fault: Fault, words: str
):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        server.fault = fault
        if fault is Fault.HANG:
            mirror.endpoint(Slurmrestd(server.url, lambda: "token", timeout_s=0.1))
        nodes = (await mirror.poll()).nodes
        assert isinstance(nodes, Unknown)
        assert words in nodes.why
        server.fault = Fault.NONE
        mirror.endpoint(rest)
        assert known(await mirror.poll())


async def test_a_failing_server_is_unknown_only_once_the_answer_is_stale(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    """D32: nor does anything wait for it for ever."""
    now = 100.0
    mirror = Mirror(pace=SLOW, clock=lambda: now)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        await server.stop()
        assert not known(await mirror.poll())
        now = 115.0
        assert known(mirror.snapshot)
        now = 115.1
        unknown = mirror.snapshot.nodes
    assert isinstance(unknown, Unknown)
    assert "refused the connection" in unknown.why


async def test_who_read_a_stale_answer_hears_of_the_next_good_one_though_nothing_changed(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    now = 100.0
    mirror = Mirror(pace=SLOW, clock=lambda: now)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        told: list[frozenset[str]] = []
        mirror.subscribe(told.append)
        now = 115.1
        assert not known(mirror.snapshot)
        assert known(await mirror.poll())
        await until(mirror, known)
    assert told == [{"cpu-0", "cpu-1", "cpu-2", "cpu-3"}]


async def test_it_recovers_when_the_server_comes_back(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    await server.stop()
    mirror = Mirror(pace=FAST)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, lambda s: isinstance(n := s.nodes, Unknown) and "refused" in n.why)
        await server.start()
        await until(mirror, known)


async def test_a_slurmctld_that_lost_its_state_is_not_an_empty_cluster(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    """D4, D23."""
    mirror = Mirror(pace=FAST)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        server.slurmctld.lose()
        unknown = await until(mirror, lambda s: not known(s))
        assert unknown.nodes == Unknown(NO_NODES)
        server.slurmctld.register("cpu-0")
        server.slurmctld.register("cpu-1")
        server.slurmctld.register("cpu-2")
        await until(mirror, known)


async def test_a_slurmctld_that_goes_on_listing_no_nodes_is_believed_once_it_runs_long_enough(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    """D23."""
    now = 100.0
    server.slurmctld.lose()
    server.slurmctld.began = int(server.slurmctld.clock()) - 30
    mirror = Mirror(pace=SLOW, clock=lambda: now)
    mirror.endpoint(rest)
    async with running(mirror):
        assert (await mirror.poll()).nodes == Unknown(NO_NODES)
        assert not [call for call in server.calls if "diag" in call]
        now = 160.0
        assert (await mirror.poll()).nodes == Unknown(NO_NODES)
        server.slurmctld.began -= 60
        assert (await mirror.poll()).nodes == Known(dict[str, Node](), 160.0)
        asked = len([call for call in server.calls if "diag" in call])
        assert (await mirror.poll()).nodes == Known(dict[str, Node](), 160.0)
        assert len([call for call in server.calls if "diag" in call]) == asked


async def test_nodes_that_we_deleted_are_believed_to_be_gone(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        gone = ["cpu-1", "cpu-2", "cpu-3"]
        for name in gone:
            await rest.delete_node(name)
        mirror.forget(gone)
        nodes = (await mirror.poll()).nodes
    assert isinstance(nodes, Known)
    assert list(nodes.value) == ["cpu-0"]


async def test_another_endpoint_takes_over_in_the_middle_of_a_poll(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    async with SimulatedSlurmrestd(server.slurmctld) as dead:
        dead.fault = Fault.HANG
        mirror = Mirror(pace=SLOW)
        async with running(mirror), asyncio.timeout(10):
            waiting = asyncio.create_task(mirror.poll())
            await asyncio.sleep(0)
            mirror.endpoint(Slurmrestd(dead.url, lambda: "token", timeout_s=1))
            await dead.called(1)
            mirror.endpoint(rest)
            assert known(await waiting)


def _nothing(_: SimulatedSlurmctld, __: Mirror) -> None: ...


def _poke(_: SimulatedSlurmctld, mirror: Mirror) -> None:
    mirror.poll_soon()


def _read(_: SimulatedSlurmctld, mirror: Mirror) -> None:
    mirror.record_use()


def _complete(slurmctld: SimulatedSlurmctld, _: Mirror) -> None:
    slurmctld.register("cpu-0", flags={"COMPLETING"})


def _drain(slurmctld: SimulatedSlurmctld, _: Mirror) -> None:
    slurmctld.register("cpu-0", flags={"DRAIN"})


def _power_down(slurmctld: SimulatedSlurmctld, _: Mirror) -> None:
    slurmctld.register("cpu-0", flags={"CLOUD", "POWERED_DOWN"})


def _drain_busy(slurmctld: SimulatedSlurmctld, _: Mirror) -> None:
    slurmctld.register("cpu-0", flags={"DRAIN"})
    if not slurmctld.jobs:
        slurmctld.run("cpu-0")


@pytest.mark.parametrize(
    ("prepare", "pause"),
    [(_nothing, 5.0), (_poke, 1.0), (_complete, 1.0), (_drain, 5.0), (_drain_busy, 1.0)],
    ids=["settled", "poked", "completing", "drained", "draining"],
)
async def test_it_asks_often_only_while_something_moves(
    server: SimulatedSlurmrestd,
    rest: Slurmrestd,
    prepare: Callable[[SimulatedSlurmctld, Mirror], None],
    pause: float,
):
    now = 100.0
    mirror = Mirror(clock=lambda: now)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        prepare(server.slurmctld, mirror)
        await mirror.poll()
        now = 120.0  # what changed so far is long ago
        prepare(server.slurmctld, mirror)
        await mirror.poll()
        assert mirror.due() == now + pause


@pytest.mark.parametrize(
    ("prepare", "pause"),
    [
        (_nothing, 8.0),
        (_poke, 1.0),
        (_read, 5.0),
        (_complete, 1.0),
        (_power_down, 5.0),
    ],
    ids=["at rest", "poked", "read", "completing", "powered down"],
)
async def test_beside_many_clusters_it_asks_rarely_only_while_at_rest(
    server: SimulatedSlurmrestd,
    rest: Slurmrestd,
    prepare: Callable[[SimulatedSlurmctld, Mirror], None],
    pause: float,
):
    now = 100.0
    mirror = Mirror(clock=lambda: now, stretch=lambda: 1.6)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        prepare(server.slurmctld, mirror)
        await mirror.poll()
        now = 1000.0  # nothing changed, and nobody read it, for long
        prepare(server.slurmctld, mirror)
        assert mirror.due() == 100.0 + pause


async def test_an_answer_leaves_the_same_time_for_the_next_one_after_a_longer_pause(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    now = 100.0
    mirror = Mirror(pace=SLOW_BESIDE_MANY, clock=lambda: now, stretch=lambda: 1.6)
    mirror.endpoint(rest)
    async with running(mirror):
        await until(mirror, known)
        await server.stop()
        now = 118.0
        assert known(mirror.snapshot)
        now = 118.1
        assert not known(mirror.snapshot)


async def test_a_cluster_that_is_read_ends_its_rest_at_once(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    now = 100.0
    pace = Pace(settled=100, stale=1000, rest_after=10)
    mirror = Mirror(pace=pace, clock=lambda: now, stretch=lambda: 1.6)
    mirror.endpoint(rest)
    async with running(mirror), asyncio.timeout(10):
        await until(mirror, known)
        now = 210.0
        assert mirror.due() == 260
        before = len(polls(server))
        mirror.record_use()
        await server.called(before + 1, "nodes/")


async def test_it_asks_less_and_less_while_asking_fails(
    server: SimulatedSlurmrestd, rest: Slurmrestd
):
    now = 100.0
    mirror = Mirror(clock=lambda: now)
    server.fault = Fault.UNAVAILABLE
    mirror.endpoint(rest)
    pauses: list[float] = []
    async with running(mirror):
        for _ in range(6):
            await mirror.poll()
            pauses.append(mirror.due() - now)
    assert pauses[-1] == 10
    assert pauses == sorted(pauses)


async def test_a_mirror_that_does_not_run_knows_nothing(rest: Slurmrestd):
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    assert (await mirror.poll()).nodes == Unknown(STOPPED)


async def test_stopping_answers_those_who_wait(server: SimulatedSlurmrestd, rest: Slurmrestd):
    server.fault = Fault.HANG
    mirror = Mirror(pace=SLOW)
    mirror.endpoint(rest)
    async with running(mirror), asyncio.timeout(10):
        await server.called(1)
        waiting = asyncio.create_task(mirror.poll())
        await asyncio.sleep(0)
    assert (await waiting).nodes == Unknown(STOPPED)
