"""One NodeSet in a world that does its worst: the promises hold in every state, and all ends well.

S011: never more out than may be; S013: no worker with a job is deleted.

Each rule is something that users, administrators, jobs, the kubelet or bad luck may do; the
operator passes in between, on fresh or old views, and crashes half way through.
"""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from penstock.api.kubernetes.kinds import Node, NodeSpec
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed.view import ControllerState, WorkerSetView
from penstock.slurm.state import Job
from support.worker_apis import SLINKY, TINY
from support.world import World, encoded

LARGEST = 4
PODS = st.runner().flatmap(lambda life: st.integers(0, LARGEST - 1).map(life.api.pod))
CORDONS = st.runner().flatmap(lambda life: st.sampled_from(life.api.marks.cordon))
REASONS = st.sampled_from(["Manual maintenance", "bad disk", "", "Not responding to my calls"])


class NodeSetLife(RuleBasedStateMachine):
    api = SLINKY

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.api.new(0), api=self.api)
        self.old: WorkerSetView = self.world.view()
        self.writes_then = 0
        self.last_job = 0

    @initialize(replicas=st.integers(1, LARGEST), most=st.integers(1, 2))
    def start(self, replicas: int, most: int) -> None:
        self.world.scale(replicas)
        self.world.allow_unavailable(most)
        self.run(8)

    # The operator

    @rule()
    def operator_passes(self) -> None:
        self.world.one_pass()

    @rule()
    def operator_remembers_what_it_saw(self) -> None:
        self.old = self.world.view()
        self.writes_then = self.world.own_writes

    @rule()
    def operator_acts_on_what_it_saw(self) -> None:
        self.world.one_pass(self.old, late=self.writes_then < self.world.own_writes)

    @rule(actions=st.integers(0, 4))
    def operator_crashes(self, actions: int) -> None:
        self.world.one_pass(stop_after=actions)

    # Kubernetes

    @rule(name=PODS)
    def kubelet_goes_on(self, name: str) -> None:
        self.world.advance(name)

    @rule()
    def all_goes_on(self) -> None:
        self.run(3)

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds

    @rule(name=PODS)
    def slurmd_crashes(self, name: str) -> None:
        if name in self.world.pods:
            self.world.crash(name)

    @rule(name=PODS)
    def pod_is_evicted(self, name: str) -> None:
        if name in self.world.pods:
            self.world.fail(name)

    # Users

    @rule(replicas=st.integers(0, LARGEST))
    def user_scales(self, replicas: int) -> None:
        self.world.scale(replicas)

    @rule(revision=st.sampled_from(["new", "newer", "other"]), bad=st.booleans())
    def user_changes_template(self, revision: str, bad: bool) -> None:
        self.world.change_template(revision, bad=bad)

    @rule(
        start=st.none() | st.integers(-600, 600),
        minutes=st.integers(1, 30),
        again=st.booleans(),
    )
    def user_schedules_updates(self, start: int | None, minutes: int, again: bool) -> None:
        """Or has them at any time again."""
        when = None if start is None else self.world.now + start
        self.world.schedule(when, minutes, again=again)

    @rule()
    def administrator_deletes_reservations(self) -> None:
        self.world.upkeep.records.clear()

    @rule(name=PODS, key=CORDONS, on=st.booleans())
    def user_cordons_pod(self, name: str, key: str, on: bool) -> None:
        if name in self.world.pods:
            self.world.annotate(name, key, "true" if on else None)

    @rule(name=PODS)
    def user_deletes_pod(self, name: str) -> None:
        found = self.world.pods.get(name)
        if found is not None and not found.metadata.deleting:
            self.world.kill(name)

    @rule(ordinal=st.integers(0, LARGEST - 1), on=st.booleans())
    def administrator_cordons_machine(self, ordinal: int, on: bool) -> None:
        name = f"machine-{ordinal}"
        spec = NodeSpec(unschedulable=on or None)
        self.world.machines[name] = Node(metadata=ObjectMeta(name=name), spec=spec)

    @rule(name=PODS, reason=REASONS)
    def administrator_drains(self, name: str, reason: str) -> None:
        record = self.world.nodes.get(name)
        if record is None:
            return
        self.world.nodes[name] = replace(record, state=record.state | {"DRAIN"}, reason=reason)
        self.world.drained_by_others[name] = reason

    @rule(name=PODS)
    def administrator_resumes(self, name: str) -> None:
        record = self.world.nodes.get(name)
        if record is None:
            return
        self.world.nodes[name] = replace(
            record, state=record.state - {"DRAIN", "DOWN"} | {"IDLE"}, reason=""
        )
        self.world.drained_by_others.pop(name, None)
        self.world.refresh(name)

    @precondition(lambda self: not self.world.nodeset.metadata.deleting)
    @rule(dice=st.integers(0, 9))
    def user_deletes_nodeset(self, dice: int) -> None:
        if dice == 0:
            self.world.delete_nodeset()

    # Slurm

    @rule(fault=st.sampled_from(["", "", "silent", "empty", "jobs", "nodes"]))
    def slurm_answers_or_not(self, fault: str) -> None:
        self.world.fault = fault

    @rule(names=st.sets(PODS, min_size=1, max_size=2), limit=st.none() | st.integers(1, 90))
    def job_starts(self, names: set[str], limit: int | None) -> None:
        if all(self.world.takes_jobs(name) for name in names):
            self.last_job += 1
            started = int(self.world.now)
            nodes = tuple(sorted(names))
            self.world.set_job(Job(self.last_job, frozenset({"RUNNING"}), nodes, started, limit))

    @rule(state=st.sampled_from(["RUNNING", "SUSPENDED"]))
    def jobs_are_everywhere(self, state: str) -> None:
        for name in list(self.world.nodes):
            if self.world.takes_jobs(name):
                self.last_job += 1
                started = int(self.world.now)
                self.world.set_job(Job(self.last_job, frozenset({state}), (name,), started, 60))

    @rule(state=st.sampled_from(["RUNNING", "SUSPENDED", "COMPLETED+COMPLETING"]), data=st.data())
    def job_changes(self, state: str, data: st.DataObject) -> None:
        if self.world.jobs:
            job = self.world.jobs[data.draw(st.sampled_from(sorted(self.world.jobs)))]
            if "COMPLETING" not in job.state:
                new = frozenset(state.split("+"))
                changed = Job(job.id, new, job.nodes, job.start_time, job.time_limit)
                self.world.set_job(changed)

    @rule(data=st.data())
    def job_ends(self, data: st.DataObject) -> None:
        if self.world.jobs:
            self.world.end_job(data.draw(st.sampled_from(sorted(self.world.jobs))))

    @rule(name=PODS)
    def slurmctld_gives_a_node_up(self, name: str) -> None:
        self.world.silence_node(name)

    # What must hold

    @invariant()
    def nothing_is_repeated_while_waiting(self) -> None:
        """If nothing else happens, a few passes do all there is to do, then there is silence."""
        saved = self.copy()
        for _ in range(10):
            if self.world.gone or not self.world.one_pass().actions:
                break
        seen = self.world.view()
        if not self.world.gone:
            again = plan(seen)
            assert again.actions == (), again.actions
            assert encoded(again.status) == encoded(seen.workers.last)
        self.world = saved

    def teardown(self) -> None:
        """Faults end and jobs end: the world comes to what is declared, and stays so."""
        world = self.world
        world.fault = ""
        for id_ in list(world.jobs):
            world.end_job(id_)
        world.change_template(world.revision, bad=False)
        if world.workers.update.type == "ScheduledUpdate":
            world.schedule(world.now + 60, 30)
        self.run(80)
        assert not (world.gone and world.upkeep.records)
        left_old = any(world.revision_of(p) != world.revision for p in world.pods.values())
        assert left_old or not world.upkeep.records
        if world.gone:
            assert not world.pods
            return
        assert not world.nodeset.metadata.deleting, plan(world.view()).findings
        assert len(world.pods) == world.nodeset.spec.replicas, sorted(world.pods)
        left = {name: world.nodes[name] for name in set(world.nodes) - set(world.pods)}
        assert set(left) <= world.unclaimed, left
        assert set(world.pods) <= set(world.nodes)
        out = sum(1 for name in world.pods if not world.in_use(name))
        for name, pod in world.pods.items():
            assert pod.ready
            if world.revision_of(pod) != world.revision:
                cordoned = world.api.marks.is_cordoned(pod.metadata.annotations)
                assert out >= world.budget or cordoned, (name, plan(world.view()).findings)
            node = world.nodes[name]
            host = world.machines[pod.spec.node_name or ""]
            notes = pod.metadata.annotations
            cordoned = bool(host.spec.unschedulable) or world.api.marks.is_cordoned(notes)
            if name in world.drained_by_others:
                assert node.drain
                assert node.reason == world.drained_by_others[name]
            elif cordoned:
                assert node.drain or "DOWN" in node.state
            else:
                assert not node.drain, (name, node, notes)
            if node.reason.startswith(world.api.marks.drain_prefix):
                assert cordoned
        assert plan(world.view()).actions == ()

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            if self.world.gone:
                return
            self.world.one_pass()
            for name in list(self.world.pods):
                self.world.advance(name)
            self.world.now += 15

    def copy(self) -> World:
        world = self.world
        return World(
            nodeset=world.nodeset,
            pods=dict(world.pods),
            machines=dict(world.machines),
            nodes=dict(world.nodes),
            jobs=dict(world.jobs),
            drained_by_others=dict(world.drained_by_others),
            fault=world.fault,
            controller=world.controller,
            gone=world.gone,
            now=world.now,
            version=world.version,
            unclaimed=set(world.unclaimed),
            user_cordons=set(world.user_cordons),
            revision=world.revision,
            bad_revisions=set(world.bad_revisions),
            own_writes=world.own_writes,
            budget=world.budget,
            upkeep=world.upkeep.copy(),
            api=world.api,
        )


