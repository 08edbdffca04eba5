"""Outages of Kubernetes nodes: single decisions, and promises over random orders of events."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from penstock.decide.node_outage import (
    Answer,
    KubernetesNodeView,
    Outcome,
    Release,
    Requests,
    SetDrainReason,
    Wait,
    WriteMark,
    budget,
    next_step,
)
from penstock.decide.reboot_command import may_reboot
from penstock.model import node_mark
from penstock.model.node_mark import NodeMark, Purpose, Step

NOW = 1_000_000.0
REBOOT = Requests(reboot="t1")
MARK = NodeMark(Purpose.REBOOT, "boot-1", "t1", "1970-01-12T13:46:40Z", cordoned=True)


def node(**more: object) -> KubernetesNodeView:
    base = KubernetesNodeView("n", "boot-1", is_cordoned=False, is_ready=True, has_rebooter=True)
    return replace(base, **more)  # pyright: ignore[reportArgumentType]


def decided(view: KubernetesNodeView, more: int = 1) -> Outcome:
    return next_step(view, more, NOW)


def marked(mark: NodeMark = MARK, **more: object) -> KubernetesNodeView:
    return node(**{"mark": mark, "is_cordoned": True, "requests": REBOOT, **more})


def test_a_requested_reboot_begins_with_a_mark_that_has_the_boot_and_whose_cordon_it_is():
    """S115."""
    step = decided(node(requests=REBOOT)).step
    assert isinstance(step, WriteMark)
    assert step.mark == MARK
    step = decided(node(requests=REBOOT, is_cordoned=True)).step
    assert isinstance(step, WriteMark)
    assert not step.mark.cordoned


def test_a_node_waits_while_enough_others_are_out():
    found = decided(node(requests=REBOOT), more=0)
    assert found.step is None
    assert found.wait is Wait.LATER
    assert found.requeue_after
    # A provider's maintenance comes in any case.
    found = decided(node(requests=Requests(maintenance="Planned")), more=0)
    assert isinstance(found.step, WriteMark)


@pytest.mark.parametrize(("nodes", "most"), [(0, 1), (1, 1), (19, 1), (20, 2), (1000, 100)])
def test_a_tenth_of_the_nodes_may_be_out_and_at_least_one(nodes: int, most: int):
    assert budget(nodes, 0) == most
    assert budget(nodes, most) == 0


def test_without_a_rebooter_no_node_is_cordoned_for_a_reboot():
    found = decided(node(requests=REBOOT, has_rebooter=False))
    assert found.step is None
    assert found.wait is Wait.PERSON


def test_the_reboot_waits_for_each_worker():
    found = decided(marked(workers=("s/w-0",)))
    assert found.step is None
    assert "s/w-0" in found.message
    step = decided(marked()).step
    assert isinstance(step, WriteMark)
    assert step.mark.step is Step.REBOOT


def test_a_worker_that_comes_after_the_permission_has_it_withdrawn():
    step = decided(marked(replace(MARK, step=Step.REBOOT), workers=("s/w-0",))).step
    assert isinstance(step, WriteMark)
    assert step.mark.step is Step.DRAIN


def test_after_the_boot_the_request_is_answered_before_the_node_comes_back():
    booted = marked(replace(MARK, step=Step.REBOOT), boot="boot-2", started="boot-1")
    assert decided(booted).step == Answer("t1", "boot-2")
    assert decided(replace(booted, is_ready=False)).step is None
    answered = replace(booted, answered=("t1", "boot-2"), requests=Requests())
    step = decided(answered).step
    assert isinstance(step, Release)
    assert step.uncordon


def test_the_cordon_of_a_user_stays():
    mark = replace(MARK, step=Step.REBOOT, cordoned=False)
    step = decided(marked(mark, boot="boot-2", requests=Requests())).step
    assert isinstance(step, Release)
    assert not step.uncordon


@pytest.mark.parametrize("time", ["t1", ""])
def test_a_condition_that_stays_true_is_answered_once_more_and_reboots_nothing(time: str):
    view = node(boot="boot-2", answered=(time, "boot-2"), requests=Requests(reboot=time))
    assert decided(view).step == Answer(time, "boot-2")


def test_a_new_request_is_a_new_reboot():
    view = node(boot="boot-2", answered=("t1", "boot-2"), requests=Requests(reboot="t2"))
    assert isinstance(decided(view).step, WriteMark)


def test_a_request_that_is_withdrawn_before_the_rebooter_began_brings_the_node_back():
    for step in Step:
        found = decided(marked(replace(MARK, step=step), requests=Requests())).step
        assert isinstance(found, Release)
    began = marked(replace(MARK, step=Step.REBOOT), requests=Requests(), started="boot-1")
    assert decided(began).step is None


def test_a_reboot_that_does_not_happen_is_for_a_person():
    late = replace(MARK, step=Step.REBOOT, since="1970-01-12T13:00:00Z")
    found = decided(marked(late, started="boot-1"))
    assert found.wait is Wait.PERSON
    assert "log of its rebooter" in found.message


def test_a_drain_shows_how_far_it_is_and_ends_with_its_condition():
    mark = replace(MARK, purpose=Purpose.DRAIN)
    asked = Requests(drain="t1", drain_reason="NodeNeedDrain")
    step = decided(marked(mark, requests=asked, workers=("s/w-0",))).step
    assert isinstance(step, SetDrainReason)
    assert step.reason == "NodeDraining"
    step = decided(marked(mark, requests=asked)).step
    assert isinstance(step, SetDrainReason)
    assert step.reason == "NodeDrained"
    done = replace(asked, drain_reason="NodeDrained")
    assert decided(marked(mark, requests=done)) == Outcome()
    assert isinstance(decided(marked(mark, requests=Requests())).step, Release)


def test_a_drained_node_can_be_rebooted_and_stays_drained_after_it():
    mark = replace(MARK, purpose=Purpose.DRAIN)
    both = Requests(reboot="t2", drain="t1", drain_reason="NodeDrained")
    step = decided(marked(mark, requests=both), more=0).step
    assert isinstance(step, WriteMark)
    assert step.mark.purpose is Purpose.REBOOT
    answered = replace(both, reboot=None)
    step = decided(marked(boot="boot-2", requests=answered, answered=("t2", "boot-2"))).step
    assert isinstance(step, WriteMark)
    assert step.mark.purpose is Purpose.DRAIN


def test_a_node_that_a_user_uncordons_meanwhile_is_cordoned_again():
    step = decided(marked(replace(MARK, cordoned=False), is_cordoned=False)).step
    assert isinstance(step, WriteMark)
    assert step.mark.cordoned


@pytest.mark.parametrize("text", ["", "{", "{}", '{"purpose": "other"}'])
def test_a_mark_that_does_not_parse_is_none(text: str):
    assert node_mark.read({node_mark.OUT_OF_SERVICE: text}) is None


def test_the_rebooter_acts_once_for_a_boot_and_only_with_permission():
    allowed = {node_mark.OUT_OF_SERVICE: replace(MARK, step=Step.REBOOT).text}
    assert may_reboot(allowed, "boot-1", is_requested=True)
    assert not may_reboot(allowed, "boot-1", is_requested=False)
    assert not may_reboot(allowed, "boot-2", is_requested=True)
    assert not may_reboot(allowed, "", is_requested=True)
    began = allowed | {node_mark.REBOOT_STARTED: "boot-1"}
    assert not may_reboot(began, "boot-1", is_requested=True)
    assert not may_reboot({node_mark.OUT_OF_SERVICE: MARK.text}, "boot-1", is_requested=True)


@dataclass
class OneNode:
    """A Kubernetes node with everything that acts on it. `seen` is what the operator has read."""

    view: KubernetesNodeView = field(default_factory=node)
    seen: KubernetesNodeView = field(default_factory=node)
    boots: int = 1
    requests: int = 0
    commands: dict[str, int] = field(default_factory=dict[str, int])
    going_down: bool = False
    user_cordon: bool = False

    def act(self, event: str) -> None:
        getattr(self, event)()

    def change(self, **fields: object) -> None:
        self.view = replace(self.view, **fields)  # pyright: ignore[reportArgumentType]

    def ask(self) -> None:
        if self.view.requests.reboot is None:
            self.requests += 1
            self.change(requests=Requests(reboot=f"t{self.requests}"))

    def withdraw(self) -> None:
        self.change(requests=Requests())

    def read(self) -> None:
        self.seen = self.view

    def operate(self) -> None:
        """One write of the operator, on what it has read; a conflict when that is old."""
        step = next_step(self.seen, 1, NOW).step
        if self.seen != self.view or step is None:
            return
        match step:
            case WriteMark():
                if step.mark.step is Step.REBOOT:
                    assert not self.view.workers
                self.change(mark=step.mark, is_cordoned=True)
            case Answer():
                asked = Requests()
                self.change(answered=(step.request, step.boot), requests=asked)
            case Release():
                cordoned = self.view.is_cordoned and not step.uncordon
                self.change(mark=None, started="", is_cordoned=cordoned)
                assert cordoned or not self.user_cordon
            case SetDrainReason():
                raise AssertionError(step)

    def operator(self) -> None:
        self.read()
        self.operate()

    def workers_leave(self) -> None:
        self.change(workers=())

    def workers_come(self) -> None:
        if not self.view.is_cordoned and not self.going_down:
            self.change(workers=("s/w-0",))

    def cordon(self) -> None:
        if not self.view.is_cordoned:
            self.user_cordon = True
            self.change(is_cordoned=True)

    def rebooter(self) -> None:
        view = self.view
        marks = {node_mark.REBOOT_STARTED: view.started}
        if view.mark is not None:
            marks[node_mark.OUT_OF_SERVICE] = view.mark.text
        asked = view.requests.reboot is not None
        if may_reboot(marks, view.boot, is_requested=asked):
            self.commands[view.boot] = self.commands.get(view.boot, 0) + 1
            self.change(started=view.boot)
            assert not view.workers, "the command ends jobs"
            self.going_down = True

    def boot(self) -> None:
        if self.going_down:
            assert not self.view.workers, "a worker came while the node goes down"
            self.boots += 1
            self.going_down = False
            self.change(boot=f"boot-{self.boots}")


EVENTS = (
    "ask",
    "withdraw",
    "read",
    "operate",
    "operator",
    "workers_leave",
    "workers_come",
    "cordon",
    "rebooter",
    "boot",
)


@pytest.mark.parametrize("lot", range(6))
def test_in_any_order_one_request_is_one_reboot_and_ends_no_job(lot: int):
    """Also when the operator ends between any two steps: it keeps nothing but the node."""
    for seed in range(100):
        _play(random.Random(100 * lot + seed))


def _play(chosen: random.Random) -> None:
    machine = OneNode()
    for event in chosen.choices(EVENTS, k=120):
        machine.act(event)
        assert all(count == 1 for count in machine.commands.values())
        assert machine.boots - 1 + machine.going_down <= machine.requests
    # Left alone, all of it ends: in service but for a user's cordon.
    machine.change(workers=())
    for _ in range(12):
        for event in ("operator", "rebooter", "boot"):
            machine.act(event)
    assert machine.view.mark is None
    assert machine.view.requests.reboot is None
    assert machine.view.is_cordoned == machine.user_cordon
