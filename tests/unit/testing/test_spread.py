"""The spreading of tests over processes: nothing is left out, and few have a node."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from support.spread import LATE, NODES, WORTH, ByNode, layer_of

FILES = {
    "tests/e2e/test_long.py": 1,
    **{f"tests/api/test_{number}.py": 2 for number in range(3)},
    **{f"tests/e2e/test_{number}.py": 1 + number % 4 for number in range(9)},
    "tests/model/test_plans.py": 5,
    **{f"tests/unit/test_{number}.py": 7 for number in range(6)},
}
TESTS = [f"{file}::test_{number}" for file, count in FILES.items() for number in range(count)]


@dataclass(eq=False)
class Process:
    """What stands for a process of pytest-xdist."""

    todo: list[int] = field(default_factory=list[int])
    ran: list[str] = field(default_factory=list[str])
    shutting_down: bool = False

    @property
    def gateway(self) -> Process:
        return self

    @property
    def id(self) -> str:
        return str(id(self))

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.todo += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def step(self, scheduler: Any) -> bool:
        """Run a test, as a process does: only when it knows what follows, or that nothing does."""
        if not self.todo or (len(self.todo) == 1 and not self.shutting_down):
            return False
        index = self.todo.pop(0)
        self.ran.append(TESTS[index])
        scheduler.mark_test_complete(self, index)
        return True


def scheduler_of(pytestconfig: pytest.Config, count: int) -> tuple[Any, list[Process]]:
    scheduler = cast("Any", ByNode(pytestconfig, None))
    scheduler.numnodes = count
    processes = [Process() for _ in range(count)]
    for one in processes:
        scheduler.add_node(one)
        scheduler.add_node_collection(one, TESTS)
    scheduler.schedule()
    return scheduler, processes


def run(scheduler: Any, processes: list[Process]) -> None:
    while sum(one.step(scheduler) for one in processes):
        pass


def having(processes: list[Process], layer: str) -> list[Process]:
    return [one for one in processes if any(layer_of(test) == layer for test in one.ran)]


@pytest.fixture
def config(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> pytest.Config:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    monkeypatch.setattr(pytestconfig.option, "loadscopereorder", False)
    return pytestconfig


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 40])
def test_each_test_runs_once_and_few_processes_have_a_node(
    config: pytest.Config, count: int
) -> None:
    scheduler, processes = scheduler_of(config, count)
    run(scheduler, processes)
    assert sorted(test for one in processes for test in one.ran) == sorted(TESTS)
    for layer, most in LATE.items():
        assert len(having(processes, layer)) <= most
    assert all(one.shutting_down for one in processes)


def test_files_that_need_a_node_come_first_and_the_longest_before_all(
    config: pytest.Config,
) -> None:
    scheduler, processes = scheduler_of(config, 4)
    run(scheduler, processes)
    assert processes[0].ran[0] == TESTS[0]
    for one in processes:
        needs = [bool(layer_of(test)) for test in one.ran]
        assert needs == sorted(needs, reverse=True)
    assert len(having(processes, "e2e")) == NODES["e2e"]
    assert not set(having(processes, "e2e")) & set(having(processes, "api"))


@pytest.mark.parametrize(("files", "most"), [(3 + WORTH, 3), (12 + WORTH, 4)])
def test_one_more_process_gets_a_node_when_nothing_is_left_to_compute_and_enough_is(
    config: pytest.Config, monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    tests = [f"tests/e2e/test_{number}.py::test_{end}" for number in range(files) for end in "ab"]
    tests += [f"tests/unit/test_{number}.py::test" for number in range(4)]
    monkeypatch.setattr(sys.modules[__name__], "TESTS", tests)
    scheduler, processes = scheduler_of(config, 4)
    run(scheduler, processes)
    assert sorted(test for one in processes for test in one.ran) == sorted(tests)
    assert len(having(processes, "e2e")) == most


def test_when_a_process_ends_early_another_one_has_its_node(config: pytest.Config) -> None:
    scheduler, processes = scheduler_of(config, 4)
    first = processes.pop(0)
    first.step(scheduler)
    lost = scheduler.remove_node(first)
    new = Process()
    scheduler.add_node(new)
    scheduler.add_node_collection(new, TESTS)
    scheduler.schedule()
    run(scheduler, [*processes, new])
    ran = [*first.ran, *(test for one in [*processes, new] for test in one.ran)]
    assert lost in ran
    assert sorted(ran) == sorted(TESTS)
