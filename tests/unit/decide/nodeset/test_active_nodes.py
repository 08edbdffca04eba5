"""Which ordinals are active when slurmctld asked for others."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.decide.nodeset.active_nodes import active_nodes, first_active, left_active
from penstock.model.worker_names import WorkerNames
from penstock.slurm.state import Node

NAMES = WorkerNames("eph-", "eph-", 0, "uid", "eph-maintenance", "eph")
NONE: tuple[int, ...] = ()
FLAGS = st.frozensets(
    st.sampled_from(["IDLE", "POWERING_UP", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"])
)


def nodes(**states: str) -> dict[str, Node]:
    named = {name.replace("_", "-"): state for name, state in states.items()}
    return {name: Node(name, frozenset(state.split("+"))) for name, state in named.items()}


def test_a_node_that_slurmctld_powers_up_is_active_though_the_call_was_lost() -> None:
    found = active_nodes({0}, 3, NAMES, nodes(eph_0="IDLE", eph_2="ALLOCATED+POWERING_UP"))
    assert (found.wanted, found.resumed, found.suspended) == ((0, 2), (2,), ())


def test_a_node_that_slurmctld_powers_down_is_not_active_though_the_call_was_lost() -> None:
    found = active_nodes({0, 1}, 3, NAMES, nodes(eph_1="IDLE+POWERING_DOWN"))
    assert (found.wanted, found.suspended) == ((0,), (1,))


def test_a_node_without_its_first_boot_stays_active() -> None:
    assert active_nodes({0}, 3, NAMES, nodes(eph_0="IDLE+POWERED_DOWN")).wanted == (0,)


def test_ordinals_without_a_node_stay_as_written_and_are_never_added() -> None:
    found = active_nodes({7}, 3, NAMES, nodes(eph_9="IDLE+POWERING_UP"))
    assert found.wanted == (7,)


@given(
    st.frozensets(st.integers(0, 9)),
    st.integers(0, 8),
    st.dictionaries(st.integers(0, 9), FLAGS),
)
def test_the_correction_is_done_once(
    active: frozenset[int], size: int, states: dict[int, frozenset[str]]
) -> None:
    records = {f"eph-{n}": Node(f"eph-{n}", flags) for n, flags in states.items()}
    found = active_nodes(active, size, NAMES, records)
    again = active_nodes(found.wanted, size, NAMES, records)
    assert again.wanted == found.wanted
    assert again.resumed == again.suspended == ()
    for number, flags in states.items():
        if number < size and "POWERING_UP" in flags:
            assert number in found.wanted


@pytest.mark.parametrize(
    ("replicas", "initial", "active"), [(3, 1, (0,)), (3, 5, (0, 1, 2)), (3, 0, ()), (0, 1, ())]
)
def test_a_nodeset_begins_with_as_many_as_it_declares(
    replicas: int, initial: int, active: tuple[int, ...]
) -> None:
    assert first_active(replicas, initial) == active


@pytest.mark.parametrize(
    ("size", "pods", "active"), [(3, (2, 0), (0, 2)), (3, NONE, NONE), (2, (1, 4), (1,))]
)
def test_an_object_that_is_gone_comes_back_with_the_pods_that_exist(
    size: int, pods: tuple[int, ...], active: tuple[int, ...]
) -> None:
    assert left_active(pods, size, NAMES, {}) == set(active)


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        ("IDLE", True),
        ("IDLE+POWERED_DOWN", False),
        ("IDLE+POWERING_DOWN", False),
        ("ALLOCATED+POWERED_DOWN+POWERING_UP", True),
    ],
)
def test_an_object_that_is_gone_comes_back_without_nodes_that_are_down(
    state: str, stays: bool
) -> None:
    """Slurm's program had taken it from the object: nobody does so a second time."""
    assert left_active([1], 3, NAMES, nodes(eph_1=state)) == ({1} if stays else set())
