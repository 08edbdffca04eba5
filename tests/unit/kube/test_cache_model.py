"""Whatever happens to its watch, a healed cache is what the server has, and no delete is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.api.kubernetes.kinds import CONFIG_MAPS, ConfigMap
from penstock.kube import Backoff, Cache, Client, Pace
from penstock.simulation.manual_clock import ManualClock
from unit.kube.fake_api import FakeApi, Fault

pauses = st.sampled_from([None, 0.0, 0.3])
names = st.sampled_from([f"/api/v1/namespaces/{n}/configmaps/{c}" for n in "ab" for c in "xyz"])


class CacheMachine(RuleBasedStateMachine):
    """Changes and faults in any order; the cache's subscriber keeps its own copy."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.api = FakeApi()
        self.clock = ManualClock()
        client = Client(self.api, clock=self.clock)
        pace = Pace(silence=90, backoff=Backoff(0.5, 5.0, random=lambda: 0.5))
        self.cache = Cache(client, CONFIG_MAPS, namespaces=["a", "b"], pace=pace)
        self.copy: dict[str, ConfigMap] = {}
        self.uids_seen: set[str] = set()
        self.uids_deleted: set[str] = set()
        self.cache.subscribe(self.told)
        self.task = self.loop.create_task(self.cache.run())
        self.index = self.cache.index(lambda c: [c.metadata.namespace])
        self.count = 0
        self.wrong: list[AssertionError] = []

    def told(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        # A cache shields itself from its handlers' exceptions, so they are kept.
        try:
            self.check(old, new)
        except AssertionError as error:
            self.wrong.append(error)
            raise

    def check(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        if old is not None:
            assert self.copy[old.metadata.key] == old
        if new is None:
            assert old is not None
            del self.copy[old.metadata.key]
            assert old.metadata.uid not in self.uids_deleted
            self.uids_deleted.add(old.metadata.uid)
            return
        if old is None:
            assert new.metadata.key not in self.copy
            assert new.metadata.uid not in self.uids_deleted
        else:
            assert old.metadata.uid == new.metadata.uid
            assert int(old.metadata.resource_version) < int(new.metadata.resource_version)
        self.uids_seen.add(new.metadata.uid)
        self.copy[new.metadata.key] = new

    def play(self, what: Awaitable[None]) -> None:
        self.loop.run_until_complete(what)
        assert not self.task.done()

    @initialize(paths=st.sets(names, min_size=3), cut=st.sampled_from([None, 1, 2]))
    def begin(self, paths: set[str], cut: int | None) -> None:
        for path in sorted(paths, reverse=True):
            self.put(path, None)
        self.api.objects = dict(sorted(self.api.objects.items()))
        self.api.initial_events_before_cut = cut
        self.pause(0.0)
        self.heal()

    @rule(path=names, seconds=pauses)
    def put(self, path: str, seconds: float | None) -> None:
        self.count += 1
        self.api.put(path, data={"k": str(self.count)})
        self.pause(seconds)

    def pause(self, seconds: float | None) -> None:
        if seconds is not None:
            self.play(self.clock.advance(seconds))

    @precondition(lambda self: self.api.objects)
    @rule(data=st.data(), seconds=pauses)
    def remove(self, data: st.DataObject, seconds: float | None) -> None:
        self.api.remove(data.draw(st.sampled_from(sorted(self.api.objects))))
        self.pause(seconds)

    @precondition(lambda self: self.api.objects)
    @rule(data=st.data())
    def remove_and_make_again(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.api.objects)))
        self.api.remove(path)
        self.put(path, None)

    @rule(seconds=st.sampled_from([0.0, 0.3, 2.0, 2.0, 100.0]))
    def time(self, seconds: float) -> None:
        self.play(self.clock.advance(seconds))

    @rule(what=st.sampled_from(["cut", "end", "stall", "expire"]))
    def break_watches(self, what: str) -> None:
        {
            "cut": self.api.cut_watches,
            "end": self.api.end_watches,
            "stall": self.api.stall_watches,
            "expire": self.api.expire_watches,
        }[what]()

    @rule()
    def compact(self) -> None:
        self.api.compact()

    @rule()
    def bookmark(self) -> None:
        self.api.bookmark()

    @rule(events=st.integers(0, 2), cleanly=st.booleans())
    def cut_the_next_initial_list(self, events: int, cleanly: bool) -> None:
        self.api.initial_events_before_cut = events
        self.api.cut_initial_events_cleanly = cleanly
        self.api.compact()
        self.api.expire_watches()
        self.pause(2.0)

    @rule(duplicate=st.booleans(), stream=st.booleans())
    def behave(self, duplicate: bool, stream: bool) -> None:
        self.api.duplicate_events = duplicate
        self.api.streaming_lists = stream

    @rule(
        fault=st.builds(
            Fault,
            status=st.sampled_from([410, 429, 500, 503]),
            cut=st.booleans(),
            times=st.integers(1, 4),
        )
    )
    def fail(self, fault: Fault) -> None:
        self.api.fail(fault)

    @invariant()
    def what_was_told_made_sense(self) -> None:
        assert self.wrong == []

    @invariant()
    def the_subscribers_copy_is_the_cache(self) -> None:
        assert self.copy == {c.metadata.key: c for c in self.cache}
        by_index = [c for n in "ab" for c in self.index.get(n)]
        assert {c.metadata.key: c for c in by_index} == self.copy

    @rule()
    def heal(self) -> None:
        """With no fault left and time for any back-off, the cache is what the server has."""
        self.api.faults.clear()
        self.api.initial_events_before_cut = None
        self.play(self.clock.advance(200))
        there = {o["metadata"]["uid"]: o["data"]["k"] for o in self.api.objects.values()}
        assert {c.metadata.uid: (c.data or {})["k"] for c in self.cache} == there
        assert self.uids_seen - self.uids_deleted == set(there)

    def teardown(self) -> None:
        try:
            self.heal()
            assert self.wrong == []
        finally:
            self.task.cancel()
            self.loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
            self.loop.close()


TestCacheAgainstServer = CacheMachine.TestCase
TestCacheAgainstServer.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
