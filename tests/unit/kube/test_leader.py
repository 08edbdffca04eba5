"""Several Leases in one process: each guards the writes and the controllers that belong to it."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.kube import Client, Lease, Manager, NotFoundError, NotLeaderError
from penstock.kube.runtime.leader import Leader
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault


class Process:
    """A manager with work under each of the named Leases, the first one's being its own."""

    def __init__(self, api: FakeApi, clock: ManualClock, identity: str, *leases: str) -> None:
        self.working: set[str] = set()
        self.clients = {name: Client(api, clock=clock) for name in leases}
        made = {name: Lease(Client(api, clock=clock), "n", name, identity) for name in leases}
        first, *others = leases
        self.manager = Manager(self.clients[first], lease=made[first])
        self.manager.run_while_leading(lambda: self._work(first))
        for name in others:
            leader = Leader(self.clients[name], lease=made[name])
            leader.run_while_leading(lambda name=name: self._work(name))
            self.manager.add_leader(leader)
        self.task = asyncio.ensure_future(self.manager.run())

    async def _work(self, name: str) -> None:
        self.working.add(name)
        try:
            await asyncio.Event().wait()
        finally:
            self.working.discard(name)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_process_leads_where_nobody_else_does_and_waits_for_the_other_lease() -> None:
    api, clock = FakeApi(), ManualClock()
    other = Process(api, clock, "other", "one")
    await clock.advance(5)
    process = Process(api, clock, "process", "one", "two")
    await clock.advance(30)
    assert (other.working, process.working) == ({"one"}, {"two"})
    with pytest.raises(NotLeaderError):
        await process.clients["one"].delete(CONFIG_MAPS, "a", "x")
    with pytest.raises(NotFoundError):
        await process.clients["two"].delete(CONFIG_MAPS, "a", "x")
    await other.end()
    await clock.advance(30)
    assert process.working == {"one", "two"}
    await process.end()


async def test_one_lease_that_is_lost_ends_the_process() -> None:
    """It returns as a candidate for both: no state of the lost one stays in memory."""
    api, clock = FakeApi(), ManualClock()
    process = Process(api, clock, "process", "one", "two")
    await clock.advance(5)
    assert process.working == {"one", "two"}
    api.fail(Fault(500, times=10_000, when=lambda request: request.path.endswith("/two")))
    await clock.advance(14)
    with pytest.raises(ExceptionGroup) as caught:
        await process.task
    assert caught.group_contains(NotLeaderError)
    assert process.working == set()


async def test_a_stop_releases_the_leases_that_it_has_and_waits_for_no_other() -> None:
    api, clock = FakeApi(), ManualClock()
    other = Process(api, clock, "other", "one")
    await clock.advance(5)
    process = Process(api, clock, "process", "one", "two")
    await clock.advance(5)
    process.manager.stop()
    await settle()
    await process.task
    path = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
    holders = {name: api.objects[f"{path}/{name}"]["spec"] for name in ("one", "two")}
    assert {name: spec["holderIdentity"] for name, spec in holders.items()} == {
        "one": "other",
        "two": "",
    }
    await other.end()
