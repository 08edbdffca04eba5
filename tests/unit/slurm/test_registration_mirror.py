"""What slurmdbd says of a cluster's registration, and how often it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.simulation.event_loop import simulate
from penstock.simulation.faults import Fault
from penstock.simulation.slurm.slurmrestd import InMemorySlurmrestd
from penstock.slurm.accounting_registration import Registration
from penstock.slurm.known import Known, Unknown
from penstock.slurm.mirror.accounting_registration import PACE_S, SOON_S, RegistrationMirror
from penstock.slurm.rest.client import Slurmrestd

CONF = "ClusterName=blue\nAccountingStorageType=accounting_storage/slurmdbd\n"
Scene = Callable[[InMemorySlurmrestd, RegistrationMirror, list[float]], Awaitable[None]]


def play(scene: Scene) -> None:
    """A scene with a mirror that polls, in simulated time; the list has when it reported."""

    async def main() -> None:
        rest = InMemorySlurmrestd()
        rest.slurmctld.read(CONF)
        loop, changes = asyncio.get_running_loop(), list[float]()
        mirror = RegistrationMirror(lambda: changes.append(loop.time()), clock=loop.time)
        mirror.endpoint(Slurmrestd("http://rest", lambda: "token", exchange=rest.exchange))
        task = asyncio.create_task(mirror.run())
        await scene(rest, mirror, changes)
        task.cancel()

    simulate(main())


def calls(rest: InMemorySlurmrestd) -> int:
    return sum("slurmdb" in one for one in rest.calls)


def test_nobody_is_asked_without_accounting() -> None:
    async def scene(rest: InMemorySlurmrestd, mirror: RegistrationMirror, _: list[float]) -> None:
        await asyncio.sleep(600)
        assert not rest.calls
        assert isinstance(mirror.registration, Unknown)

    play(scene)


def test_a_registered_cluster_costs_a_call_a_minute_and_reports_once() -> None:
    async def scene(
        rest: InMemorySlurmrestd, mirror: RegistrationMirror, changes: list[float]
    ) -> None:
        mirror.need("blue", "records:6819")
        await asyncio.sleep(10 * PACE_S + 1)
        assert calls(rest) == 11
        assert len(changes) == 1
        assert isinstance(found := mirror.registration, Known)
        assert found.value == Registration("10.0.0.1", 6817)

    play(scene)


def test_a_missing_registration_is_polled_often_and_keeps_its_first_time() -> None:
    async def scene(
        rest: InMemorySlurmrestd, mirror: RegistrationMirror, changes: list[float]
    ) -> None:
        rest.slurmctld.registered = False
        mirror.need("blue", "records:6819")
        await asyncio.sleep(10 * SOON_S + 1)
        assert calls(rest) == 11
        assert len(changes) == 1
        assert isinstance(found := mirror.registration, Known)
        assert not found.value.complete
        assert found.value.since is not None
        assert found.value.since < 1.0

    play(scene)


def test_another_clusters_registration_is_not_its_own() -> None:
    async def scene(_: InMemorySlurmrestd, mirror: RegistrationMirror, __: list[float]) -> None:
        mirror.need("green", "records:6819")
        await asyncio.sleep(1)
        assert isinstance(found := mirror.registration, Known)
        assert not found.value.complete

    play(scene)


def test_one_failure_does_not_end_what_is_known_and_several_do() -> None:
    async def scene(
        rest: InMemorySlurmrestd, mirror: RegistrationMirror, changes: list[float]
    ) -> None:
        mirror.need("blue", "records:6819")
        await asyncio.sleep(1)
        rest.fault = Fault.REFUSE
        await asyncio.sleep(PACE_S + 1)
        assert isinstance(mirror.registration, Known)
        await asyncio.sleep(2 * PACE_S)
        assert isinstance(found := mirror.registration, Unknown)
        assert "refused" in found.why
        rest.fault = Fault.NONE
        await asyncio.sleep(2 * SOON_S)
        assert isinstance(mirror.registration, Known)
        # Each change wakes whoever reports it: known, unknown, and known again.
        assert len(changes) == 3

    play(scene)


def test_another_slurmdbd_is_asked_from_the_beginning() -> None:
    async def scene(_: InMemorySlurmrestd, mirror: RegistrationMirror, __: list[float]) -> None:
        mirror.need("blue", "records:6819")
        await asyncio.sleep(1)
        mirror.need("blue", "elsewhere:6819")
        assert isinstance(mirror.registration, Unknown)
        await asyncio.sleep(1)
        assert isinstance(mirror.registration, Known)

    play(scene)