class NodeSetLifeWithoutController(NodeSetLife):
    """The same, and the Controller may go: the NodeSet must be able to go as well."""

    @rule(state=st.sampled_from(ControllerState))
    def controller_comes_and_goes(self, state: ControllerState) -> None:
        self.world.controller = state

    def teardown(self) -> None:
        self.world.controller = ControllerState.ABSENT
        self.world.delete_nodeset()
        self.run(30)
        assert self.world.gone
        assert not self.world.pods


class CrewLife(NodeSetLife):
    """The same for workers of a second, tiny API."""

    api = TINY


class CrewLifeWithoutController(NodeSetLifeWithoutController):
    """The same for workers of a second, tiny API."""

    api = TINY


LENGTH = settings(
    # More on demand: PENSTOCK_EXAMPLES=100000 runs for hours.
    max_examples=int(os.environ.get("PENSTOCK_EXAMPLES", "100")),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestNodeSetLife = NodeSetLife.TestCase
TestNodeSetLife.settings = LENGTH
TestNodeSetLifeWithoutController = NodeSetLifeWithoutController.TestCase
TestNodeSetLifeWithoutController.settings = LENGTH
TestCrewLife = CrewLife.TestCase
TestCrewLife.settings = LENGTH
TestCrewLifeWithoutController = CrewLifeWithoutController.TestCase
TestCrewLifeWithoutController.settings = LENGTH
