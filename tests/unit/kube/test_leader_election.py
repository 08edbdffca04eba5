from __future__ import annotations

import asyncio

from penstock.kube import Client, Lease
from penstock.simulation.manual_clock import ManualClock, settle
from unit.kube.fake_api import FakeApi, Fault

PATH = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"


def make(api: FakeApi, clock: ManualClock, identity: str) -> Lease:
    return Lease(Client(api, clock=clock), "n", "l", identity)


async def test_the_first_candidate_leads_at_once() -> None:
    """Feature row 65."""
    api, clock = FakeApi(), ManualClock()
    lease = make(api, clock, "one")
    await lease.acquire()
    assert lease.is_leading()
    spec = api.objects[PATH]["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("one", 0)


async def test_two_candidates_for_a_new_lease_exclude_each_other() -> None:
    api, clock = FakeApi(), ManualClock()
    leases = [make(api, clock, "one"), make(api, clock, "two")]
    tasks = [asyncio.ensure_future(lease.acquire()) for lease in leases]
    await settle()
    assert [lease.is_leading() for lease in leases].count(True) == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_lease_of_another_expires_by_our_own_watch_only() -> None:
    """The holder's clock may be years ahead or behind: its renewTime is not believed."""
    for renewed in ("1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"):
        api, clock = FakeApi(), ManualClock()
        spec = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": renewed}
        api.put(PATH, spec=spec)
        lease = make(api, clock, "one")
        task = asyncio.ensure_future(lease.acquire())
        await clock.advance(14.9)
        assert not lease.is_leading()
        await clock.advance(4)
        assert task.done()
        assert api.objects[PATH]["spec"]["leaseTransitions"] == 1


async def test_a_released_lease_is_taken_at_the_next_attempt() -> None:
    api, clock = FakeApi(), ManualClock()
    one, two = make(api, clock, "one"), make(api, clock, "two")
    await one.acquire()
    task = asyncio.ensure_future(two.acquire())
    await clock.advance(3)
    await one.release()
    assert not one.is_leading()
    await clock.advance(2.1)
    assert task.done()
    assert two.is_leading()


async def test_renewals_keep_it_through_a_short_failure() -> None:
    api, clock = FakeApi(), ManualClock()
    lease = make(api, clock, "one")
    await lease.acquire()
    task = asyncio.ensure_future(lease.renew())
    await clock.advance(60)
    api.fail(Fault(500, times=4))
    await clock.advance(60)
    assert lease.is_leading()
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_renewal_that_hangs_does_not_hide_the_loss() -> None:
    api, clock = FakeApi(), ManualClock()
    lease = make(api, clock, "one")
    await lease.acquire()
    task = asyncio.ensure_future(lease.renew())
    await clock.advance(1)
    api.fail(Fault(hang=True, times=1000))
    await clock.advance(12)
    assert task.done()
    assert not lease.is_leading()
    task.exception()


async def test_somebody_elses_takeover_ends_the_lead() -> None:
    api, clock = FakeApi(), ManualClock()
    lease = make(api, clock, "one")
    await lease.acquire()
    task = asyncio.ensure_future(lease.renew())
    await clock.advance(1)
    api.put(PATH, spec={"holderIdentity": "two", "leaseDurationSeconds": 15})
    await clock.advance(2)
    assert task.done()
    assert not lease.is_leading()
    task.exception()


async def test_an_edit_by_hand_does_not_end_the_lead() -> None:
    api, clock = FakeApi(), ManualClock()
    lease = make(api, clock, "one")
    await lease.acquire()
    task = asyncio.ensure_future(lease.renew())
    spec = api.objects[PATH]["spec"]
    api.put(PATH, spec=spec, metadata={"labels": {"a": "b"}})
    await clock.advance(5)
    assert lease.is_leading()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
